"""`tenet bench models`: a row for each shipped model, as a ratio of the fastest."""

import re

import pytest

from tenet.cli import main
from tenet.runtime import shipped


def test_a_row_for_each_model(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(shipped, "shipped_models", lambda: ["tenet_lite0"])
    assert main(["bench", "models", "--rounds", "1", "--scene", "star"]) == 0
    out = capsys.readouterr().out
    assert "star, " in out
    assert re.search(r"tenet_lite0 \| +[\d.]+ ms \| +1\.00 \| +[\d.]+ ms", out)


def test_an_unknown_scene_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "models", "--scene", "moon"]) == 1
    assert "expected one of coins, collage, star, absent, got 'moon'" in capsys.readouterr().err
