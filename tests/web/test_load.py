"""Below the queue's limit no request fails and none is lost, whatever the number of clients."""

from pathlib import Path

import pytest
from served import Served
from web_parts import BOX, file

from tenet.bench.serve import measure
from tenet.client import Client


@pytest.mark.parametrize("clients", [1, 8, 64])
def test_no_request_is_lost(tmp_path: Path, clients: int) -> None:
    served = Served(tmp_path / "store.db")
    try:
        Client(served.address).register("red", [(file(), BOX)])
        load = measure(served.address, clients, 2.0)
        assert load.failed == []
        assert len(load.latencies) >= clients
    finally:
        served.kill()
