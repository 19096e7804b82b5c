"""From a recipe to a table: a checkpoint of `tenet train` is what `tenet evaluate` reads."""

import json
from pathlib import Path

import pytest
from tiny_runs import tiny_recipe, write_recipe

from tenet.cli import main


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Path:
    recipe = write_recipe(tmp_path, tiny_recipe(iterations=2))
    out = tmp_path / "run"
    assert main(["train", str(recipe), "--data-root", str(root), "--out", str(out)]) == 0
    return out


def evaluate(run: Path, root: Path, *words: str) -> list[str]:
    test = ["--data", str(root / "annotations.json"), "--shots", "2", "--seeds", "0", "--metric", "voc07"]
    return ["evaluate", str(run), *test, "--workers", "0", "--json", "-", *words]


def test_classes_that_were_trained_on_are_not_novel(
    run: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are the base side of a set without a split."""
    capsys.readouterr()
    assert main(evaluate(run, root)) == 0
    report = json.loads(capsys.readouterr().out)
    whole = json.loads((root / "annotations.json").read_text())
    assert report["settings"]["novel"] == []
    assert report["settings"]["base"] == [category["name"] for category in whole["categories"]]


@pytest.mark.parametrize("protocol", ["meta-test", "fine-tuned"])
def test_both_protocols(
    protocol: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Trained on two classes of the set, tested on the two others."""
    whole = json.loads((root / "annotations.json").read_text())
    classes = [c["name"] for c in whole["categories"]]
    kept = {c["id"] for c in whole["categories"][:2]}
    boxes = [a for a in whole["annotations"] if a["category_id"] in kept]
    half = whole | {"categories": whole["categories"][:2], "annotations": boxes}
    (root / "two_classes.json").write_text(json.dumps(half))
    path = write_recipe(tmp_path, tiny_recipe(iterations=2))
    only = 'data.train=["two_classes.json"]'
    fast = ["--set", "finetune.iterations=2", "--set", "finetune.batch=2", "--set", "finetune.micro_batch=1"]
    out = tmp_path / "run"
    assert main(["train", str(path), "--data-root", str(root), "--out", str(out), "--set", only, *fast]) == 0
    capsys.readouterr()
    words = ["--classes", ",".join(classes[2:])] + (["--finetune"] if protocol == "fine-tuned" else [])
    assert main(evaluate(out, root, *words)) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["protocol"] == protocol
