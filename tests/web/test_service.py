"""The service by its routes, with the fake model: teach, detect, explain, files."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bank_parts import same_features
from fake_bank import scene
from fake_runtime import FakeRuntime
from service_parts import client_of, detect, message, teach
from starlette.testclient import TestClient
from web_parts import BOX, file, png

from tenet.bank import ClassBank
from tenet.predictor import Tenet
from tenet.results.coco import from_coco

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


def test_fields_that_do_not_exist_are_refused_and_the_likely_one_is_named(client: TestClient) -> None:
    teach(client)
    assert "'treshold': expected no such field; did you mean threshold?" in message(
        detect(client, file(), treshold="0.3"), 422
    )
    assert "there is classes, limit, pictures" in message(detect(client, file(), q="1"), 422)
    answer = client.post("/v1/detect?threshold=0.3", files={"pictures": ("a.png", file())})
    assert "threshold belongs into the body" in message(answer, 422)
    answer = client.post("/v1/detect", files={"picture": ("a.png", file())})
    assert "did you mean pictures?" in message(answer, 422)
    assert "did you mean limit?" in message(client.get("/v1/classes?limits=3"), 422)
    assert client.get("/v1/classes?limit=3&start=0").status_code == 200


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
    assert answer["explained"][0]["score"] is None, "it was asked for and not found"
    assert answer["below"] is None
    assert "asked for" in answer["note"]
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
        assert (answer.json()["total"], answer.json()["added"]) == (2, 3)
        known = other.post("/v1/bank", files={"bank": ("x.bank", content)}).json()
        assert (known["total"], known["added"]) == (2, 0)
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
