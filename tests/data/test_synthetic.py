"""The set made by code: exact boxes, any size, seeded."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenet.data import synthetic
from tenet.data.check import check_scan
from tenet.data.formats import read_dataset, scan_path
from tenet.data.painting import MAX_HIDDEN
from tenet.data.shapes import OUTLINES, TEXTURES
from tenet.data.synthetic import kinds, synthetic_dataset, write_synthetic
from tenet.errors import InputError


def test_same_seed_same_set_other_seed_other_set() -> None:
    one, two, other = (synthetic_dataset(4, 3, (64, 48), seed=seed) for seed in (5, 5, 6))
    for a, b, c in zip(one.records, two.records, other.records, strict=True):
        assert np.array_equal(a.picture(), b.picture())
        assert np.array_equal(a.target.boxes, b.target.boxes)
        assert not np.array_equal(a.picture(), c.picture())
    assert one.classes == other.classes


@settings(max_examples=15, deadline=None)
@given(st.integers(32, 200), st.integers(32, 200), st.integers(0, 1000))
def test_boxes_are_the_extents_of_what_one_sees(width: int, height: int, seed: int) -> None:
    table = kinds(6)
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 0])))
    picture, owners, labels, areas = synthetic._scene(rng, 0, table, (width, height), 5)
    record = synthetic_dataset(1, 6, (width, height), seed).records[0]
    assert np.array_equal(record.picture(), picture)
    assert record.target.labels.tolist() == labels
    assert len(labels) >= 1
    for number, box in enumerate(record.target.boxes):
        rows, columns = np.nonzero(owners == number)
        assert len(rows) >= areas[number] * (1 - MAX_HIDDEN)
        assert box.tolist() == [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]


def test_classes_differ_and_each_is_shown() -> None:
    assert len({kind.name for kind in kinds(1000)}) == 1000
    assert {kind.outline for kind in kinds(18)} == set(OUTLINES)
    assert {kind.texture for kind in kinds(24)} == set(TEXTURES)
    counts = synthetic_dataset(20, 10, (96, 72)).class_counts()
    assert min(counts.values()) >= 2


def test_objects_stand_out_from_their_background() -> None:
    dataset = synthetic_dataset(12, 12, (128, 96), seed=1, objects=1)
    gaps = []
    for record in dataset.records:
        x1, y1, x2, y2 = record.target.boxes[0].astype(int)
        picture = record.picture().astype(float)
        inside = picture[y1:y2, x1:x2].reshape(-1, 3)
        ring = picture.copy()
        ring[y1:y2, x1:x2] = np.nan
        gaps.append(np.abs(np.median(inside, axis=0) - np.nanmedian(ring, axis=(0, 1))).max())
    assert np.median(gaps) > 25


def test_written_sets_are_sound(tmp_path: Path) -> None:
    path = write_synthetic(tmp_path, images=5, classes=3, size=(80, 60))
    assert check_scan(scan_path(path)).defects == ()
    memory = synthetic_dataset(5, 3, (80, 60))
    for record, original in zip(read_dataset(path).records, memory.records, strict=True):
        assert np.array_equal(record.picture(), original.picture())
        assert np.array_equal(record.target.boxes, original.target.boxes)


@pytest.mark.parametrize(
    "arguments", [(0, 3, (64, 64)), (1, 0, (64, 64)), (1, 1001, (64, 64)), (1, 3, (8, 64))]
)
def test_nonsense_is_refused(arguments: tuple[int, int, tuple[int, int]]) -> None:
    with pytest.raises(InputError, match="expected"):
        synthetic_dataset(*arguments)
