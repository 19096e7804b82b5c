"""schemathesis: what the description allows, and much that it does not, gets an answer that it describes."""

from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks
from served import Served
from web_parts import BOX, file

from tenet.client import Client

DESCRIBED = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The description of a service that knows a class; it runs as long as the tests do."""
    served = Served(tmp_path_factory.mktemp("store") / "store.db")
    try:
        Client(served.address).register("red", [(file(), BOX)])
        yield schemathesis.openapi.from_url(f"{served.address}/openapi.json")
    finally:
        served.kill()


# Its plugin for pytest is not used: hypothesis draws the requests, and each must get what is described.
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_answer_is_described(described: Any, mode: GenerationMode) -> None:
    operations = [found.ok() for found in described.get_all_operations()]
    assert len(operations) > 15
    asked = [operation for operation in operations if _check(operation, mode)]
    assert len(asked) > 10
    # The service counted them: they were sent, and not only drawn.
    assert _answered(described.get_base_url()) > 5 * len(asked)


def _answered(address: str) -> float:
    with urlopen(f"{address.rstrip('/')}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("tenet_requests_total{"))


def _check(operation: Any, mode: GenerationMode) -> bool:
    """Whether there was something to ask: an operation without parameters cannot be asked wrongly."""

    @settings(
        max_examples=10,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        answer = case.call(timeout=60)
        assert b"Traceback" not in answer.content
        case.validate_response(answer, checks=DESCRIBED)

    try:
        ask()
    except Unsatisfiable:
        return False
    return True
