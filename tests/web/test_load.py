"""Below the queue's limit no request fails and none is lost; above it memory stays bounded."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from served import Served
from web_parts import BOX, file

from tenet.bench.serve import _forget_peak, _memory, measure
from tenet.client import Client


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    served = Served(tmp_path_factory.mktemp("store") / "store.db")
    try:
        Client(served.address).register("red", [(file(), BOX)])
        yield served.address
    finally:
        served.kill()


@pytest.mark.parametrize("clients", [1, 8, 64])
def test_no_request_is_lost(address: str, clients: int) -> None:
    load = measure(address, clients, 2.0, [file("red", seed) for seed in range(4)])
    assert load.failed == []
    assert len(load.latencies) >= clients


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with three places in its queue, six open requests and a second for a header."""
    served = Served(tmp_path_factory.mktemp("store") / "store.db", small=True)
    try:
        Client(served.address).register("red", [(file(), BOX)])
        yield served
    finally:
        served.kill()


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak of the memory")
def test_a_crowd_costs_no_memory(small: Served) -> None:
    clients, megabytes = 40, 6
    # A picture file may be followed by anything.
    large = file() + bytes(megabytes * 1024 * 1024)
    measure(small.address, 1, 0.5, [large])
    _forget_peak(small.process.pid)
    before = _peak(small.process.pid)
    load = measure(small.address, clients, 2.0, [large])
    grown = _peak(small.process.pid) - before
    assert load.latencies
    assert len(load.failed) >= clients // 2
    assert all("ask again" in text for text in load.failed), set(load.failed)
    # Six are let in, each in a few copies; forty would be 240 MB in one.
    assert grown < 120, f"{grown:.0f} MB"
    assert len(Client(small.address).detect(file())) == 1


def _peak(pid: int) -> float:
    return float(_memory(pid).split()[0])


def test_who_never_says_what_he_wants_is_not_waited_for(small: Served) -> None:
    host, port = small.address.removeprefix("http://").split(":")
    for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: 127"):
        with socket.create_connection((host, int(port)), timeout=30) as slow:
            slow.sendall(begun)
            start = time.monotonic()
            assert slow.recv(100) == b""
            assert time.monotonic() - start > 0.5
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=30) as kept:
        for pause in (0.0, 1.5, 0.0):
            # Between two requests a connection may rest longer.
            time.sleep(pause)
            kept.sendall(whole)
            answer = b""
            while not answer.endswith(b"}"):
                answer += kept.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200")
        kept.sendall(whole[:20])
        assert kept.recv(100) == b""
