"""The service by its routes, with the fake model: teach, detect, explain, jobs, files, limits, safety."""

import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bank_parts import same_features
from fake_bank import scene
from fake_runtime import FakeRuntime
from starlette.testclient import TestClient
from web_parts import BOX, file, png

from tenet.bank import ClassBank
from tenet.predictor import Tenet
from tenet.results.coco import from_coco
from tenet.web.app import create_app
from tenet.web.limits import Limits

BOX_TEXT = ",".join(str(value) for value in BOX)
LOCAL = "http://127.0.0.1:8000"


def client_of(
    where: Path, runtime: FakeRuntime | None = None, token: str | None = None, **limits: Any
) -> TestClient:
    app = create_app(Tenet(runtime or FakeRuntime()), where, token, Limits(**limits))
    return TestClient(app, base_url=LOCAL, raise_server_exceptions=False)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(tmp_path / "store.db") as client:
        yield client


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


# ---- teaching


def test_teach_look_and_forget(client: TestClient) -> None:
    assert client.get("/v1/classes").json()["classes"] == []
    told = teach(client, "red", 0, 1)
    assert (told["verdict"], told["added"], len(told["shots"])) == ("good", 2, 2)
    assert told["shots"][0]["picture"] == [160, 120]
    listed = client.get("/v1/classes").json()
    assert listed["total"] == 1
    assert listed["classes"][0]["shots"] == told["shots"]
    thumbnail = client.get(f"/v1/classes/red/shots/{told['shots'][0]['id']}/thumbnail")
    assert thumbnail.headers["content-type"] == "image/jpeg"
    assert thumbnail.content.startswith(b"\xff\xd8")
    assert client.get(f"/v1/classes/red/shots/{told['shots'][0]['id']}/scene").content.startswith(b"\xff\xd8")
    left = client.delete(f"/v1/classes/red/shots/{told['shots'][0]['id']}").json()
    assert [shot["id"] for shot in left["shots"]] == [told["shots"][1]["id"]]
    assert client.patch("/v1/classes/red", json={"name": "crimson"}).json()["name"] == "crimson"
    assert client.delete("/v1/classes/crimson").status_code == 204
    assert client.get("/v1/classes").json()["total"] == 0


def test_a_name_in_any_script(client: TestClient) -> None:
    answer = client.post("/v1/classes/松ぼっくり 100%/shots", files={"pictures": ("a.png", file())})
    assert answer.status_code == 201
    assert client.get("/v1/classes/松ぼっくり 100%").json()["name"] == "松ぼっくり 100%"


def test_it_is_there_after_a_restart(tmp_path: Path) -> None:
    with client_of(tmp_path / "store.db") as client:
        told = teach(client, "red", 0, 1)
    with client_of(tmp_path / "store.db") as client:
        assert client.get("/v1/classes/red").json()["shots"] == told["shots"]
        assert len(detect(client, file("red", 7)).json()["pictures"][0]["detections"]) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/v1/classes/red"),
        ("delete", "/v1/classes/red"),
        ("delete", "/v1/classes/red/shots/1"),
        ("get", "/v1/classes/red/shots/1/thumbnail"),
        ("get", "/v1/jobs/0123456789abcdef"),
        ("delete", "/v1/jobs/0123456789abcdef"),
        ("get", "/v1/jobs/0123456789abcdef/results"),
        ("get", "/static/../app.py"),
        ("get", "/static/%2e%2e%2fapp.py"),
        ("get", "/nothing"),
    ],
)
def test_what_is_not_there(client: TestClient, method: str, path: str) -> None:
    message(getattr(client, method)(path), 404)


@pytest.mark.parametrize(
    ("content", "box", "says"),
    [
        (b"", "whole", "expected a picture"),
        (b"<html>", "whole", "expected a picture"),
        (file()[:300], "whole", "truncated"),
        (file(), "1,2,3", "expected x1,y1,x2,y2"),
        (file(), "nan,0,5,5", "finite"),
        (file(), "50,50,20,20", "x2 > x1"),
        (file(), "500,500,600,600", "inside its picture"),
    ],
)
def test_bad_shots(client: TestClient, content: bytes, box: str, says: str) -> None:
    answer = client.post("/v1/classes/red/shots", files={"pictures": ("a.png", content)}, data={"boxes": box})
    assert says in message(answer, 422)
    assert client.get("/v1/classes").json()["total"] == 0


# ---- detecting


def test_detections_are_those_of_the_library(client: TestClient) -> None:
    teach(client, "red", 0, 1)
    teach(client, "blue")
    bank = ClassBank(FakeRuntime())
    bank.register("red", [(file("red", 0), BOX), (file("red", 1), BOX)])
    bank.register("blue", [(file("blue"), BOX)])
    query = png(scene(300, 200, ("red", (20, 30, 90, 100)), ("blue", (150, 40, 260, 150))))
    answer = detect(client, query).json()
    found = Tenet(FakeRuntime()).detect(query, bank)
    rows = answer["pictures"][0]["detections"]
    assert answer["classes"] == ["red", "blue"]
    assert (answer["pictures"][0]["width"], answer["pictures"][0]["height"]) == (300, 200)
    assert len(rows) == len(found)
    assert [row["class"] for row in rows] == found.names.tolist()
    np.testing.assert_allclose([row["box"] for row in rows], found.boxes, atol=0.006)
    np.testing.assert_allclose([row["score"] for row in rows], found.scores, atol=1e-6)
    ids = {name: [shot["id"] for shot in client.get(f"/v1/classes/{name}").json()["shots"]] for name in bank}
    assert [row["shot_id"] for row in rows] == [ids[row["class"]][row["shot"]] for row in rows]


def test_many_in_one_request_are_the_same_as_one_by_one(client: TestClient) -> None:
    teach(client)
    pictures = [file("red", seed) for seed in range(5)]
    together = detect(client, *pictures).json()["pictures"]
    alone = [detect(client, one).json()["pictures"][0]["detections"] for one in pictures]
    assert [one["detections"] for one in together] == alone


def test_options(client: TestClient) -> None:
    teach(client, "red")
    teach(client, "blue")
    both = png(scene(300, 200, ("red", (20, 30, 90, 100)), ("blue", (150, 40, 260, 150))))
    only = detect(client, both, classes="blue").json()
    assert only["classes"] == ["blue"]
    assert {row["class"] for row in only["pictures"][0]["detections"]} == {"blue"}
    assert detect(client, both, threshold="0.95").json()["pictures"][0]["detections"] == []
    assert len(detect(client, both, limit="1").json()["pictures"][0]["detections"]) == 1
    assert "green" in message(detect(client, both, classes="green"), 422)
    message(detect(client, both, threshold="7"), 422)
    message(detect(client, both, size="9"), 422)
    assert "64" in message(detect(client, both, size="10"), 422)


def test_one_bad_picture_among_others(client: TestClient) -> None:
    teach(client)
    answer = detect(client, file(), b"no picture", file()[:300]).json()
    assert [one["name"] for one in answer["pictures"]] == ["0.png"]
    assert [one["name"] for one in answer["failed"]] == ["1.png", "2.png"]
    assert "expected a picture" in message(detect(client, b"no picture"), 422)


def test_an_empty_store_says_what_to_do(client: TestClient) -> None:
    assert "at least one class" in message(detect(client, file()), 422)


def test_explain(client: TestClient) -> None:
    told = teach(client, "red", 0, 1)
    answer = client.post("/v1/explain", files={"picture": ("a.png", file("red", 5))}).json()
    [why] = answer["explained"]
    assert set(why["region_maps"]) == set(why["shot_maps"]) == {"fo", "ho", "fo_ho", "spatial"}
    assert np.shape(why["region_maps"]["fo"]) == (3, 3)
    assert len(why["cosines"]) == 2
    assert why["shot_id"] in [shot["id"] for shot in told["shots"]]
    asked = {"classes": "red", "box": "10,10,60,60"}
    answer = client.post("/v1/explain", files={"picture": ("a.png", file())}, data=asked).json()
    assert answer["explained"][0]["box"] == [10, 10, 60, 60]
    outside = {"classes": "red", "box": "1000,1000,2000,2000"}
    message(client.post("/v1/explain", files={"picture": ("a.png", file())}, data=outside), 422)
    figure = client.post("/v1/explain/figure", files={"picture": ("a.png", file())})
    assert figure.content.startswith(b"\x89PNG")


# ---- files


def test_export_and_read_again(client: TestClient) -> None:
    teach(client)
    found = detect(client, file(), file("red", 1)).json()
    request = {"classes": found["classes"], "pictures": found["pictures"]}
    coco = client.post("/v1/export", json={**request, "format": "coco"})
    read = from_coco(coco.json())
    np.testing.assert_allclose(
        [one.detections.boxes[0] for one in read],
        [one["detections"][0]["box"] for one in found["pictures"]],
        atol=0.01,
    )
    csv = client.post("/v1/export", json={**request, "format": "csv"})
    assert csv.text.count("\n") == 3
    assert "attachment" in csv.headers["content-disposition"]
    for layout, names in (("yolo", ["labels/0.txt", "labels/1.txt", "classes.txt"]), ("voc", None)):
        content = client.post("/v1/export", json={**request, "format": layout}).content
        listed = zipfile.ZipFile(io.BytesIO(content)).namelist()
        assert listed == (names or ["Annotations/0.xml", "Annotations/1.xml"])
    none = client.post("/v1/export", json={**request, "format": "csv", "threshold": 0.99})
    assert none.text.count("\n") == 1


def test_an_export_cannot_be_made_to_lead_out_of_its_folder(client: TestClient) -> None:
    names = ["../../etc/passwd.png", "..", "/abs.png", "C:\\x.png", "a/b.png", "", "\x00"]
    pictures = [{"name": name, "width": 9, "height": 9, "detections": []} for name in names]
    body = {"format": "voc", "classes": [], "pictures": pictures}
    listed = zipfile.ZipFile(io.BytesIO(client.post("/v1/export", json=body).content)).namelist()
    assert len(set(listed)) == len(names)
    assert all(name.count("/") == 1 and ".." not in name and "\\" not in name for name in listed)


def test_an_export_of_unknown_classes(client: TestClient) -> None:
    row = {"class": "blue", "score": 0.5, "box": [0, 0, 5, 5], "shot": 0}
    picture = {"name": "a", "width": 9, "height": 9, "detections": [row]}
    body = {"format": "csv", "classes": ["red"], "pictures": [picture]}
    assert "classes" in message(client.post("/v1/export", json=body), 422)


def test_the_bank_goes_out_and_in(client: TestClient, tmp_path: Path) -> None:
    assert "empty" in message(client.get("/v1/bank"), 422)
    teach(client, "red", 0, 1)
    teach(client, "blue")
    content = client.get("/v1/bank").content
    (tmp_path / "out.bank").write_bytes(content)
    bank = ClassBank.load(tmp_path / "out.bank", FakeRuntime())
    assert bank.names == ("red", "blue")
    with client_of(tmp_path / "other.db") as other:
        answer = other.post("/v1/bank", files={"bank": ("x.bank", content)})
        assert [(one["name"], one["added"]) for one in answer.json()["classes"]] == [("red", 2), ("blue", 1)]
        (tmp_path / "again.bank").write_bytes(other.get("/v1/bank").content)
    again = ClassBank.load(tmp_path / "again.bank", FakeRuntime())
    assert all(same_features(bank.features(name), again.features(name)) for name in bank)
    assert all(bank.shots(name) == again.shots(name) for name in bank)
    one = client.get("/v1/bank", params={"classes": "blue"}).content
    (tmp_path / "one.bank").write_bytes(one)
    assert ClassBank.open(tmp_path / "one.bank").names == ("blue",)


@pytest.mark.parametrize("content", [b"", b"nonsense" * 50])
def test_a_bank_that_is_none(client: TestClient, content: bytes) -> None:
    text = message(client.post("/v1/bank", files={"bank": ("x.bank", content)}), 422)
    assert text.startswith("bank: expected")
    assert "/tmp" not in text


def test_a_bank_of_another_model(client: TestClient, tmp_path: Path) -> None:
    bank = ClassBank(FakeRuntime("other"))
    bank.register("red", [file()])
    bank.save(tmp_path / "other.bank")
    upload = {"bank": ("x", (tmp_path / "other.bank").read_bytes())}
    assert "rebuild" in message(client.post("/v1/bank", files=upload), 409)
    assert client.post("/v1/bank", files=upload, data={"rebuild": "true"}).status_code == 200


# ---- jobs


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
        if job["state"] in ("done", "failed"):
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


@pytest.mark.parametrize(
    ("content", "status", "says"),
    [
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


def until(true: Any) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


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
    assert "example" in json.dumps(described)
