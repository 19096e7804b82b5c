"""The service under load on this machine: requests per second, latency and memory at 1, 8 and 64 clients.

Each client sends a photograph of the demonstration and waits for its answer, again and again; the service
knows the demonstration's classes. No request may fail or be lost: there are fewer clients than the queue has
places, and the service's time limit is set aside.

examples:
  tenet bench serve
  tenet bench serve --seconds 5 --clients 1,8 --batch 1
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

from tenet.bench.arguments import positive
from tenet.errors import InputError
from tenet.web.limits import Limits

if TYPE_CHECKING:
    from tenet.client import Client

PATIENCE = 3600.0
"""Seconds that an answer may take: what is slow is measured, and not refused."""


class Load(NamedTuple):
    """What a number of clients met."""

    clients: int
    seconds: float
    latencies: list[float]
    failed: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=positive, default=10, help="for each load (default: %(default)s)")
    parser.add_argument(
        "--clients", type=_numbers, default=[1, 8, 64], help="at the same time (default: 1,8,64)"
    )
    parser.add_argument(
        "--batch", type=positive, default=Limits.batch, help="pictures together (default: %(default)s)"
    )
    parser.add_argument("--model", metavar="NAME", help="another model than the one that comes with tenet")


def run(args: argparse.Namespace) -> int:
    from tenet.bench.measure import machine, table
    from tenet.client import Client

    pictures = photographs()
    print(machine(), "\n")
    rows, lost = [], 0
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store.db")
        command = [sys.executable, "-m", "tenet.bench.serve_child", store, str(args.batch), args.model or ""]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                client = Client(_address(server), timeout=PATIENCE)
                told = _teach(client)
                client.detect(pictures[0])
                for number in args.clients:
                    _forget_peak(server.pid)
                    load = measure(client.address, number, args.seconds, pictures)
                    lost += len(load.failed)
                    rows.append([*_row(load), _memory(server.pid)])
                    if load.failed:
                        print(f"{number} clients, {len(load.failed)} failed, the first: {load.failed[0]}")
            finally:
                server.kill()
    print(f"{told}, {len(pictures)} photographs, up to {args.batch} together, {args.seconds} s each")
    print(table(["clients", "requests", "per second", "p50", "p99", "failed", "memory at peak"], rows))
    return 0 if not lost else 1


def _numbers(text: str) -> list[int]:
    return [positive(word) for word in text.split(",")]


def _address(server: "subprocess.Popen[str]") -> str:
    """Where the server listens; one that ended instead has said why."""
    assert server.stdout is not None
    line = server.stdout.readline().strip()
    if line.startswith("http://"):
        return line
    raise InputError(line or "the server ended before it listened")


def _row(load: Load) -> list[str]:
    """Clients, requests, rate, latencies and failures as a row shows them."""
    from tenet.bench.measure import ms

    times = sorted(load.latencies)
    # Where every request failed there is no latency.
    places = [min(len(times) - 1, int(share * len(times))) for share in (0.5, 0.99)]
    shares = [ms(times[place]) if times else "-" for place in places]
    rate = f"{len(times) / load.seconds:.1f}"
    return [str(load.clients), str(len(times)), rate, *shares, str(len(load.failed))]


def measure(address: str, clients: int, seconds: float, pictures: Sequence[bytes]) -> Load:
    """What `clients` at the same time meet in that many seconds; every request is waited for."""
    from tenet.client import Client

    latencies: list[float] = []
    failed: list[str] = []
    start = time.perf_counter()

    def work(number: int) -> None:
        # No patience: a request that is refused counts as failed.
        client = Client(address, timeout=PATIENCE, patience=0.0)
        turn = number
        while time.perf_counter() - start < seconds:
            begun = time.perf_counter()
            try:
                client.detect(pictures[turn % len(pictures)])
                latencies.append(time.perf_counter() - begun)
            except Exception as error:  # whatever it is, a client that ends unseen would be a lost one
                failed.append(f"{type(error).__name__}: {error}")
            turn += 1

    threads = [Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Load(clients, time.perf_counter() - start, latencies, failed)


def photographs() -> list[bytes]:
    """The demonstration's photographs as files, without the collage of them."""
    from tenet.demo import FOLDER

    paths = sorted(path for path in FOLDER.iterdir() if path.suffix in (".jpg", ".png"))
    return [path.read_bytes() for path in paths if path.stem != "collage"]


def _teach(client: "Client") -> str:
    """Show the service what the demonstration shows; what that is, in words."""
    from tenet.demo import SCENES

    shots = {shot for scene in SCENES for shot in scene.shots}
    names = sorted({shot.name for shot in shots})
    for name in names:
        own = [(shot.path, shot.box) for shot in shots if shot.name == name]
        client.register(name, own)
    return f"{len(names)} classes, {len(shots)} shots"


def _forget_peak(pid: int) -> None:
    """Let the peak of the memory begin anew, where the system can (Linux)."""
    # A container may forbid it; the peak is then the highest so far.
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _memory(pid: int) -> str:
    """Resident memory of a process at its peak, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return "n/a"
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return f"{int(line.split()[1]) / 1024:.0f} MB"
