"""Things pasted on pictures: seeded, exact boxes, and the pictures' own objects stay."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenet.cli import main
from tenet.data import pasted
from tenet.data.check import check_scan
from tenet.data.dataset import Dataset
from tenet.data.formats import read_dataset, scan_path
from tenet.data.pasted import pasted_classes, pasted_records, write_pasted
from tenet.data.synthetic import synthetic_dataset, write_synthetic
from tenet.errors import DataError, InputError
from tenet.structures import Target


@pytest.fixture(scope="module")
def ground() -> Dataset:
    return synthetic_dataset(6, 3, (120, 90), seed=2)


def test_same_seed_same_set_other_seed_other_set(ground: Dataset) -> None:
    one, two, other = (list(pasted_records(ground, 4, 5, seed)) for seed in (1, 1, 2))
    for a, b, c in zip(one, two, other, strict=True):
        assert np.array_equal(a.picture(), b.picture())
        assert np.array_equal(a.target.boxes, b.target.boxes)
        assert not np.array_equal(a.picture(), c.picture())


def test_more_pictures_do_not_change_the_first(ground: Dataset) -> None:
    few, many = (list(pasted_records(ground, count, 5)) for count in (2, 6))
    for a, b in zip(few, many, strict=False):
        assert np.array_equal(a.picture(), b.picture())


def test_every_class_is_shown_and_boxes_lie_inside(ground: Dataset) -> None:
    records = list(pasted_records(ground, 24, 6))
    names = pasted_classes(ground, 6)
    assert len(names) == 3 + 6
    shown = {int(label) for record in records for label in record.target.labels}
    assert shown >= set(range(3, 9))
    for record in records:
        x1, y1, x2, y2 = record.target.boxes.T
        assert (x1 >= 0).all()
        assert (y1 >= 0).all()
        assert (x2 <= record.width).all()
        assert (y2 <= record.height).all()
        assert ((x2 - x1 >= 2) & (y2 - y1 >= 2)).all()


def test_a_thing_is_seen_where_its_box_is(ground: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the picture as it was, only what lies in boxes of things differs."""
    monkeypatch.setattr(pasted, "WHOLE", 1.0)
    monkeypatch.setattr(pasted, "_developed", lambda rng, canvas: np.clip(canvas, 0, 255).astype(np.uint8))
    grounds = {record.id: record.picture().astype(int) for record in ground.records}
    for record in pasted_records(ground, 6, 5):
        picture = record.picture().astype(int)
        near = min(grounds.values(), key=lambda own: float(np.abs(own - picture).mean()))
        differs = (np.abs(near - picture) > 1).any(2)
        inside = np.zeros_like(differs)
        for box, label in zip(record.target.boxes.astype(int), record.target.labels, strict=True):
            if label >= len(ground.classes):
                x1, y1, x2, y2 = box
                inside[max(0, y1 - 1) : y2 + 1, max(0, x1 - 1) : x2 + 1] = True
                assert differs[y1:y2, x1:x2].any()
        assert not (differs & ~inside).any()


def test_objects_that_things_hide_are_difficult(ground: Dataset) -> None:
    owners = np.full((90, 120), -1)
    owners[:40, :60] = 0
    own = Target.of([[0, 0, 60, 60], [60, 0, 120, 60], [0, 39, 60, 90]], [0, 1, 2], truncated=[1, 0, 0])
    target = pasted._target(owners, [4], 3, own)
    assert target.boxes[0].tolist() == [0, 0, 60, 40]
    assert target.labels.tolist() == [7, 0, 1, 2]
    assert target.ignore.tolist() == [False, True, False, False]
    assert target.truncated.tolist() == [False, True, False, False]


def test_written_sets_are_sound(ground: Dataset, tmp_path: Path) -> None:
    path = write_pasted(tmp_path, ground, 5, 4)
    assert check_scan(scan_path(path)).defects == ()
    for record, made in zip(read_dataset(path).records, pasted_records(ground, 5, 4), strict=True):
        assert np.array_equal(record.picture(), made.picture())
        assert np.array_equal(record.target.boxes, made.target.boxes)
        assert np.array_equal(record.target.ignore, made.target.ignore)


@pytest.mark.parametrize("arguments", [(0, 3, 0), (1, 0, 0), (1, 1, -1)])
def test_nonsense_is_refused(ground: Dataset, arguments: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="expected at least 1 picture"):
        next(pasted_records(ground, *arguments))


def test_an_empty_set_and_tiny_pictures(ground: Dataset) -> None:
    with pytest.raises(DataError, match="expected pictures to paste on"):
        next(pasted_records(replace(ground, records=()), 1, 1))
    tiny = synthetic_dataset(2, 2, (32, 32))
    for record in pasted_records(tiny, 8, 3):
        assert record.picture().shape == (32, 32, 3)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_synthetic(tmp_path / "source", images=3, classes=2, size=(80, 60))
    words = ["data", "paste", str(source), str(tmp_path / "out"), "--pictures", "3", "--classes", "2"]
    assert main(words) == 0
    assert "3 pictures, 2 classes of things" in capsys.readouterr().out
    assert len(read_dataset(tmp_path / "out" / "annotations.json")) == 3
    assert main(words) == 1
    assert "expected a new" in capsys.readouterr().err


def test_pictures_of_novel_classes_can_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their pixels would be learned as things."""
    path = write_synthetic(tmp_path / "set", 12, 4, (80, 60), seed=0)
    dataset = read_dataset(path)
    novel = dataset.classes[0]
    shown = {record.id for record in dataset.records if (record.target.labels == 0).any()}
    assert 0 < len(shown) < len(dataset)
    used: list[Dataset] = []
    write = pasted.write_pasted

    def watched(folder: Path, ground: Dataset, *rest: Any) -> Path:
        used.append(ground)
        return write(folder, ground, *rest)

    monkeypatch.setattr(pasted, "write_pasted", watched)
    words = ["data", "paste", str(path), str(tmp_path / "things"), "--pictures", "3", "--classes", "2"]
    assert main([*words, "--without", novel]) == 0
    assert {record.id for record in used[0].records} == {r.id for r in dataset.records} - shown
    assert main([*words, "--without", "unicorn"]) == 1
    assert main([*words, "--without", ",".join(dataset.classes)]) == 1
    assert "found none" in capsys.readouterr().err
