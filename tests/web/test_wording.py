"""Refusals in the service's own words: expected …, got …; what to do. And the description."""

from pathlib import Path
from typing import Any

import pytest
from service_parts import client_of, message, teach
from starlette.testclient import TestClient
from web_parts import file

from tenet.web import schemas
from tenet.web.wording import EXPECTED

FORM, JSON = "multipart/form-data", "application/json"


@pytest.mark.parametrize(
    ("ask", "status", "says"),
    [
        ({"url": "/v1/detect"}, 422, "pictures: expected a value, got nothing; see /openapi.json"),
        (
            {"url": "/v1/detect", "files": {"pictures": file()}, "data": {"size": "huge"}},
            422,
            "size: expected text like ^(auto|thorough|once|original|[0-9]{2,4})$, got 'huge'; "
            "see /openapi.json",
        ),
        (
            {"url": "/v1/detect", "files": {"pictures": file()}, "data": {"limit": "many"}},
            422,
            "limit: expected a whole number, got 'many'; see /openapi.json",
        ),
        (
            {"url": "/v1/detect", "files": {"pictures": file()}, "data": {"threshold": "7"}},
            422,
            "threshold: expected at most 1.0, got '7'; see /openapi.json",
        ),
        ({"url": "/v1/detect", "data": {"pictures": "text"}}, 422, "expected a file, got"),
        (
            {"url": "/v1/export", "json": {"format": "gif", "classes": [], "pictures": []}},
            422,
            "format: expected one of 'coco', 'yolo', 'voc' or 'csv', got 'gif'; see /openapi.json",
        ),
        ({"url": "/v1/export", "json": [1]}, 422, "expected a JSON object, got a list"),
        ({"url": "/v1/export", "content": b"{", "headers": {"Content-Type": JSON}}, 422, "expected JSON"),
        (
            {"url": "/v1/nothing"},
            404,
            "expected a path of this service, got '/v1/nothing'; see /openapi.json",
        ),
        ({"url": "/v1/classes"}, 405, "expected GET for this path, got POST; see /openapi.json"),
        (
            {"url": "/v1/detect", "content": b"x", "headers": {"Content-Type": FORM}},
            400,
            "expected a request that can be parsed, got one that cannot",
        ),
    ],
)
def test_what_was_expected_what_came_and_what_to_do(
    told: TestClient, ask: dict[str, Any], status: int, says: str
) -> None:
    assert says in message(told.post(**ask), status)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with client_of(tmp_path_factory.mktemp("store") / "store.db") as client:
        teach(client)
        yield client


def test_every_phrase_can_be_filled() -> None:
    context = dict.fromkeys(("min_length", "max_length", "pattern", "ge", "gt", "le", "lt", "expected"), 1)
    for text in EXPECTED.values():
        text.format(**context)


# ---- the description


def test_every_answer_in_json_has_an_example(told: TestClient) -> None:
    described = told.get("/openapi.json").json()
    parts = described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                if "application/json" not in answer.get("content", {}):
                    continue
                content = answer["content"]["application/json"]
                name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                assert "example" in content or parts[name]["examples"], (method, path, status)
    for name, schema in parts.items():
        for one in schema.get("examples", ()):
            getattr(schemas, name).model_validate(one)


def test_the_token_is_described(told: TestClient, tmp_path: Path) -> None:
    described = told.get("/openapi.json").json()
    [(name, scheme)] = described["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for path, methods in described["paths"].items():
        for operation in methods.values():
            free = path in ("/healthz", "/readyz")
            assert operation.get("security", []) == ([] if free else [{name: []}]), path
    # Described as it is: a service with a token demands it of just these.
    with client_of(tmp_path / "store.db", token="a-token-of-these-tests") as client:
        for path, methods in described["paths"].items():
            for method in methods:
                answer = client.request(method, path.replace("{shot}", "1").replace("{key}", "0" * 16))
                assert (answer.status_code == 401) == (path not in ("/healthz", "/readyz")), path
