"""The service under load on this machine: requests per second, latency and memory at 1, 8 and 64 clients.

Each client sends a picture of 320 × 240 px and waits for its answer, again and again. No request may fail or
be lost: there are fewer clients than the queue has places.

examples:
  tenet bench serve
  tenet bench serve --seconds 5 --clients 1,8 --preset -
"""

import argparse
import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from tenet.bench.arguments import positive
from tenet.web.limits import Limits

CLASSES, SHOTS = 3, 2


class Load(NamedTuple):
    """What a number of clients met."""

    clients: int
    seconds: float
    latencies: list[float]
    failed: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=positive, default=10, help="for each load (default: %(default)s)")
    parser.add_argument("--clients", default="1,8,64", help="at the same time (default: %(default)s)")
    parser.add_argument(
        "--batch", type=positive, default=Limits.batch, help="pictures together (default: %(default)s)"
    )
    parser.add_argument(
        "--preset", default="tenet_lite0", help="configuration; -: the shipped model (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    from tenet.bench.measure import machine, ms, table
    from tenet.client import Client

    numbers = [positive(word) for word in args.clients.split(",")]
    print(machine(), "\n")
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store.db")
        command = [sys.executable, "-m", "tenet.bench.serve_child", store, args.preset, str(args.batch)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            client = Client(address)
            for row in range(CLASSES):
                client.register(f"thing {row}", [_jpeg(SHOTS * row + shot) for shot in range(SHOTS)])
            client.detect(_jpeg(0))
            rows = []
            lost = 0
            for number in numbers:
                load = measure(address, number, args.seconds)
                lost += len(load.failed)
                times = sorted(load.latencies)
                rows.append(
                    [
                        str(number),
                        str(len(times)),
                        f"{len(times) / load.seconds:.1f}",
                        ms(times[len(times) // 2]),
                        ms(times[min(len(times) - 1, int(0.99 * len(times)))]),
                        str(len(load.failed)),
                        _memory(server.pid),
                    ]
                )
        finally:
            server.kill()
            server.wait()
    told = f"{CLASSES} classes of {SHOTS} shots, up to {args.batch} pictures together, {args.seconds} s each"
    print(f"{args.preset}, pictures of 320 x 240, {told}")
    print(table(["clients", "requests", "per second", "p50", "p99", "failed", "memory at peak"], rows))
    return 0 if not lost else 1


def measure(address: str, clients: int, seconds: float) -> Load:
    """What `clients` at the same time meet in that many seconds; every request is waited for."""
    from tenet.client import Client
    from tenet.errors import TenetError

    pictures = [_jpeg(seed) for seed in range(8)]
    latencies: list[float] = []
    failed: list[str] = []
    start = time.perf_counter()

    def work(number: int) -> None:
        # No patience: a request that is refused counts as failed.
        client = Client(address, patience=0.0)
        turn = number
        while time.perf_counter() - start < seconds:
            begun = time.perf_counter()
            try:
                client.detect(pictures[turn % len(pictures)], threshold=0.5)
                latencies.append(time.perf_counter() - begun)
            except TenetError as error:
                failed.append(str(error))
            turn += 1

    threads = [Thread(target=work, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Load(clients, time.perf_counter() - start, latencies, failed)


def _jpeg(seed: int) -> bytes:
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(seed).integers(0, 256, (240, 320, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG")
    return stream.getvalue()


def _memory(pid: int) -> str:
    """Resident memory of a process at its peak, where the system tells."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return "n/a"
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return f"{int(line.split()[1]) / 1024:.0f} MB"
