"""Below the queue's limit no request fails and none is lost, whatever the number of clients."""

from collections.abc import Iterator

import pytest
from served import Served
from web_parts import BOX, file

from tenet.bench.serve import measure
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
