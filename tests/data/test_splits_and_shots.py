"""Class splits, leakage, and shots that are the same everywhere."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tenet.cli import main
from tenet.data.dataset import Dataset, Record
from tenet.data.formats import read_dataset
from tenet.data.shots import draw_shots, public_shots, read_shots, write_shots
from tenet.data.splits import (
    COCO_CLASSES,
    SPLITS,
    Split,
    base_side,
    find_leaks,
    fsod_split,
    get_split,
    novel_side,
    refuse_leaks,
    without_novel,
)
from tenet.data.synthetic import synthetic_dataset, write_synthetic
from tenet.data.voc import CLASSES
from tenet.errors import DataError, InputError
from tenet.structures import Target


def test_the_papers_splits() -> None:
    assert set(SPLITS["voc1"].novel) == {"bird", "bus", "cow", "motorbike", "sofa"}
    for number in (1, 2, 3):
        split = get_split(f"voc{number}")
        assert (len(split.base), len(split.novel)) == (15, 5)
        assert set(split.base) | set(split.novel) == set(CLASSES)
    coco = get_split("coco")
    assert (len(COCO_CLASSES), len(coco.base), len(coco.novel)) == (80, 60, 20)
    assert "couch" in coco.novel
    assert "truck" in coco.base
    with pytest.raises(InputError, match="expected one of voc1"):
        get_split("voc4")
    with pytest.raises(DataError, match="got couch in both"):
        Split("mine", ("sofa",), ("couch",))


def _set(name: str, classes: tuple[str, ...], seed: int = 0) -> Dataset:
    pixels = np.random.default_rng(seed).integers(0, 256, (24, 24, 3), dtype=np.uint8)
    target = Target.of([[1, 1, 20, 20]] * len(classes), range(len(classes)))
    ids = np.arange(len(classes))
    return Dataset(name, classes, (Record("1", Path(f"/none/{name}"), "a.png", 24, 24, target, ids, pixels),))


def test_fsod_rule() -> None:
    train = _set("train", tuple(f"a{n}" for n in range(800)))
    test = _set("test", tuple(f"b{n}" for n in range(200)))
    assert len(fsod_split(train, test).novel) == 200
    with pytest.raises(DataError, match="expected 800 and 200 classes, got 200 and 800"):
        fsod_split(test, train)
    with pytest.raises(DataError, match="in both"):
        fsod_split(test, test, exact=False)


def test_class_leaks_know_the_other_sets_names() -> None:
    train, test = _set("train", ("couch", "truck")), _set("test", ("sofa", "bird"), seed=1)
    assert find_leaks(train, test) == ["class couch of the test side has boxes in train"]
    assert find_leaks(train.with_classes(["truck"]), test) == []
    with pytest.raises(DataError, match="class couch"):
        refuse_leaks(train, test, SPLITS["voc1"])
    refuse_leaks(base_side(train, SPLITS["coco"]), test, SPLITS["coco"])


def test_sides_keep_pictures_and_take_boxes_out() -> None:
    dataset = _set("voc", ("bird", "cat", "sofa"))
    assert base_side(dataset, SPLITS["voc1"]).classes == ("cat",)
    assert novel_side(dataset, SPLITS["voc1"]).classes == ("bird", "sofa")
    assert len(base_side(dataset, SPLITS["voc1"]).records[0].target) == 1


def test_pictures_that_show_a_novel_object_may_be_left_out() -> None:
    """By either spelling, beside base objects or alone, and empty pictures stay."""
    dataset = _set("coco", ("couch", "cat", "bird"))
    only = {
        name: dataset.records[0].with_target(np.array([row]), np.array([row]))
        for row, name in enumerate(dataset.classes)
    }
    none = dataset.records[0].with_target(np.zeros(0, int), np.zeros(0, int))
    pictures = [
        replace(one, id=name) for name, one in {**only, "all": dataset.records[0], "none": none}.items()
    ]
    left = without_novel(replace(dataset, records=tuple(pictures)), SPLITS["voc1"])
    assert [record.id for record in left.records] == ["cat", "none"]
    assert left.classes == dataset.classes


def test_pasted_things_may_be_trained_on_beside_the_base() -> None:
    """They are of no benchmark; any other class beside the base may be a novel one by another name."""
    dataset = _set("voc", ("couch", "cat", "thing-001", "school bus"))
    assert base_side(dataset, SPLITS["voc1"]).classes == ("cat", "thing-001")


def test_picture_leaks_by_bytes_and_by_looks(tmp_path: Path) -> None:
    path = write_synthetic(tmp_path / "train", images=6, classes=3, size=(96, 64))
    train = read_dataset(path)
    other = read_dataset(write_synthetic(tmp_path / "test", images=6, classes=3, size=(96, 64), seed=1))
    test = other.with_classes(other.classes)
    assert find_leaks(train.with_classes(()), test, near=True) == []
    source = train.records[2].path
    test.records[4].path.write_bytes(source.read_bytes())
    (leak,) = find_leaks(train.with_classes(()), test)
    assert "000005.png of annotations is 000003.png" in leak
    Image.open(source).resize((96, 64)).save(test.records[4].path, "JPEG", quality=70)
    assert find_leaks(train.with_classes(()), test) == []
    assert len(find_leaks(train.with_classes(()), test, near=True)) == 1
    assert main(["data", "leakage", str(path), str(tmp_path / "test" / "annotations.json")]) == 1


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return synthetic_dataset(images=40, classes=5, size=(64, 48))


def test_shots_are_these_on_every_machine(dataset: Dataset) -> None:
    target = Target.of([[0, 0, 10, 10], [2, 2, 9, 9]], [0, 0])
    records = [
        Record(str(n), Path(), f"{n}.png", 16, 16, target, np.array([2 * n, 2 * n + 1])) for n in range(20)
    ]
    drawn = draw_shots(Dataset("fixed", ("cat",), tuple(records)), 4, seed=3)
    assert [(ref.picture, ref.box_id) for ref in drawn.classes["cat"]] == FROZEN


def test_draws_are_nested_spread_and_independent_of_order(dataset: Dataset) -> None:
    five = draw_shots(dataset, 5, seed=1)
    one = draw_shots(dataset, 1, seed=1)
    backwards = Dataset("b", dataset.classes, dataset.records[::-1])
    for name in dataset.classes:
        assert five.classes[name][:1] == one.classes[name]
        assert len({ref.picture for ref in five.classes[name]}) == 5
    assert draw_shots(backwards, 5, seed=1).classes == five.classes
    assert draw_shots(dataset, 5, seed=2).classes != five.classes


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 30), st.integers(0, 2**40), st.floats(0, 30))
def test_shots_are_boxes_of_their_class(shots: int, seed: int, min_side: float) -> None:
    small = synthetic_dataset(images=6, classes=3, size=(64, 48))
    rows = {record.id: record for record in small.records}
    drawn = draw_shots(small, shots, seed, min_side=min_side)
    for name, refs in drawn.classes.items():
        assert len(set(refs)) == len(refs) <= shots
        for ref in refs:
            target = rows[ref.picture].target
            assert small.classes[target.labels[ref.box]] == name
            assert (target.boxes[ref.box, 2:] - target.boxes[ref.box, :2]).min() >= min_side


def test_ignored_boxes_are_never_shots() -> None:
    target = Target.of([[0, 0, 10, 10], [2, 2, 9, 9]], [0, 0], [True, False])
    record = Record("1", Path(), "1.png", 16, 16, target, np.array([5, 6]))
    drawn = draw_shots(Dataset("d", ("cat",), (record,)), 4, seed=0)
    assert [ref.box_id for ref in drawn.classes["cat"]] == [6]
    assert drawn.short() == {"cat": 1}


def test_lists_survive_a_file_and_know_their_set(dataset: Dataset, tmp_path: Path) -> None:
    drawn = draw_shots(dataset, 3, seed=0)
    write_shots(drawn, dataset, tmp_path / "shots.json")
    assert read_shots(tmp_path / "shots.json", dataset).classes == drawn.classes
    other = synthetic_dataset(images=3, classes=5, size=(64, 48), seed=9)
    with pytest.raises(DataError, match="was the list drawn from another set"):
        read_shots(tmp_path / "shots.json", other)
    (tmp_path / "bad.json").write_text('{"format": "tenet-shots-1", "classes": 3}')
    with pytest.raises(DataError, match="a field is missing or wrong"):
        read_shots(tmp_path / "bad.json", dataset)


def test_public_lists(tmp_path: Path) -> None:
    target = Target.of([[0, 0, 10, 10], [2, 2, 9, 9]], [0, 0])
    records = [
        Record(
            str(n),
            Path(f"voc/images/2007/00000{n}.avif"),
            f"2007/00000{n}.avif",
            16,
            16,
            target,
            np.arange(2),
        )
        for n in range(3)
    ]
    devkit = Record(
        "d", Path("VOCdevkit/VOC2012/JPEGImages/2008_000001.jpg"), "x", 16, 16, target, np.arange(2)
    )
    voc = Dataset("voc", ("bird",), (*records, devkit))
    lists = {
        "kang": {"bird": {"3": ["2007/000002", "2012/2008_000001"], "1": ["2007/999999"]}},
        "tfa": {"1": {"bird": {"1": ["2007/000001"]}}},
    }
    path = tmp_path / "lists.json"
    path.write_text(json.dumps(lists))
    drawn = public_shots(path, voc, 3, seed=0)
    assert [(ref.picture, ref.box) for ref in drawn.classes["bird"]] == [("2", 0), ("d", 0), ("2", 1)]
    assert public_shots(path, voc, 1, seed=1).classes["bird"][0].picture == "1"
    with pytest.raises(DataError, match="2007/999999"):
        public_shots(path, voc, 1, seed=0)
    assert public_shots(path, voc, 1, seed=0, missing="skip").short() == {"bird": 0}
    with pytest.raises(DataError, match="expected seed 0"):
        public_shots(path, voc, 1, seed=5)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["data", "synthetic", str(tmp_path / "s"), "--images", "8", "--classes", "3", "--size", "64x48"])
        == 0
    )
    source = str(tmp_path / "s" / "annotations.json")
    capsys.readouterr()
    assert main(["data", "shots", source, "--shots", "2", "--seed", "4"]) == 0
    first = capsys.readouterr().out
    assert main(["data", "shots", source, "--shots", "2", "--seed", "4"]) == 0
    assert capsys.readouterr().out == first
    assert set(json.loads(first)["classes"]) == set(read_dataset(source).classes)
    assert main(["data", "split", "--list"]) == 0
    assert "voc3: 15 base, 5 novel" in capsys.readouterr().out
    assert main(["data", "split", source]) == 1
    assert main(["data", "split", source, str(tmp_path / "no"), "--split", "voc1", "--side", "novel"]) == 1
    assert "expected novel classes of voc1, found none" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
    with pytest.raises(SystemExit):
        main(["data", "synthetic", str(tmp_path / "t"), "--size", "big"])


FROZEN = [("0", 1), ("19", 38), ("15", 31), ("12", 25)]
