"""`kill -9` of `tenet evaluate`: the same command goes on, and the numbers are those of one never stopped."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tiny_runs import PATIENCE, environment, started, tenet, tiny_recipe, train

from tenet.data.formats import read_dataset
from tenet.data.synthetic import write_synthetic
from tenet.engine.evaluation_store import SHARD

PICTURES = 60


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """All but `--out`: a checkpoint that learned two classes, tested on the two others."""
    data = write_synthetic(tmp_path / "set", PICTURES, 4, (80, 60), seed=1)
    whole = json.loads(data.read_text())
    learned = {c["id"] for c in whole["categories"][:2]}
    boxes = [a for a in whole["annotations"] if a["category_id"] in learned]
    half = whole | {"categories": whole["categories"][:2], "annotations": boxes}
    (data.parent / "half.json").write_text(json.dumps(half))
    recipe = tiny_recipe(iterations=1)
    recipe = type(recipe).from_dict(recipe.to_dict() | {"data": {"train": ["half.json"]}})
    train(recipe, data.parent, tmp_path / "run")
    classes = ",".join(read_dataset(data).classes[2:])
    options = ["--classes", classes, "--shots", "1,2", "--seeds", "0-1", "--metric", "voc07,coco"]
    return tenet("evaluate", tmp_path / "run", "--data", data, *options, "--workers", "0")


def shards(out: Path) -> dict[str, int]:
    """Those that are whole, with the time at which they were written."""
    return {path.name: path.stat().st_mtime_ns for path in out.glob("shards/[0-9]*")}


def result(out: Path) -> dict[str, Any]:
    document = json.loads((out / "results.json").read_text())
    assert document.pop("seconds") > 0
    return dict(document)


def test_killed_and_continued_is_undisturbed(command: list[str], tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with started([*command, "--out", str(killed)], tmp_path) as process:
        deadline = time.monotonic() + PATIENCE
        while not shards(killed):
            assert process.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.kill()
        process.wait()
    before = shards(killed)
    assert 0 < len(before) < PICTURES // SHARD, "the process was not killed in the middle"
    assert not (killed / "results.json").exists()
    for out in (killed, whole):
        subprocess.run(
            [*command, "--out", str(out)],
            env=environment(),
            check=True,
            timeout=PATIENCE,
            stdout=subprocess.DEVNULL,
        )
    assert before.items() <= shards(killed).items(), "a shard that was whole was made again"
    assert shards(killed).keys() == shards(whole).keys()
    assert result(killed) == result(whole)
    assert result(whole)["results"][-1]["AR100"] > 0  # something is found: the test can fail
    for path in sorted(whole.rglob("*")):
        if path.is_file() and path.name not in ("results.json", "report.html"):
            assert path.read_bytes() == (killed / path.relative_to(whole)).read_bytes(), path
