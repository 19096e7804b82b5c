"""The service and its store: odd names, changes under a request, a store that is away for a while."""

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from fake_runtime import FakeRuntime
from service_parts import client_of, detect, message, teach, until
from starlette.testclient import TestClient
from web_parts import file

from tenet.web import database
from tenet.web import service as service_module
from tenet.web.failures import BusyError, ChangedError


@pytest.fixture
def service(where: str) -> Any:
    """A service on each kind of store."""
    with client_of(where) as client:
        yield client


def test_a_name_that_no_class_can_have_is_not_there(service: TestClient) -> None:
    ways = ("GET", ""), ("DELETE", ""), ("PATCH", ""), ("DELETE", "/shots/1")
    pictures = ("GET", "/shots/1/thumbnail"), ("GET", "/shots/1/scene")
    for method, rest in ways + pictures:
        for name in ("a%00b", "%00", "%20a", "a%0Ab"):
            body = {"name": "other"} if method == "PATCH" else None
            assert "expected" in message(service.request(method, f"/v1/classes/{name}{rest}", json=body), 404)


def test_nor_can_it_be_taught_or_given(service: TestClient) -> None:
    teach(service)
    answer = service.post("/v1/classes/a%00b/shots", files={"pictures": ("a.png", file())})
    assert "control character" in message(answer, 422)
    assert "control character" in message(service.patch("/v1/classes/red", json={"name": "a\0b"}), 422)
    assert message(detect(service, file(), classes="a\0b"), 422)


def test_an_answer_is_of_one_moment(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its list of classes is that of its detections, also where somebody renames them meanwhile."""
    teach(client)
    inside = client.app.state.service  # type: ignore[attr-defined]
    snapshot, names = inside.library.snapshot, ["red", "crimson", "scarlet"]

    def then_renamed() -> Any:
        now = snapshot()
        if len(names) > 1:
            inside.teacher.rename(names.pop(0), names[0])
        return now

    monkeypatch.setattr(inside.library, "snapshot", then_renamed)
    told = detect(client, file("red", 1)).json()
    assert told["pictures"][0]["detections"]
    assert {hit["class"] for hit in told["pictures"][0]["detections"]} <= set(told["classes"])


def test_a_locked_store_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    with client_of(tmp_path / "store.db") as client:
        teach(client)
        other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = client.post("/v1/classes/red/shots", files={"pictures": ("a.png", file("red", 1))})
        assert "store is away or locked" in message(answer, 503)
        assert int(answer.headers["retry-after"]) >= 1
        assert "locked" in message(client.delete("/v1/classes/red"), 503)
        # Who only reads does not wait for who writes.
        assert detect(client, file()).status_code == 200
        other.execute("ROLLBACK")
        other.close()
        assert teach(client, "red", 1)["added"] == 1


def test_a_store_that_is_away_is_asked_again(service: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    teach(service)
    engine = service.app.state.service.database._engine  # type: ignore[attr-defined]
    monkeypatch.setattr(engine.pool, "_timeout", 0.1)
    monkeypatch.setattr(engine.pool, "_max_overflow", 0)
    taken = []
    # The service's own threads may have one of them at this moment.
    while engine.pool.checkedout() < engine.pool.size():
        taken.append(engine.connect())
    answer = service.get("/v1/classes")
    assert "store is away" in message(answer, 503)
    assert int(answer.headers["retry-after"]) >= 1
    assert service.get("/readyz").status_code == 503
    assert service.get("/healthz").status_code == 200
    for one in taken:
        one.close()
    assert service.get("/v1/classes").json()["total"] == 1


def test_a_job_waits_for_its_store(tmp_path: Path) -> None:
    """A picture that cannot be looked at because the store is away is not failed."""
    from test_jobs import finished, zipped

    class Away(FakeRuntime):
        times = 2

        def encode_images(self, pictures):  # type: ignore[no-untyped-def]
            if self.times:
                self.times -= 1
                with database._or_busy():
                    raise database.PoolTimeoutError("no connection")
            return super().encode_images(pictures)

    runtime = Away()
    with client_of(tmp_path / "store.db", runtime) as client:
        teach(client)
        started = client.post("/v1/jobs", files={"archive": ("a.zip", zipped({"a.png": file()}))})
        job = finished(client, started.json()["id"])
        assert (job["done"], job["failed"], runtime.times) == (1, 0, 0)


def test_a_class_that_cannot_be_encoded_is_left_out(tmp_path: Path) -> None:
    class Picky(FakeRuntime):
        def encode_shots(self, shots):  # type: ignore[no-untyped-def]
            if shots[0].crop.mean(axis=(0, 1)).argmax() == 2:
                raise RuntimeError("no blue")
            return super().encode_shots(shots)

    with client_of(tmp_path / "store.db") as client:
        teach(client, "blue")
        teach(client, "red")
        assert client.get("/readyz").json()["left_out"] == 0
    with client_of(tmp_path / "store.db", Picky("another")) as client:
        until(lambda: client.get("/readyz").status_code == 200)
        assert client.get("/readyz").json()["left_out"] == 1
        assert [one["name"] for one in client.get("/v1/classes").json()["classes"]] == ["red"]
        assert detect(client, file("red", 1)).json()["classes"] == ["red"]
        assert client.delete("/v1/classes/blue").status_code == 204


def test_a_store_that_is_away_at_the_start_is_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "REBUILD_SECONDS", 0.05)
    client = client_of(tmp_path / "store.db")
    inside = client.app.state.service  # type: ignore[attr-defined]
    heads, fails = inside.library.store.heads, [1, 2]

    def away() -> Any:
        if fails:
            fails.pop()
            raise BusyError("the store is away")
        return heads()

    monkeypatch.setattr(inside.library.store, "heads", away)
    with client:
        until(lambda: client.get("/readyz").status_code == 200)
        assert not fails


def test_all_tries_have_one_time_limit(tmp_path: Path) -> None:
    class Changing(FakeRuntime):
        def encode_images(self, pictures):  # type: ignore[no-untyped-def]
            time.sleep(0.25)
            raise ChangedError("red: the class changed while it was used; ask again")

    with client_of(tmp_path / "store.db", Changing(), seconds=0.4) as client:
        teach(client)
        assert "within 0.4 s" in message(detect(client, file()), 504)
