"""What was answered with success is there after `kill -9`, at whatever moment it comes."""

import random
import sqlite3
import threading
import time
from pathlib import Path

from served import Served
from web_parts import BOX, file

from tenet.bank import ClassBank
from tenet.client import Client, ServiceRefusedError
from tenet.errors import DataError

KILLS = 4
WRITERS = 3
PICTURES = 25
"""In a job."""


def test_every_acknowledged_shot_and_job_survives(where: str, tmp_path: Path) -> None:
    acknowledged: dict[str, set[int]] = {f"thing {row}": set() for row in range(WRITERS)}
    jobs: list[str] = []
    random.seed(0)
    for kill in range(KILLS):
        served = Served(where)
        _check(Client(served.address), acknowledged, tmp_path)
        seed = 1000 * (kill + 1)
        writers = [
            threading.Thread(target=_write, args=(served.address, name, acknowledged[name], seed + 100 * row))
            for row, name in enumerate(acknowledged)
        ]
        for writer in writers:
            writer.start()
        if kill:
            jobs.append(Client(served.address).start_job([file("red", row) for row in range(PICTURES)]).id)
        time.sleep(random.uniform(0.2, 0.7))
        served.kill()
        for writer in writers:
            writer.join()
    served = Served(where)
    try:
        client = Client(served.address)
        _check(client, acknowledged, tmp_path)
        # What was answered with 202 is done, every picture once.
        for key in jobs:
            done = client.wait(key, 120)
            assert (done.state, done.total, done.done, done.failed) == ("done", PICTURES, PICTURES, 0)
    finally:
        served.kill()
    assert sum(map(len, acknowledged.values())) >= KILLS
    if "://" not in where:
        with sqlite3.connect(where) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


def _write(address: str, name: str, known: set[int], seed: int) -> None:
    """Shots one after another until the server is gone; what it acknowledged is written down."""
    client = Client(address, timeout=30, patience=0)
    for number in range(90):
        try:
            answer = client.register(name, [(file("red", seed + number), BOX)])
        except (DataError, ServiceRefusedError):
            return
        known.update(answer.shots)


def _check(client: Client, acknowledged: dict[str, set[int]], folder: Path) -> None:
    kept = {one.name: set(one.shots) for one in client.classes()}
    for name, shots in acknowledged.items():
        assert shots <= kept.get(name, set())
    if not kept:
        return
    (folder / "kept.bank").write_bytes(client.save_bank())
    bank = ClassBank.open(folder / "kept.bank")
    # Features are of all shots, none more and none less.
    assert {name: len(bank.features(name)) for name in bank} == {name: len(kept[name]) for name in kept}
    assert len(client.detect(file("red"), classes=list(kept)[:1])) == 1
