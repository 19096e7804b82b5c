"""`tenet explain`: figure, page, plain words where nothing is above the threshold, errors in one line."""

from pathlib import Path

import numpy as np
import pytest
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.bank import ClassBank
from tenet.cli import main
from tenet.predictor import Tenet


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """scene.png with a red and a blue thing, things.bank that knows them; commands use the fake model."""
    picture = np.full((200, 300, 3), 128, np.uint8)
    picture[20:80, 30:90] = (220, 30, 30)
    picture[100:180, 150:250] = (30, 30, 220)
    Image.fromarray(picture).save(tmp_path / "scene.png")
    bank = ClassBank(Tenet(FakeRuntime()))
    bank.register("red", [(tmp_path / "scene.png", (30, 20, 90, 80))])
    bank.register("blue", [(tmp_path / "scene.png", (150, 100, 250, 180))])
    bank.save(tmp_path / "things.bank")
    monkeypatch.setattr(Tenet, "load", staticmethod(lambda name=None: Tenet(FakeRuntime())))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_figure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "things.bank", "scene.png"]) == 0
    shown = capsys.readouterr()
    assert "The best 2 detections, explained." in shown.out
    assert "figure: scene-explained.png" in shown.out
    assert shown.err == ""
    rows = [line.split() for line in shown.out.splitlines() if line.endswith(("red", "blue"))]
    assert {row[-1]: [round(float(x.strip(","))) for x in row[1:5]] for row in rows} == {
        "red": pytest.approx([30, 20, 60, 60], abs=3),
        "blue": pytest.approx([150, 100, 100, 80], abs=3),
    }
    with Image.open(folder / "scene-explained.png") as figure:
        assert figure.format == "PNG"
        assert figure.width > 1500


@pytest.mark.parametrize("name", ["why.html", "why.HTM", "new/why.jpg"])
def test_other_kinds_of_files(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "things.bank", "scene.png", "--out", name, "--classes", "red", "--top", "1"]) == 0
    content = (folder / name).read_bytes()
    if "htm" in name.lower():
        assert content.startswith(b"<!doctype html>")
        assert content.count(b"data:image/jpeg") == 2
        assert b"The best detection, explained." in content
    else:
        assert content.startswith(b"\xff\xd8")
    assert "blue" not in capsys.readouterr().out


def test_nothing_above_the_threshold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "things.bank", "scene.png", "--threshold", "0.95", "--out", "why.png"]) == 0
    assert "Nothing reaches the threshold 0.95. Explained is the best below it" in capsys.readouterr().out
    assert (folder / "why.png").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["things.bank", "nothing.png"], "no such file"),
        (["things.bank", "things.bank"], "expected a picture"),
        (["things.bank", "scene.png", "--out", "why.tiff"], "expected a name that ends in .png"),
        (["things.bank", "scene.png", "--out", "scene.png/why.png"], "--out"),
        (["things.bank", "scene.png", "--threshold", "7"], "threshold: expected"),
        (["things.bank", "scene.png", "--threshold", "nan"], "threshold: expected"),
        (["things.bank", "scene.png", "--classes", "unicorn"], "unicorn"),
    ],
)
def test_errors_are_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    before = sorted(path.name for path in folder.iterdir())
    assert main(["explain", *words]) == 1
    shown = capsys.readouterr()
    assert says in shown.err
    assert shown.err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("words", [[], ["a.bank"], ["a.bank", "b.png", "--top", "0"]])
def test_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["explain", *words])
    assert stop.value.code == 2
