"""`tenet trial` from end to end with a runtime without a network: figures, halves, record, calibration."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from fake_runtime import FakeRuntime
from test_trial import make_set
from tiny_detector import TINY

from tenet.cli import main
from tenet.records.record import read_record
from tenet.runtime import loading
from tenet.runtime.calibration import Calibration
from tenet.settings import to_table
from tenet.structures import Detections
from tenet.trials import trial
from tenet.trials.trial import try_set


class Runtime(FakeRuntime):
    def described(self) -> dict[str, Any]:
        return to_table(TINY)

    def uncalibrated(self) -> "Runtime":
        return self


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Calibration]:
    """Calibrations that the command wrote into a model."""
    kept: list[Calibration] = []
    monkeypatch.setattr(loading, "load_runtime", lambda name: Runtime())
    monkeypatch.setattr(loading, "write_calibration", lambda name, curve: kept.append(curve))
    return kept


def test_calibration_names_both_halves(written: list[Calibration], tmp_path: Path) -> None:
    data, out = make_set(tmp_path, pictures=8), tmp_path / "out"
    words = ["trial", "runs/mine", "--data", str(data), "--shots", "1", "--seeds", "0,1", "--min-side", "8"]
    assert main([*words, "--calibrate", "--out", str(out), "--results", str(tmp_path / "r.json")]) == 0
    document = json.loads((out / "trial.json").read_text())
    assert document["judged"]["by"] == "picture"
    one, other = (set(fold["judged_on"]["set"]) for fold in document["judged"]["folds"])
    assert one
    assert other
    assert not one & other
    assert [curve.to_json() for curve in written] == [document["calibration"]]
    assert (out / "reliability.png").read_bytes()[:4] == b"\x89PNG"
    record = read_record(tmp_path / "r.json")
    assert record.kind == "trial"
    assert record.notes["judged"] == document["judged"]
    assert [(figure.seed, figure.pictures) for figure in record.figures] == [(0, 8), (1, 8)]
    assert set(record.figures[0].classes) == {"red", "green"}


def test_the_table_says_on_how_little_it_stands(
    written: list[Calibration], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make_set(tmp_path, pictures=8)
    assert main(["trial", "--data", str(data), "--shots", "1", "--min-side", "8"]) == 0
    told = capsys.readouterr().out
    found = json.loads(data.read_text())
    assert re.search(rf"1 +set +\S+ +\d+ +\d+  2 of {len(found['categories'])}", told)
    assert "such an AP50 tells little" in told


def test_without_calibrate_the_model_is_left_alone(
    written: list[Calibration], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make_set(tmp_path)
    assert main(["trial", "--data", str(data), "--shots", "1", "--min-side", "8", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert written == []
    assert "judged" not in document
    assert document["false_alarms_per_look"] == document["false_alarms_per_picture"] == 0


@pytest.mark.parametrize("known", ["shots", "pictures"])
def test_a_model_that_learned_each_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: str) -> None:
    """It learns just the shots that it is shown then, and the record says so."""
    learned, tried = [], []

    def learn(detector: Any, recipe: Any, dataset: Any, shots: Any, *, complete: bool, progress: Any) -> Any:
        learned.append((shots.pictures(), complete))
        with torch.no_grad():
            next(detector.parameters()).add_(1)
        return detector

    def remember(model: Any, dataset: Any, shots: int, seed: int, **settings: Any) -> Any:
        adapt = settings["adapt"]

        def adapted(*words: Any) -> Any:
            changed = adapt(*words)
            assert changed.runtime.fingerprint != model.runtime.fingerprint
            return changed

        found = try_set(model, dataset, shots, seed, **{**settings, "adapt": adapted})
        tried.append({record.id for record in dataset.records} - set(found.tested))
        return found

    monkeypatch.setattr("tenet.engine.finetune.finetune", learn)
    monkeypatch.setattr("tenet.trials.trial.try_set", remember)
    words = ["trial", "--data", str(make_set(tmp_path)), "--shots", "1", "--seeds", "0,1", "--min-side", "8"]
    assert main([*words, "--finetune", known, "--results", str(tmp_path / "r.json")]) == 0
    assert [complete for _, complete in learned] == 2 * [known == "pictures"]
    assert [set(pictures) for pictures, _ in learned] == tried
    ways = {figure.protocol for figure in read_record(tmp_path / "r.json").figures}
    told = {"shots": "fine-tuned on the shots", "pictures": "fine-tuned on the shots' pictures"}
    assert ways == {f"trial, {told[known]}"}


def test_what_is_learned_for_a_trial_is_not_calibrated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["trial", "--data", str(make_set(tmp_path)), "--finetune", "shots", "--calibrate"]
    assert main(words) == 1
    assert "--finetune leaves as it is; give one" in capsys.readouterr().err


def test_sets_whose_files_have_one_name_stay_apart(
    written: list[Calibration], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = []
    for name in ("kitchen", "forest"):
        (tmp_path / name).mkdir()
        paths.append(str(make_set(tmp_path / name)))
    words = ["--shots", "1", "--min-side", "8"]
    assert main(["trial", "--data", ",".join(paths), *words]) == 0
    told = capsys.readouterr().out
    assert "kitchen/set" in told
    assert "forest/set" in told
    assert main(["trial", "--data", f"{paths[0]},{paths[0]}", *words]) != 0
    assert "expected sets of different names" in capsys.readouterr().err


def test_what_cannot_be_read_or_written_is_told_before_the_work(
    written: list[Calibration],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = str(make_set(tmp_path))
    monkeypatch.setattr(trial, "try_set", lambda *args, **settings: pytest.fail("the work began"))
    assert main(["trial", "--data", f"{data},{tmp_path / 'none.json'}"]) != 0
    assert main(["trial", "--data", data, "--json", f"{data}/x.json"]) != 0
    told = capsys.readouterr().err
    assert "none.json" in told
    assert "--json: expected a file that can be written" in told


def test_figures_are_told_even_if_nothing_can_be_calibrated(
    written: list[Calibration],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Blind(Runtime):
        def match(self, images: Any, classes: Any) -> list[Detections]:
            return [Detections.empty() for _ in images]

    monkeypatch.setattr(loading, "load_runtime", lambda name: Blind())
    words = ["--shots", "1", "--min-side", "8", "--calibrate"]
    assert main(["trial", "runs/mine", "--data", str(make_set(tmp_path)), *words]) != 0
    answer = capsys.readouterr()
    assert "AP50" in answer.out
    assert "expected trials with at least one right box" in answer.err
    assert written == []


@pytest.mark.parametrize("name", [None, "tenet_lite0"])
def test_models_of_the_package_are_judged_and_left_as_they_are(
    written: list[Calibration], tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str | None
) -> None:
    words = ["--data", str(make_set(tmp_path, pictures=8)), "--shots", "1", "--min-side", "8", "--calibrate"]
    assert main(["trial", *([name] if name else []), *words]) == 0
    assert written == []
    assert "comes with the package" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--size", "banana"], "expected auto"),
        (["--size", "5000"], "size: expected"),
        (["--limit", "-5"], "at least 1"),
        (["--shots", "5,0"], "--shots: expected whole numbers of at least 1, got 0"),
    ],
)
def test_settings_that_cannot_work_are_told_before_the_work(
    written: list[Calibration],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.setattr(trial, "try_set", None)  # whoever asks for it fails otherwise
    data = make_set(tmp_path, pictures=4)
    try:
        code = main(["trial", "--data", str(data), *words])
    except SystemExit as stop:
        code = stop.code
    assert code
    assert message in capsys.readouterr().err
