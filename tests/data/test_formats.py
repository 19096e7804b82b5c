"""Every reader and writer, with files that the tests write."""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_sets import same_sets

from tenet.data.coco import read_coco
from tenet.data.convert import convert
from tenet.data.dataset import Dataset, Record, merge
from tenet.data.formats import FORMATS, detect_format, read_dataset, scan_path
from tenet.data.fsod import read_fsod
from tenet.data.voc import read_voc, scan_voc
from tenet.data.yolo import read_yolo
from tenet.errors import DataError, InputError
from tenet.structures import Target


def test_coco(coco_file: Callable[..., Path]) -> None:
    dataset = read_coco(coco_file())
    assert dataset.classes == ("cat", "dog")
    first, second = dataset.records
    assert (first.id, first.width, first.height) == ("7", 40, 30)
    assert first.target.boxes.tolist() == [[1, 2, 11, 22], [5, 5, 13.5, 14]]
    assert first.target.labels.tolist() == [0, 1]
    assert first.target.ignore.tolist() == [False, True]
    assert first.target.crowd.tolist() == [False, True]
    assert second.target.ignore.tolist() == second.target.truncated.tolist() == [True]
    assert second.target.crowd.tolist() == [False]
    assert first.box_ids.tolist() == [1, 2]
    assert first.picture().shape == (30, 40, 3)


def test_voc_counts_from_one_and_includes_the_last_pixel(voc_folder: Path) -> None:
    dataset = read_voc(voc_folder)
    assert dataset.classes[:2] == ("aeroplane", "bicycle")
    first, second = dataset.records
    assert first.target.boxes.tolist() == [[0, 0, 40, 30], [10, 5, 20, 15.5]]
    assert [dataset.classes[label] for label in first.target.labels] == ["cat", "dog"]
    assert first.target.ignore.tolist() == [False, True]
    assert not first.target.crowd.any()
    assert first.target.truncated.all()
    assert len(second.target) == 0
    assert first.picture().shape == (30, 40, 3)


def test_voc_image_sets(voc_folder: Path) -> None:
    assert [record.id for record in read_voc(voc_folder, image_set="train").records] == ["000005"]
    assert [record.id for record in read_voc(voc_folder, image_set="cat_train").records] == ["000005"]
    with pytest.raises(DataError, match="expected an image set among cat_train, train; got test"):
        read_voc(voc_folder, image_set="test")
    with pytest.raises(DataError, match="image set"):
        read_voc(voc_folder, image_set="../../../secret")


def test_voc_devkit_of_several_years_is_one_set(voc_folder: Path) -> None:
    other = voc_folder.parent / "VOC2012"
    for part in ("Annotations", "JPEGImages"):
        (other / part).mkdir(parents=True)
    for file in ("Annotations/000005.xml", "JPEGImages/000005.png"):
        (other / file).write_bytes((voc_folder / file).read_bytes())
    dataset = read_dataset(voc_folder.parent)
    assert [record.id for record in dataset.records] == ["2007/000005", "2007/000007", "2012/000005"]


def test_yolo_boxes_and_polygons(yolo_folder: Path) -> None:
    dataset = read_yolo(yolo_folder)
    assert dataset.classes == ("cat", "dog")
    first, second = dataset.records
    assert np.allclose(first.target.boxes, [[10, 12, 30, 18], [4, 3, 12, 12]])
    assert first.target.labels.tolist() == [1, 0]
    assert len(second.target) == 0


def test_yolo_class_list_and_parts(yolo_folder: Path) -> None:
    (yolo_folder / "data.yaml").unlink()
    with pytest.raises(DataError, match=r"expected data\.yaml"):
        read_yolo(yolo_folder)
    (yolo_folder / "classes.txt").write_text("cat\ndog\n")
    assert read_yolo(yolo_folder).classes == ("cat", "dog")
    part = yolo_folder.parent / "parts"
    part.mkdir()
    yolo_folder.rename(part / "train")
    (part / "data.yaml").write_text("names: [cat, dog]")
    assert len(read_yolo(part)) == 2


def test_fsod_layout(coco_file: Callable[..., Path]) -> None:
    path = coco_file()
    folder = path.parent.parent / "fsod"
    (folder / "annotations").mkdir(parents=True)
    (path.parent / "images").rename(folder / "images")
    path.rename(folder / "annotations" / "fsod_test.json")
    json_file = folder / "annotations" / "fsod_test.json"
    assert detect_format(json_file) == "fsod"
    dataset = read_fsod(json_file)
    assert len(dataset) == 2
    assert dataset.records[1].picture().shape == (30, 40, 3)


def test_layouts_are_detected(coco_file: Callable[..., Path], voc_folder: Path, yolo_folder: Path) -> None:
    path = coco_file()
    assert detect_format(path) == "coco"
    assert detect_format(voc_folder) == detect_format(voc_folder.parent) == "voc"
    assert detect_format(yolo_folder) == "yolo"
    with pytest.raises(DataError, match="expected the JSON file itself"):
        detect_format(path.parent)
    with pytest.raises(DataError, match="found nothing"):
        detect_format(path.parent / "absent")
    with pytest.raises(InputError, match="expected one of coco"):
        scan_path(path, "pascal")
    with pytest.raises(InputError, match="expected a VOC devkit"):
        scan_path(path, image_set="train")


def test_conversion_names_what_it_cannot_hold(coco_file: Callable[..., Path], tmp_path: Path) -> None:
    path = coco_file()
    _, notes = convert(scan_path(path), "yolo", tmp_path / "y")
    assert any("2 ignored" in note for note in notes)
    assert any("1 truncated" in note for note in notes)
    _, notes = convert(scan_path(path), "voc", tmp_path / "v")
    assert any("1 crowd boxes become difficult" in note for note in notes)
    (path.parent / "images" / "a.png").unlink()
    with pytest.raises(DataError, match=r"a\.png: expected a picture to copy"):
        convert(scan_path(path), "yolo", tmp_path / "gone")
    with pytest.raises(DataError, match="expected a new or empty folder"):
        convert(scan_path(path), "coco", tmp_path / "v")


def test_coco_keeps_everything(coco_file: Callable[..., Path], tmp_path: Path) -> None:
    dataset, notes = convert(scan_path(coco_file()), "coco", tmp_path / "c")
    copy = read_dataset(tmp_path / "c" / "annotations.json")
    same_sets(copy, dataset, flags=True)
    assert [record.id for record in copy.records] == ["7", "9"]
    assert notes == []


shares, sides = st.integers(0, 90).map(lambda n: n / 100), st.integers(5, 100).map(lambda n: n / 100)
boxes = st.tuples(shares, shares, sides, sides)
objects = st.lists(st.tuples(boxes, st.integers(0, 2), st.booleans(), st.booleans()), max_size=4)


def _drawn_set(pictures: list[list[Any]], width: int, height: int) -> Dataset:
    records = []
    for row, rows in enumerate(pictures):
        frame = np.array([width, height, width, height], np.float32)
        corners = np.array(
            [(x, y, x + w * (1 - x), y + h * (1 - y)) for (x, y, w, h), *_ in rows], np.float32
        )
        target = Target.of(
            corners.reshape(-1, 4) * frame,
            [r[1] for r in rows],
            [r[2] for r in rows],
            truncated=[r[3] for r in rows],
        )
        pixels = np.full((height, width, 3), row, np.uint8)
        ids = np.arange(len(rows)) + 1 + 10 * row
        records.append(Record(str(row), Path(), f"p/{row}.png", width, height, target, ids, pixels))
    return Dataset("drawn", ("cat", "dog", "a & b <c>"), tuple(records))


@settings(max_examples=12, deadline=None)
@given(st.lists(objects, min_size=1, max_size=3), st.integers(20, 300), st.integers(20, 300))
def test_round_trips_through_every_format(pictures: list[list[Any]], width: int, height: int) -> None:
    dataset = _drawn_set(pictures, width, height)
    for layout in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            FORMATS[layout].write(dataset, out)
            where = {"coco": out / "annotations.json", "fsod": out / "annotations" / "fsod_train.json"}
            copy = read_dataset(where.get(layout, out), layout)
            same_sets(copy, dataset, flags=layout != "yolo")
            for record, original in zip(copy.records, dataset.records, strict=True):
                assert np.array_equal(record.picture(), original.picture())


HOSTILE: list[Any] = [
    [],
    {},
    {"images": {}, "annotations": [], "categories": []},
    {"images": [3, None, {"id": []}], "annotations": ["x", {"image_id": 1}], "categories": [None, {"id": 1}]},
    {
        "images": [{"id": 1, "file_name": "a.png", "width": "wide", "height": -4}],
        "annotations": [
            {"image_id": 1, "category_id": {}, "bbox": "abcd"},
            {"image_id": [], "category_id": 1},
        ],
        "categories": [{"id": 1, "name": "cat"}],
    },
]


@pytest.mark.parametrize("document", HOSTILE)
def test_hostile_json_is_a_data_error(document: Any, tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"set\.json"):
        read_coco(path)


@pytest.mark.parametrize("text", ["", "{", '{"images": [', "\x00\x01", "[" * 100_000])
def test_broken_json_is_a_data_error(text: str, tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"set\.json"):
        read_coco(path)


@pytest.mark.parametrize(
    "name", ["../secret.png", "/etc/passwd", "a/../../b.png", "..\\secret.png", "C:\\x.png", ""]
)
def test_pictures_outside_the_image_folder_are_refused(name: str, coco_file: Callable[..., Path]) -> None:
    path = coco_file(lambda document: document["images"][0].update(file_name=name))
    with pytest.raises(DataError, match="expected a path inside"):
        read_coco(path)


FILE = "<annotation><filename>&x;</filename></annotation>"
BOMB = f'<!DOCTYPE a [<!ENTITY y "ha"><!ENTITY x "&y;&y;&y;&y;">]>{FILE}'
LEAK = f'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>{FILE}'


@pytest.mark.parametrize("text", ["", "<annotation>", BOMB, LEAK])
def test_hostile_xml_is_named_and_not_followed(text: str, voc_folder: Path) -> None:
    (voc_folder / "Annotations" / "000007.xml").write_text(text)
    kinds = [(defect.kind, Path(defect.where).name) for defect in scan_voc(voc_folder).defects]
    assert kinds == [("unreadable-file", "000007.xml")]
    with pytest.raises(DataError, match=r"000007\.xml"):
        read_voc(voc_folder)


def test_yaml_cannot_run_code(yolo_folder: Path) -> None:
    (yolo_folder / "data.yaml").write_text("names: !!python/object/apply:os.system ['true']")
    with pytest.raises(DataError, match=r"data\.yaml"):
        read_yolo(yolo_folder)


def test_defects_are_errors_and_boxes_partly_outside_are_clipped(coco_file: Callable[..., Path]) -> None:
    def spoil(document: dict[str, Any]) -> None:
        document["annotations"][0]["bbox"] = [30, 20, 20, 20]

    assert read_coco(coco_file(spoil)).records[0].target.boxes[0].tolist() == [30, 20, 40, 30]
    with pytest.raises(DataError, match=r"unknown-class.*annotation 0"):
        read_coco(coco_file(lambda document: document["annotations"][0].update(category_id=99)))


def test_a_picture_of_another_size_is_refused_when_opened(coco_file: Callable[..., Path]) -> None:
    dataset = read_coco(coco_file(lambda document: document["images"][0].update(width=80)))
    with pytest.raises(DataError, match=r"a\.png: expected 80 × 30 pixels as annotated, got 40 × 30"):
        dataset.records[0].picture()


def test_selecting_and_merging(coco_file: Callable[..., Path]) -> None:
    dataset = read_coco(coco_file())
    dogs = dataset.with_classes(["dog"])
    assert [len(record.target) for record in dogs.records] == [1, 0]
    assert dogs.records[0].target.labels.tolist() == [0]
    assert dogs.records[0].box_ids.tolist() == [2]
    assert len(dataset.with_classes(["dog"], keep_empty=False)) == 1
    assert dataset.class_counts() == {"cat": 1, "dog": 0}
    swapped = dataset.with_classes(["dog", "cat"])
    other = Dataset("other", swapped.classes, swapped.records)
    merged = merge([dataset, other])
    assert len(merged) == 4
    assert merged.records[2].target.labels.tolist() == dataset.records[0].target.labels.tolist()
    with pytest.raises(InputError, match="got bird"):
        dataset.with_classes(["bird"])
    with pytest.raises(DataError, match="expected the classes of"):
        merge([dataset, dogs])
    assert [record.id for record in dataset.subset(["9"]).records] == ["9"]
