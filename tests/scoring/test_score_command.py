"""`tenet score`: what it prints, writes and refuses; reports over seeds."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenet.cli import main
from tenet.errors import DataError, InputError
from tenet.scoring.detections import ground_truth, read_ground_truth, read_results, results
from tenet.scoring.report import ClassScore, Scores, spread, summarise, table

DOCUMENT: dict[str, Any] = {
    "images": [
        {"id": 1, "file_name": "1.png", "width": 100, "height": 80},
        {"id": 2, "file_name": "2.png", "width": 100, "height": 80},
    ],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 10, 20, 20], "area": 400, "iscrowd": 0},
        {"id": 2, "image_id": 2, "category_id": 2, "bbox": [50, 10, 30, 40], "area": 1200, "iscrowd": 0},
    ],
    "categories": [{"id": 1, "name": "bird"}, {"id": 2, "name": "cat"}],
}
GOOD = [
    {"image_id": 1, "category_id": 1, "bbox": [10, 10, 20, 20], "score": 0.9},
    {"image_id": 2, "category_id": 2, "bbox": [50, 10, 30, 40], "score": 0.8},
]


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "truth.json").write_text(json.dumps(DOCUMENT))
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    return str(tmp_path / "truth.json"), str(tmp_path / "good.json")


@pytest.mark.parametrize("metric", ["coco", "voc07", "voc12"])
def test_perfect_detections(metric: str, files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *files, "--metric", metric, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["AP"] == pytest.approx(1)
    assert report["metric"] == metric
    assert report["classes"]["bird"] == {**report["classes"]["bird"], "AP": pytest.approx(1), "positives": 1}
    if metric == "coco":
        assert report["APl"] is None
        assert {"AP50", "AP75", "APs", "APm", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"} <= set(report)


def test_seeds_groups_classes_and_picture(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "half.json").write_text(json.dumps({"info": {}, "annotations": GOOD[:1]}))
    arguments = [*files, str(tmp_path / "half.json"), "--metric", "voc12", "--split", "voc1"]
    written = ["--json", str(tmp_path / "out.json"), "--curves", str(tmp_path / "curves.png")]
    assert main(["score", *arguments, *written]) == 0
    report = json.loads((tmp_path / "out.json").read_text())
    assert report["AP"] == pytest.approx(0.75)
    assert report["std"]["AP"] == pytest.approx(np.std([1, 0.5], ddof=1))
    assert report["groups"]["novel"]["AP"] == 1
    assert report["groups"]["base"]["AP"] == pytest.approx(0.5)
    assert [run["AP"] for run in report["runs"]] == [1, 0.5]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    text = capsys.readouterr().out
    assert "75.0 ± 35.4" in text
    assert "novel" in text
    assert main(["score", *files, "--metric", "voc07", "--classes", "bird", "--iou", "0.9"]) == 0
    assert "cat" not in capsys.readouterr().out


def test_novel_classes_by_name(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *files, "--metric", "voc07", "--novel", "cat", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report["groups"]) == {"base", "novel"}
    assert main(["score", *files, "--novel", "dog"]) == 1
    assert "'dog'" in capsys.readouterr().err


BAD: list[tuple[dict[str, Any], str]] = [
    ({"score": float("nan")}, "expected finite numbers"),
    ({"bbox": [1, 2, float("inf"), 4]}, "expected finite numbers"),
    ({"image_id": 77}, "image_id 77 is not a picture"),
    ({"category_id": 9}, "category_id 9 is not a class"),
    ({"category_id": [1]}, "is not a class"),
    ({"bbox": [1, 2, 3]}, "expected bbox"),
    ({"bbox": [1, 2, 0, 4]}, "sides above 0"),
    ({"bbox": [10**400, 2, 3, 4]}, "expected bbox"),
    ({"bbox": None}, "expected bbox"),
    ({"score": "high"}, "expected a number as score"),
    ({"score": True}, "expected a number as score"),
    ({"bbox": [60, 50, 90, 75]}, r"fits only as \[x1, y1, x2, y2\]"),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
@pytest.mark.parametrize("wrapped", [False, True])
def test_malformed_detections_are_refused_with_their_line(
    fields: dict[str, Any], message: str, wrapped: bool, files: tuple[str, str], tmp_path: Path
) -> None:
    rows = [*GOOD, {**GOOD[0], **fields}]
    lines = ",\n".join(json.dumps(row) for row in rows)
    text = f'{{"info": "x",\n"annotations": [\n{lines}\n]}}' if wrapped else f"[\n{lines}\n]"
    (tmp_path / "bad.json").write_text(text)
    truth = read_ground_truth(Path(files[0]))
    line = 5 if wrapped else 4
    with pytest.raises(DataError, match=rf"bad\.json, line {line}, detection 2: .*{message}"):
        read_results(tmp_path / "bad.json", truth)


def test_missing_fields_and_wrong_documents(files: tuple[str, str], tmp_path: Path) -> None:
    truth = ground_truth(DOCUMENT)
    with pytest.raises(DataError, match="score is missing"):
        results([{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}], truth)
    with pytest.raises(DataError, match="expected an object"):
        results([5], truth)
    for document in ({}, "text", 5, None):
        with pytest.raises(DataError, match="expected a COCO results list"):
            results(document, truth)
    (tmp_path / "cut.json").write_text("[{")
    assert main(["score", files[0], str(tmp_path / "cut.json")]) == 1
    assert main(["score", str(tmp_path / "absent.json"), files[1]]) == 1


def test_corners_are_refused_and_unclipped_boxes_are_not() -> None:
    truth = ground_truth(DOCUMENT)
    corners = [
        {"image_id": 1, "category_id": 1, "bbox": [10, 10, 30, 30], "score": 0.9},
        {"image_id": 2, "category_id": 2, "bbox": [50, 10, 80, 50], "score": 0.9},
    ]
    with pytest.raises(DataError, match=r"detection 1.*fits only as"):
        results(corners, truth)
    unclipped = [*GOOD, {"image_id": 2, "category_id": 2, "bbox": [-5, -5, 112, 90], "score": 0.1}]
    assert len(results(unclipped, truth)) == 3


def test_spoilt_ground_truth_is_refused(tmp_path: Path) -> None:
    for change in ({"category_id": 9}, {"image_id": 9}, {"bbox": [1, 2, 3]}, {"bbox": [float("nan")] * 4}):
        document = {**DOCUMENT, "annotations": [{**DOCUMENT["annotations"][0], **change}]}
        with pytest.raises(DataError, match="annotation 0"):
            ground_truth(document)
    with pytest.raises(DataError, match="expected pictures and categories"):
        ground_truth({"images": [], "annotations": [], "categories": []})


def _scores(**values: float) -> Scores:
    curve = np.zeros(0)
    rows = tuple(ClassScore(name, {"AP": value}, 1, curve, curve) for name, value in values.items())
    return Scores("voc12", 0.5, {"AP": float(np.nanmean(list(values.values())))}, rows)


def test_spreads() -> None:
    assert str(spread([0.25])) == "25.0"
    assert str(spread([0.2, 0.4])) == "30.0 ± 14.1"
    assert str(spread([])) == "–"
    assert spread([0.2, math.nan]).runs == 1
    summary = summarise(
        [_scores(bird=0.2, cat=0.6), _scores(bird=0.4, cat=0.6)], {"novel": ["bird"], "none": ["x"]}
    )
    assert set(summary.groups) == {"novel"}
    assert "bird" in table(summary)
    with pytest.raises(InputError, match="at least one run"):
        summarise([])
    with pytest.raises(InputError, match="one metric"):
        summarise([_scores(bird=0.2), _scores(cat=0.2)])


def test_usage_errors_are_two(files: tuple[str, str]) -> None:
    for arguments in ([], [files[0]], [*files, "--metric", "lvis"]):
        with pytest.raises(SystemExit) as stop:
            main(["score", *arguments])
        assert stop.value.code == 2
