"""Result formats: to and from is the same, within the rounding of the format; hostile files are refused."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_bank import COLOURS, FakeBank, scene
from fake_runtime import FakeRuntime
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tenet.cli import main
from tenet.data.formats import read_dataset
from tenet.errors import DataError, InputError, MissingExtraError, TenetError
from tenet.looks.sizes import SeenSize
from tenet.predictor import Tenet
from tenet.results import (
    PictureResult,
    from_coco,
    from_coco_results,
    from_csv,
    from_frame,
    from_supervision,
    from_voc,
    from_yolo,
    picture_results,
    to_coco,
    to_coco_results,
    to_csv,
    to_frame,
    to_supervision,
    to_voc,
    to_yolo,
)
from tenet.results.folder import file_stems, write_results
from tenet.structures import Detections

CLASSES = ("bird", "cat, tabby", 'a "quoted" <dog> & more', "été")


def some(seed: int, n: int, width: int, height: int, classes: tuple[str, ...] = CLASSES) -> Detections:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, width - 3, n), rng.uniform(0, height - 3, n)
    far = np.stack([x + 1 + rng.random(n) * (width - x - 1), y + 1 + rng.random(n) * (height - y - 1)], 1)
    scores = np.sort(rng.permutation(1000)[:n] / 1000)[::-1]
    return Detections(
        np.column_stack([x, y, far]).astype(np.float32).reshape(n, 4),
        scores.astype(np.float32),
        rng.integers(0, len(classes), n),
        rng.integers(0, 5, n),
        classes,
    )


def many(seed: int = 0) -> list[PictureResult]:
    sizes = {"a.jpg": (640, 480), "deep/b c.png": (31, 977), "/outside/ü.webp": (5000, 4000)}
    return [
        PictureResult(name, *size, some(seed + row, 5 + row, *size))
        for row, (name, size) in enumerate(sizes.items())
    ]


def same(one: Detections, two: Detections, pixels: float, shots: bool = True) -> None:
    np.testing.assert_allclose(one.boxes, two.boxes, atol=pixels)
    np.testing.assert_allclose(one.scores, two.scores, atol=1e-6)
    np.testing.assert_array_equal(one.names, two.names)
    if shots:
        np.testing.assert_array_equal(one.shots, two.shots)


def all_same(
    copies: list[PictureResult], found: list[PictureResult], pixels: float, shots: bool = True
) -> None:
    assert [one.file_name for one in copies] == [one.file_name for one in found]
    for copy, one in zip(copies, found, strict=True):
        assert (copy.width, copy.height) == (one.width, one.height)
        same(copy.detections, one.detections, pixels, shots)


seeds = st.integers(0, 10**6)


@given(seeds)
def test_coco_and_back(seed: int) -> None:
    document = json.loads(json.dumps(to_coco(many(seed)), allow_nan=False))
    copies = from_coco(document)
    all_same(copies, many(seed), 1e-3)
    assert copies[0].detections.classes == CLASSES


@given(seeds)
def test_coco_results_and_back(seed: int) -> None:
    rows = json.loads(json.dumps(to_coco_results(many(seed))))
    assert set(rows[0]) == {"image_id", "category_id", "bbox", "score"}
    truth = to_coco(many(seed))
    truth["annotations"] = []
    all_same(from_coco_results(rows, truth), many(seed), 1e-3, shots=False)


def test_coco_results_take_the_ids_of_the_truth() -> None:
    truth = to_coco(many())
    for image in truth["images"]:
        image["id"] += 100
    for category in truth["categories"]:
        category["id"] *= 7
    truth["categories"].reverse()
    truth["annotations"] = []
    rows = to_coco_results(many(), truth)
    assert {row["image_id"] for row in rows} == {101, 102, 103}
    assert {row["category_id"] for row in rows} <= {7, 14, 21, 28}
    all_same(from_coco_results(rows, truth), many(), 1e-3, shots=False)
    truth["categories"].pop()
    with pytest.raises(InputError, match="expected it to have all classes"):
        to_coco_results(many(), truth)


@given(seeds, st.booleans())
def test_yolo_and_back(seed: int, scores: bool) -> None:
    for one in many(seed):
        text = to_yolo(one.detections, one.width, one.height, scores)
        copy = from_yolo(text, one.width, one.height, CLASSES)
        np.testing.assert_allclose(copy.boxes, one.detections.boxes, atol=1e-3)
        np.testing.assert_array_equal(copy.labels, one.detections.labels)
        np.testing.assert_allclose(copy.scores, one.detections.scores if scores else 1, atol=1e-6)


@given(seeds)
def test_voc_and_back(seed: int) -> None:
    for one in many(seed):
        all_same([from_voc(to_voc(one), CLASSES)], [one], 1e-3, shots=False)
        same(from_voc(to_voc(one)).detections, one.detections, 1e-3, shots=False)


@given(seeds)
def test_csv_and_back(seed: int) -> None:
    all_same(from_csv(to_csv(many(seed)), CLASSES), many(seed), 0.0051)
    all_same(from_csv(to_csv(many(seed))), many(seed), 0.0051)


def test_pandas_and_back() -> None:
    pytest.importorskip("pandas")
    frame = to_frame(many())
    assert len(frame) == sum(len(one.detections) for one in many())
    assert frame["score"].dtype == float
    all_same(from_frame(frame, CLASSES), many(), 0)
    shuffled = from_frame(frame.sort_values("x1"), CLASSES)  # a frame's rows are a set
    all_same(sorted(shuffled, key=lambda one: -one.width), sorted(many(), key=lambda one: -one.width), 0)
    assert len(to_frame([PictureResult("a", 9, 9, Detections.empty(CLASSES))])) == 0


def test_supervision_and_back() -> None:
    pytest.importorskip("supervision")
    found = some(3, 12, 640, 480)
    theirs = to_supervision(found)
    assert theirs["class_name"].tolist() == found.names.tolist()
    assert theirs[theirs.confidence > 0.5].xyxy.shape[1] == 4
    same(from_supervision(theirs), found, 0)
    same(from_supervision(theirs, CLASSES), found, 0)
    theirs.metadata.clear()  # as after a tool that keeps no metadata
    same(from_supervision(theirs), found, 0)
    del theirs.data["class_name"]
    assert from_supervision(theirs).classes == ()
    with pytest.raises(InputError, match="class_id"):
        from_supervision(theirs, ["one"])
    none = from_supervision(to_supervision(Detections.empty(CLASSES)))
    assert (len(none), none.classes) == (0, CLASSES)


def test_nothing_found_is_something_to_write() -> None:
    empty = PictureResult("a.jpg", 9, 9, Detections.empty(CLASSES))
    [copy] = from_coco(to_coco([empty]))
    assert (copy.file_name, len(copy.detections), copy.detections.classes) == ("a.jpg", 0, CLASSES)
    assert to_yolo(empty.detections, 9, 9) == ""
    assert len(from_voc(to_voc(empty)).detections) == 0
    assert from_csv(to_csv([empty])) == []
    assert to_coco_results([empty]) == []
    assert from_coco(to_coco([])) == []


def test_a_foreign_order_becomes_best_first() -> None:
    document = to_coco(many())
    document["annotations"].reverse()
    all_same(from_coco(document), many(), 1e-3)


def test_results_of_different_classes_are_not_mixed() -> None:
    one = PictureResult("a", 90, 90, some(0, 2, 90, 90))
    other = PictureResult("b", 90, 90, some(0, 2, 90, 90, ("x", "y")))
    with pytest.raises(InputError, match="same classes"):
        to_coco([one, other])
    with pytest.raises(InputError, match="class names"):
        PictureResult("a", 90, 90, some(0, 2, 90, 90).with_classes(()))
    with pytest.raises(InputError, match="at least 1 x 1"):
        PictureResult("a", 0, 90, Detections.empty())


def _annotation(**change: Any) -> dict[str, Any]:
    document = to_coco(many())
    document["annotations"][0].update(change)
    return document


HOSTILE: dict[str, Any] = {
    "coco is a list": lambda: from_coco([]),  # type: ignore[arg-type]
    "coco without images": lambda: from_coco({"annotations": [], "categories": []}),
    "coco score": lambda: from_coco(_annotation(score="high")),
    "coco score above 1": lambda: from_coco(_annotation(score=1.5)),
    "coco box": lambda: from_coco(_annotation(bbox=[1, 2, 3])),
    "coco box NaN": lambda: from_coco(_annotation(bbox=[float("nan")] * 4)),
    "coco class": lambda: from_coco(_annotation(category_id=99)),
    "results picture": lambda: from_coco_results(
        [{**to_coco_results(many())[0], "image_id": 77}], to_coco(many())
    ),
    "yolo text": lambda: from_yolo("a bird somewhere", 9, 9, CLASSES),
    "yolo class": lambda: from_yolo("4 .5 .5 .1 .1 .9", 9, 9, CLASSES),
    "yolo score": lambda: from_yolo("0 .5 .5 .1 .1 9", 9, 9, CLASSES),
    "voc text": lambda: from_voc("no xml"),
    "voc entities": lambda: from_voc('<!DOCTYPE a [<!ENTITY b "b">]><annotation>&b;</annotation>'),
    "voc without size": lambda: from_voc("<annotation/>"),
    "voc class": lambda: from_voc(to_voc(many()[0]), ["horse"]),
    "csv columns": lambda: from_csv("a,b\n1,2\n"),
    "csv empty": lambda: from_csv(""),
    "csv number": lambda: from_csv(to_csv(many()).replace("640", "wide")),
    "csv class": lambda: from_csv(to_csv(many()), ["horse"]),
    "csv NaN": lambda: from_csv(
        "picture,width,height,class,score,x1,y1,x2,y2,shot\na,9,9,b,.5,nan,1,2,3,0\n"
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str) -> None:
    with pytest.raises(TenetError, match=r"expected|is not") as refused:
        HOSTILE[name]()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("layout", ["coco", "csv", "voc", "yolo"])
def test_files_are_read_back(layout: str, tmp_path: Path) -> None:
    found = many()
    paths = write_results(found, tmp_path, layout)
    assert all(path.is_file() for path in paths)
    if layout == "coco":
        all_same(from_coco(json.loads(paths[0].read_text())), found, 1e-3)
    elif layout == "csv":
        all_same(from_csv(paths[0].read_text(), CLASSES), found, 0.0051)
    elif layout == "voc":
        all_same([from_voc(path.read_text(), CLASSES) for path in paths], found, 1e-3, shots=False)
    else:
        classes = paths[-1].read_text().splitlines()
        for path, one in zip(paths[:-1], found, strict=True):
            copy = from_yolo(path.read_text(), one.width, one.height, classes)
            same(copy, one.detections, 1e-3, shots=False)
    with pytest.raises(InputError, match="format: expected one of coco"):
        write_results(found, tmp_path, "xls")


def test_file_names_stay_apart() -> None:
    names = ["a/x.jpg", "b/x.jpg", "y.jpg", "z.jpg", "z.png", "a/x.jpg", "../y.jpg/../w.jpg"]
    stems = file_stems(names)
    assert len(set(stems)) == len(names)
    assert stems[2] == "y"
    assert not any("/" in stem for stem in stems)


def test_a_name_without_a_suffix_given_twice_has_two_files() -> None:
    assert file_stems(["a", "a", "A", "x/a"]) == ["a", "a_2", "A_3", "x_a"]


def test_what_we_write_is_scored_and_read_as_a_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        Image.fromarray(scene(320, 240, ("red", (50, 60, 110, 130)))).save(tmp_path / f"{name}.png")
    runtime = FakeRuntime()
    bank = FakeBank(runtime, **{name: SeenSize((60, 70), (320, 240)) for name in COLOURS})
    model = Tenet(runtime)
    found = picture_results(model.detect(tmp_path, bank), tmp_path)
    assert [one.file_name for one in found] == ["a.png", "b.png"]
    all_same(picture_results(model.stream(tmp_path, bank), tmp_path), found, 0)
    [path] = write_results(found, tmp_path)
    assert read_dataset(path).class_counts() == {"red": 2, "green": 0, "blue": 0}
    assert main(["score", str(path), str(path), "--metric", "voc12", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["AP"] == pytest.approx(1)


def test_missing_extras_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, extra, call in (
        ("pandas", "pandas", lambda: to_frame(many())),
        ("supervision", "supervision", lambda: to_supervision(many()[0].detections)),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtraError, match=rf"pip install 'tenet-fsod\[{extra}\]'"):
            call()


def test_damaged_csv_is_a_data_error() -> None:
    with pytest.raises(DataError, match="row 0"):
        from_csv("picture,width,height,class,score,x1,y1,x2,y2,shot\na\n")
