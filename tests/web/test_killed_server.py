"""What was answered with success is there after `kill -9`, at whatever moment it comes."""

import random
import sqlite3
import threading
import time

from served import Served
from web_parts import BOX, file

from tenet.client import Client, ServiceRefusedError
from tenet.errors import DataError

SECONDS = 7.0
WRITERS = 3


def test_every_acknowledged_shot_survives(where: str) -> None:
    acknowledged: dict[str, set[int]] = {f"thing {row}": set() for row in range(WRITERS)}
    random.seed(0)
    start, kills, seed = time.monotonic(), 0, 0
    while kills < 2 or (time.monotonic() - start < SECONDS and kills < 12):
        served = Served(where)
        _check(Client(served.address), acknowledged)
        seed += 1000
        writers = [
            threading.Thread(target=_write, args=(served.address, name, acknowledged[name], seed + 100 * row))
            for row, name in enumerate(acknowledged)
        ]
        for writer in writers:
            writer.start()
        time.sleep(random.uniform(0.3, 1.2))
        served.kill()
        for writer in writers:
            writer.join()
        kills += 1
    served = Served(where)
    try:
        _check(Client(served.address), acknowledged)
    finally:
        served.kill()
    assert sum(map(len, acknowledged.values())) >= kills
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


def _check(client: Client, acknowledged: dict[str, set[int]]) -> None:
    kept = {one.name: set(one.shots) for one in client.classes()}
    for name, shots in acknowledged.items():
        assert shots <= kept.get(name, set())
    for name, shots in kept.items():
        # Features are of all shots, none more and none less: the detector still works with them.
        assert len(client.detect(file("red"), classes=[name])) == 1
        assert shots
