"""The README's commands and Python run as they stand there."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tenet.cli import build_parser, main
from tenet.demo import SCENES
from tenet.demo.outcome import judge
from tenet.pictures import read_picture

LEAST = 12
"""Coins that the shipped model finds, of 21 that it was not shown: less means that something is broken."""
ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_python_blocks_run_in_order() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    found, model = names["found"], names["model"]
    assert judge(SCENES[0], found).right >= LEAST
    assert set(found.names) == {"coin"}
    assert (found.scores >= model.runtime.threshold).all()
    assert (found.scores[:-1] >= found.scores[1:]).all()
    assert names["psi"].shape == (300, 128)


def test_shell_blocks_run_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an empty folder: what is copied there comes from the line that copies it."""
    [block] = [text for text in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if "tenet register" in text]
    lines = [shlex.split(line, comments=True) for line in block.strip().splitlines()]
    assert lines[:2] == [[".", ".venv/bin/activate"], ["cp", "tenet/demo/coins.png", "."]]
    # The tests run in such an environment already; that `make` puts it there is the Makefile's word.
    assert "VENV   := .venv\n" in (ROOT / "Makefile").read_text()
    subprocess.run(["cp", ROOT / lines[1][1], tmp_path / lines[1][2]], check=True)
    monkeypatch.chdir(tmp_path)
    assert len(lines[2:]) == 5
    for program, *words in lines[2:]:
        assert program == "tenet"
        assert main(words) == 0, words
    document = json.loads(Path("found.json").read_text())
    [picture] = document["pictures"]
    assert len(picture["detections"]) >= LEAST
    assert all(one["class"] == "coin" for one in picture["detections"])
    assert all(document["threshold"] <= one["score"] <= 1 for one in picture["detections"])
    shown = [read_picture(path) for path in ("coins.png", "found/annotated/coins.jpg")]
    assert shown[0].shape == shown[1].shape
    changed = np.abs(shown[0].astype(int) - shown[1]).max(-1) > 60
    assert changed.sum() > LEAST * 100  # the lines of so many boxes
    assert read_picture("why.png").shape[1] > 1500
    assert sorted(path.name for path in Path("shots/coin").iterdir()) == ["0.jpg", "1.jpg"]


@pytest.mark.parametrize("line", re.findall(r"`(tenet [^`]+)`", README))
def test_commands_are_understood(line: str) -> None:
    words = shlex.split(line)[1:]
    assert build_parser(words[0]).parse_args(words).command == words[0]


def test_make_verbs_exist() -> None:
    verbs = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"make ([a-z]+)\b", README)) - {"the"}
    assert {"demo", "test", "help"} <= named <= verbs


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
