"""A service around the fake model, in this process, and how tests speak to it."""

import time
from pathlib import Path
from typing import Any

from fake_runtime import FakeRuntime
from starlette.testclient import TestClient
from web_parts import BOX, file

from tenet.predictor import Tenet
from tenet.web.app import create_app
from tenet.web.limits import Limits

BOX_TEXT = ",".join(str(value) for value in BOX)
LOCAL = "http://127.0.0.1:8000"


def client_of(
    where: Path | str, runtime: FakeRuntime | None = None, token: str | None = None, **limits: Any
) -> TestClient:
    app = create_app(Tenet(runtime or FakeRuntime()), where, token, Limits(**limits))
    return TestClient(app, base_url=LOCAL, raise_server_exceptions=False)


def teach(client: TestClient, colour: str = "red", *seeds: int, box: str = BOX_TEXT) -> dict[str, Any]:
    files = [("pictures", (f"{seed}.png", file(colour, seed))) for seed in seeds or (0,)]
    answer = client.post(f"/v1/classes/{colour}/shots", files=files, data={"boxes": [box] * len(files)})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def detect(client: TestClient, *files: bytes, **fields: Any) -> Any:
    parts = [("pictures", (f"{row}.png", one)) for row, one in enumerate(files)]
    return client.post("/v1/detect", files=parts, data=fields)


def message(answer: Any, status: int) -> str:
    assert answer.status_code == status, answer.text
    text = answer.json()["error"]["message"]
    assert "Traceback" not in answer.text
    assert "\n" not in text
    return str(text)


def until(true: Any) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
