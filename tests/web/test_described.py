"""schemathesis: what the description allows, and much that it does not, gets an answer that it describes."""

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import checks
from served import Served
from web_parts import BOX, file

from tenet.client import Client


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """The description of a service that knows a class; it runs as long as the tests do."""
    served = Served(tmp_path_factory.mktemp("store") / "store.db")
    try:
        Client(served.address).register("red", [(file(), BOX)])
        yield schemathesis.openapi.from_url(f"{served.address}/openapi.json")
    finally:
        served.kill()


schema = schemathesis.pytest.from_fixture("described")
DESCRIBED = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]


@schema.parametrize()
@settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_described(case: schemathesis.Case) -> None:
    answer = case.call(timeout=60)
    assert "Traceback" not in answer.text
    case.validate_response(answer, checks=DESCRIBED)
