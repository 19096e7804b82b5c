"""schemathesis: what the description allows, and much that it does not, gets an answer that it describes."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks
from served import Served
from web_parts import BOX, file

from tenet.client import Client
from tenet.web import examples

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
    assert sum(_answered(described).values()) > 5 * len(asked)


def test_every_route_succeeds_as_described(described: Any) -> None:
    client = Client(described.get_base_url().rstrip("/"))
    for found in described.get_all_operations():
        operation = found.ok()
        shot = client.register("red", [(file(), BOX), (file("red", 1), BOX)]).shots[-1]
        values = {"name": "red", "shot": shot, "format": "coco"}
        if "{key}" in operation.path:
            values["key"] = client.wait(client.start_job([file()]).id, 60).id
        way = operation.method.upper()
        case = operation.Case(
            path_parameters={one.name: values[one.name] for one in operation.path_parameters},
            query={one.name: values[one.name] for one in operation.query if one.name in values},
        )
        answer = case.call(timeout=60, **_content(client, operation.path, way))
        assert answer.status_code < 300, (way, operation.path, answer.content)
        case.validate_response(answer, checks=DESCRIBED)
    counted = _answered(described)
    for found in described.get_all_operations():
        route = (found.ok().method.upper(), found.ok().path)
        assert any(key[:2] == route and key[2].startswith("2") for key in counted), route


def _content(client: Client, path: str, method: str) -> dict[str, Any]:
    """What a request to that route brings: real pictures, and a file of each kind."""
    files = {
        "/v1/classes/{name}/shots": ("pictures", file("red", 2)),
        "/v1/detect": ("pictures", file()),
        "/v1/explain": ("picture", file()),
        "/v1/explain/figure": ("picture", file()),
        "/v1/jobs": ("pictures", file()),
        "/v1/bank": ("bank", client.save_bank()),
    }
    if method == "PATCH":
        return {"json": {"name": "crimson"}}
    if method == "POST" and path == "/v1/export":
        return {"json": examples.EXPORT}
    return {"files": [(files[path][0], ("a.png", files[path][1]))]} if method == "POST" else {}


def _answered(described: Any) -> dict[tuple[str, str, str], float]:
    """(method, route, status) of what the service counted."""
    text = Client(described.get_base_url().rstrip("/")).metrics()
    rows = re.findall(
        r'^tenet_requests_total\{method="(.*?)",route="(.*?)",status="(.*?)"\} (\S+)', text, re.MULTILINE
    )
    return {row[:3]: float(row[3]) for row in rows}


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
