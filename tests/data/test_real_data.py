"""On real pictures, where they are there: in the folder that the variable TENET_DATA names."""

import os
from pathlib import Path

import pytest

from tenet.data.check import check_scan
from tenet.data.formats import read_dataset, scan_path
from tenet.data.shots import public_shots
from tenet.data.splits import SPLITS, base_side, find_leaks

DATA = Path(os.environ.get("TENET_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
pytestmark = pytest.mark.skipif(not (DATA / "domains").is_dir(), reason="no sets to read: set TENET_DATA")


def test_domains_are_sound_to_the_pixel() -> None:
    for name in ("aquarium", "bccd", "capybara", "masks"):
        report = check_scan(scan_path(DATA / "domains" / f"{name}.json"))
        assert report.defects == ()
        assert len(report.scan.entries) == 140


def test_public_lists_find_their_boxes() -> None:
    voc = read_dataset(DATA / "voc" / "voc2007_trainval.json")
    shots = public_shots(DATA / "splits" / "voc_shots.json", voc, 10, seed=1, missing="skip")
    assert set(shots.classes) == set(voc.classes)
    assert sum(len(refs) for refs in shots.classes.values()) >= 60


def test_base_side_and_test_side_are_apart() -> None:
    train = base_side(read_dataset(DATA / "voc" / "voc2007_trainval.json"), SPLITS["voc1"])
    test = read_dataset(DATA / "voc" / "voc2012_val.json")
    assert find_leaks(train, test, SPLITS["voc1"]) == []
