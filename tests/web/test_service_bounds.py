"""What the service refuses and survives: a full queue, too much, other sites, no token, the unexpected."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_runtime import FakeRuntime
from service_parts import LOCAL, client_of, detect, message, teach, until
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from web_parts import file, png

from tenet.bank import ClassBank
from tenet.web.admission import Admission
from tenet.web.limits import Limits

# ---- the queue


class Gate(FakeRuntime):
    """Stands still until it is let go; remembers how many pictures came together."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.at_work, self.together = threading.Event(), threading.Event(), []

    def encode_images(self, pictures):  # type: ignore[no-untyped-def]
        self.at_work.set()
        assert self.go.wait(30)
        self.together.append(len(pictures))
        return super().encode_images(pictures)


def in_threads(count: int, work: Any) -> tuple[list[threading.Thread], list[Any]]:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(work())) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads, answers


def test_what_waits_is_looked_at_together(tmp_path: Path) -> None:
    gate = Gate()
    with client_of(tmp_path / "store.db", gate, batch=4) as client:
        teach(client)
        queue = client.app.state.service.queue  # type: ignore[attr-defined]
        threads, answers = in_threads(1, lambda: detect(client, file()))
        assert gate.at_work.wait(30)
        more, others = in_threads(6, lambda: detect(client, file("red", 1)))
        until(lambda: len(queue) == 6)
        gate.go.set()
        for thread in threads + more:
            thread.join()
        assert all(answer.status_code == 200 for answer in answers + others)
        assert gate.together == [1, 4, 2]
        alone = detect(client, file("red", 1)).json()["pictures"]
        assert all(answer.json()["pictures"] == alone for answer in others)


def test_a_full_queue_says_so_at_once_and_loses_nothing(tmp_path: Path) -> None:
    gate = Gate()
    with client_of(tmp_path / "store.db", gate, waiting=3) as client:
        teach(client)
        queue = client.app.state.service.queue  # type: ignore[attr-defined]
        first, answers = in_threads(1, lambda: detect(client, file()))
        assert gate.at_work.wait(30)
        threads, waiting = in_threads(3, lambda: detect(client, file()))
        until(lambda: len(queue) == 3)
        start = time.monotonic()
        refused = detect(client, file())
        assert time.monotonic() - start < 5
        assert "full" in message(refused, 503)
        assert int(refused.headers["retry-after"]) >= 1
        assert client.get("/healthz").status_code == 200
        gate.go.set()
        for thread in first + threads:
            thread.join()
        assert [answer.status_code for answer in answers + waiting] == [200] * 4
        assert detect(client, file()).status_code == 200
        assert "tenet_queue_refused_total 1.0" in client.get("/metrics").text


class SlowShots(FakeRuntime):
    """Encodes a class each time that it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.turns, self.begun = threading.Semaphore(1), 0

    def encode_shots(self, shots):  # type: ignore[no-untyped-def]
        self.begun += 1
        assert self.turns.acquire(timeout=30)
        return super().encode_shots(shots)


def test_who_asks_while_a_bank_comes_in_is_answered_between_two_classes(tmp_path: Path) -> None:
    bank = ClassBank(FakeRuntime("other"))
    for name in ("one", "two", "three"):
        bank.register(name, [file("blue")])
    bank.save(tmp_path / "other.bank")
    upload = {"bank": ("x", (tmp_path / "other.bank").read_bytes())}
    slow = SlowShots()
    with client_of(tmp_path / "store.db", slow) as client:
        teach(client)
        queue = client.app.state.service.queue  # type: ignore[attr-defined]
        [importing], told = in_threads(
            1, lambda: client.post("/v1/bank", files=upload, data={"rebuild": "true"})
        )
        until(lambda: slow.begun == 2)
        [asking], answers = in_threads(1, lambda: detect(client, file(), classes="red"))
        until(lambda: len(queue) == 1)
        slow.turns.release()
        asking.join(30)
        assert answers[0].status_code == 200
        assert importing.is_alive()
        assert slow.begun <= 3
        slow.turns.release(2)
        importing.join(30)
        assert [one["name"] for one in told[0].json()["classes"]] == ["one", "two", "three"]


def test_a_bank_waits_for_a_place_in_the_queue(tmp_path: Path) -> None:
    gate = Gate()
    with client_of(tmp_path / "store.db", gate, waiting=1) as client:
        teach(client)
        content = client.get("/v1/bank").content
        queue = client.app.state.service.queue  # type: ignore[attr-defined]
        first, _ = in_threads(1, lambda: detect(client, file()))
        assert gate.at_work.wait(30)
        second, _ = in_threads(1, lambda: detect(client, file()))
        until(lambda: len(queue) == 1)
        importing, told = in_threads(1, lambda: client.post("/v1/bank", files={"bank": ("x", content)}))
        until(lambda: "tenet_queue_refused_total 1.0" in client.get("/metrics").text)
        gate.go.set()
        for thread in first + second + importing:
            thread.join()
        assert [one["added"] for one in told[0].json()["classes"]] == [0]


def test_too_many_open_requests_are_refused_before_they_are_read(tmp_path: Path) -> None:
    gate = Gate()
    with client_of(tmp_path / "store.db", gate, open_requests=1) as client:
        teach(client)
        threads, answers = in_threads(1, lambda: detect(client, file()))
        assert gate.at_work.wait(30)
        refused = detect(client, file())
        assert "busy" in message(refused, 503)
        assert refused.headers["retry-after"]
        gate.go.set()
        threads[0].join()
        assert answers[0].status_code == 200


def test_an_answer_that_takes_too_long(tmp_path: Path) -> None:
    gate = Gate()
    with client_of(tmp_path / "store.db", gate, seconds=0.3) as client:
        teach(client)
        assert "within 0.3 s" in message(detect(client, file()), 504)
        gate.go.set()
        until(lambda: detect(client, file()).status_code == 200)


def test_what_nobody_expected_is_an_answer_without_a_trace(tmp_path: Path) -> None:
    class Broken(FakeRuntime):
        def encode_images(self, pictures):  # type: ignore[no-untyped-def]
            raise RuntimeError("secret of the inside")

    with client_of(tmp_path / "store.db", Broken()) as client:
        teach(client)
        answer = detect(client, file())
        assert "log" in message(answer, 500)
        assert "secret" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert client.get("/healthz").status_code == 200


# ---- limits


def test_upload_limits(tmp_path: Path) -> None:
    with client_of(tmp_path / "store.db", upload=200_000, pixels=50_000, pictures=2) as client:
        teach(client)
        assert "MB" in message(detect(client, b"x" * 300_000), 413)
        assert "pixels" in message(detect(client, png(np.zeros((250, 250, 3), np.uint8))), 413)
        assert "at most 2" in message(detect(client, file(), file(), file()), 413)

        def endless() -> Iterator[bytes]:
            for _ in range(100):
                yield b"x" * 10_000

        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        message(client.post("/v1/detect", content=endless(), headers=headers), 413)
        message(client.post("/v1/export", content=endless()), 413)


def arriving(chunk: bytes, count: int) -> int:
    """Bytes that a service lets in of a body that comes in `count` chunks, one every 50 ms."""
    limits = Limits(body_seconds=0.2, megabyte_seconds=5.0)
    left, came = [chunk] * count, 0

    async def receive() -> Message:
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal came
        more = True
        while more:
            message = await receive()
            came, more = came + len(message["body"]), message["more_body"]

    async def send(message: Message) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/detect", "headers": []}
    asyncio.run(Admission(application, limits)(scope, receive, send))
    return came


def test_a_body_that_trickles_and_one_that_is_large() -> None:
    with pytest.raises(HTTPException, match="took too long to arrive") as refused:
        arriving(b"x", 60)
    assert refused.value.status_code == 408
    # As slow, but much comes: that is the way of a large file.
    assert arriving(bytes(1_000_000), 20) == 20_000_000


def test_a_decompression_bomb(client: TestClient) -> None:
    teach(client)
    bomb = png(np.zeros((7000, 7000), np.uint8))
    assert len(bomb) < 100_000
    assert "pixels" in message(detect(client, bomb), 413)
    answer = client.post("/v1/classes/red/shots", files={"pictures": ("a.png", bomb)})
    assert "pixels" in message(answer, 413)


# ---- safety


@pytest.mark.parametrize(
    "path", ["/", "/v1/classes", "/healthz", "/nothing", "/openapi.json", "/static/nothing"]
)
def test_headers_on_every_answer(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "server" not in headers


def test_another_sites_page_may_not_use_it(client: TestClient) -> None:
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8000"},
        {"Host": "["},
    ):
        message(client.post("/v1/classes/red/shots", files={"pictures": file()}, headers=headers), 403)
    own = {"Origin": LOCAL, "Sec-Fetch-Site": "same-origin"}
    assert client.get("/v1/classes", headers=own).status_code == 200
    assert client.get("/v1/classes", headers={"Host": "localhost:8000"}).status_code == 200
    assert client.get("/v1/classes", headers={"Host": "[::1]:8000"}).status_code == 200


def test_a_token(tmp_path: Path) -> None:
    token = "a-long-and-secret-token"
    with client_of(tmp_path / "store.db", token=token) as client:
        for given in (
            None,
            "Bearer wrong",
            f"Basic {token}",
            f"Bearer {token}x",
            token,
            "Bearer ",
            "Bearer é",
        ):
            headers = {} if given is None else {"Authorization": given.encode("utf-8")}
            answer = client.get("/v1/classes", headers=headers)
            message(answer, 401)
            assert answer.headers["www-authenticate"] == "Bearer"
        message(client.get("/metrics"), 401)
        message(client.get("/openapi.json"), 401)
        assert client.get("/v1/classes", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert client.get("/healthz").status_code == 200
        assert client.get("/").status_code == 200
        elsewhere = {"Authorization": f"Bearer {token}", "Host": "vision.example"}
        assert client.get("/v1/classes", headers=elsewhere).status_code == 200


# ---- for supervisors and programmers


def test_health_and_metrics(client: TestClient) -> None:
    until(lambda: client.get("/readyz").status_code == 200)
    assert client.get("/healthz").json()["status"] == "ok"
    teach(client)
    detect(client, file(), file("red", 1))
    client.get("/v1/classes/red")
    client.get("/v1/no/such/path")
    text = client.get("/metrics").text
    assert 'tenet_requests_total{method="POST",route="/v1/detect",status="200"} 1.0' in text
    assert 'route="/v1/classes/{name}"' in text
    assert "such" not in text
    assert "tenet_pictures_total 2.0" in text


def test_not_ready_without_its_store(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    until(lambda: client.get("/readyz").status_code == 200)

    def away() -> int:
        raise OSError("the database went away")

    service = client.app.state.service  # type: ignore[attr-defined]
    monkeypatch.setattr(service.library.store, "revision", away)
    assert client.get("/readyz").status_code == 503


def test_the_description_is_complete(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            assert operation.get("description"), (method, path)
            if path.startswith("/v1"):
                assert {"422", "503"} <= set(operation["responses"]), (method, path)
