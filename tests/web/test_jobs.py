"""Jobs: many pictures in the background, and archives that mean harm."""

import io
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_runtime import FakeRuntime
from service_parts import client_of, detect, message, teach
from starlette.testclient import TestClient
from web_parts import OPENED, file

from tenet.web import job_store
from tenet.web.database import Database
from tenet.web.failures import NotFoundError
from tenet.web.job_store import LEASE, JobStore


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def finished(client: TestClient, key: str) -> dict[str, Any]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        job = client.get(f"/v1/jobs/{key}").json()
        if job["state"] == "done":
            return dict(job)
        time.sleep(0.05)
    raise AssertionError(f"job not done: {job}")


def test_a_job_finds_what_requests_find(client: TestClient) -> None:
    teach(client)
    files = {f"folder/{seed}.png": file("red", seed) for seed in range(11)}
    files |= {
        "folder/bad.png": b"no picture",
        "notes.txt": b"hello",
        "__MACOSX/0.png": b"",
        ".hidden.png": b"",
    }
    started = client.post("/v1/jobs", files={"archive": ("a.zip", zipped(files))})
    assert started.status_code == 202
    job = finished(client, started.json()["id"])
    assert (job["state"], job["total"], job["done"], job["failed"]) == ("done", 12, 11, 1)
    results = client.get(f"/v1/jobs/{job['id']}/results").json()
    assert [one["name"] for one in results["pictures"]] == [f"folder/{seed}.png" for seed in range(11)]
    assert results["failed"][0]["name"] == "folder/bad.png"
    alone = detect(client, file("red", 3)).json()["pictures"][0]
    assert results["pictures"][3]["detections"] == alone["detections"]
    part = client.get(f"/v1/jobs/{job['id']}/results", params={"start": 4, "limit": 2}).json()
    assert part["pictures"] == results["pictures"][4:6]
    coco = client.get(f"/v1/jobs/{job['id']}/export", params={"format": "coco"}).json()
    assert len(coco["images"]) == 11
    assert [one["id"] for one in client.get("/v1/jobs").json()["jobs"]] == [job["id"]]
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 204
    assert client.get("/v1/jobs").json()["jobs"] == []


def test_a_job_of_loose_files(client: TestClient) -> None:
    teach(client)
    files = [("pictures", (f"{seed}.png", file("red", seed))) for seed in range(3)]
    started = client.post("/v1/jobs", files=files, data={"threshold": "0.2"})
    job = finished(client, started.json()["id"])
    assert (job["done"], job["options"]["threshold"]) == (3, 0.2)
    export = f"/v1/jobs/{job['id']}/export?format=csv&threshold="
    assert client.get(f"{export}0.3").status_code == 200
    assert "at least the job's own, 0.2" in message(client.get(f"{export}0.1"), 422)


def test_a_job_is_taken_up_again_after_a_restart(tmp_path: Path) -> None:
    class Slow(FakeRuntime):
        def encode_images(self, pictures):  # type: ignore[no-untyped-def]
            time.sleep(0.2)
            return super().encode_images(pictures)

    with client_of(tmp_path / "store.db", Slow(), batch=1) as client:
        teach(client)
        files = {f"{seed}.png": file("red", seed) for seed in range(6)}
        key = client.post("/v1/jobs", files={"archive": ("a.zip", zipped(files))}).json()["id"]
        while client.get(f"/v1/jobs/{key}").json()["done"] < 2:
            time.sleep(0.02)
    fresh = client_of(tmp_path / "store.db")
    # Nobody waits for the lease of the server that is gone in a test.
    with fresh.app.state.service.database.writing() as connection:  # type: ignore[attr-defined]
        connection.exec_driver_sql("UPDATE tenet_jobs SET lease = 0")
    with fresh as client:
        job = finished(client, key)
        assert (job["state"], job["done"], job["failed"]) == ("done", 6, 0)


def encrypted() -> bytes:
    """An archive that says of its picture that it has a password."""
    content = bytearray(zipped({"a.png": file()}, zipfile.ZIP_STORED))
    content[6] |= 1
    content[content.rfind(b"PK\x01\x02") + 8] |= 1
    return bytes(content)


def long_list() -> bytes:
    """An archive that says of its list of files that it is very long."""
    content = bytearray(zipped({"a.png": file()}))
    content[-10:-6] = (17 * 1024 * 1024).to_bytes(4, "little")
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
        (encrypted(), 422, "without a password"),
        (long_list(), 413, "more files than the service takes"),
        (b"no zip at all", 422, "expected a zip file"),
        (zipped({"../../up.png": b"x"}), 422, "leads out"),
        (zipped({"/etc/cron.d/x.png": b"x"}), 422, "leads out"),
        (zipped({"notes.txt": b"x"}), 422, "found none"),
        (zipped({"a.png": file()})[:-30], 422, "expected a"),
        (zipped({"bomb.png": b"\0" * 3_000_000}), 413, "unpacks to more"),
        (zipped({f"{row}.png": b"\0" * 900_000 for row in range(5)}), 413, "unpacks to more"),
        (zipped({f"{row}.png": b"x" for row in range(30)}), 413, "at most 20"),
    ],
)
def test_hostile_archives(tmp_path: Path, content: bytes, status: int, says: str) -> None:
    limits = {"upload": 1_000_000, "unpacked": 4_000_000, "job_pictures": 20}
    with client_of(tmp_path / "store.db", **limits) as client:
        teach(client)
        assert says in message(client.post("/v1/jobs", files={"archive": ("a.zip", content)}), status)
        assert client.get("/v1/jobs").json()["jobs"] == []


def test_a_job_of_nothing(client: TestClient) -> None:
    teach(client)
    assert "either" in message(client.post("/v1/jobs", data={"threshold": "0.5"}), 422)


def test_only_the_newest_finished_jobs_are_kept(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_store, "MOST_DONE", 2)
    teach(client)
    keys = []
    for seed in range(4):
        started = client.post("/v1/jobs", files={"pictures": ("a.png", file("red", seed))})
        keys.append(finished(client, started.json()["id"])["id"])
    assert [one["id"] for one in client.get("/v1/jobs").json()["jobs"]] == keys[:1:-1]
    message(client.get(f"/v1/jobs/{keys[0]}/results"), 404)


def test_a_job_that_comes_in_slowly_stays(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database = Database(where)
    OPENED.append(database)
    store, now = JobStore(database), [1000.0]
    monkeypatch.setattr(job_store.time, "time", lambda: now[0])

    def slowly() -> Iterator[tuple[str, bytes]]:
        for row in range(6):
            now[0] += LEASE + 5
            assert store.claim("another") is None
            yield f"{row}.png", b"x"

    key = store.create({"classes": []}, slowly())
    assert (store.get(key).state, store.get(key).total) == ("waiting", 6)
    # One whose pictures stop coming is forgotten.
    with pytest.raises(NotFoundError):
        store.create({"classes": []}, stopped(store, now))


def stopped(store: JobStore, now: list[float]) -> Iterator[tuple[str, bytes]]:
    yield "a.png", b"x"
    now[0] += 10 * LEASE
    store.claim("another")
    yield "b.png", b"x"
