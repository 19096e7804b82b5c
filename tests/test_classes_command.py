"""`tenet classes`, end to end in a temporary folder, without a network unless something is encoded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bank_parts import RecordingRuntime, colour_bank, picture, same_banks
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.bank import ClassBank
from tenet.cli import main
from tenet.predictor import Tenet


@pytest.fixture
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """A working folder with the bank a.bank; models that are loaded are listed."""
    asked: list[str | None] = []

    def load(name: str | None = None) -> Tenet:
        asked.append(name)
        return Tenet(RecordingRuntime(name or "fake-1"))

    monkeypatch.setattr(Tenet, "load", load)
    monkeypatch.chdir(tmp_path)
    colour_bank().save("a.bank")
    return asked


def test_table(loads: list[str | None], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classes", "a.bank"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["class", "shots", "sees", "verdict"],
        ["red", "1", "–", "unknown"],
        ["green", "2", "1/1", "good"],
        ["blue", "3", "3/3", "good"],
    ]
    assert lines[4].startswith("3 classes, 6 shots; model fake (fake-1); ")
    assert loads == []


def test_json(loads: list[str | None], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classes", "a.bank", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["classes"]] == ["red", "green", "blue"]
    assert told["bytes"] == Path("a.bank").stat().st_size
    assert (told["model"], told["fingerprint"], told["shots"]) == ("fake", "fake-1", 6)


def test_an_empty_bank(loads: list[str | None], capsys: pytest.CaptureFixture[str]) -> None:
    ClassBank(FakeRuntime()).save("empty.bank")
    assert main(["classes", "empty.bank"]) == 0
    assert capsys.readouterr().out.startswith("no classes yet; model fake")
    assert main(["classes", "empty.bank", "--merge", "a.bank"]) == 0
    assert ClassBank.open("empty.bank").names == ("red", "green", "blue")


def test_listing_loads_no_torch(tmp_path: Path) -> None:
    path = tmp_path / "a.bank"
    colour_bank().save(path)
    code = (
        "import sys; from tenet.cli import main; "
        f"main(['classes', {str(path)!r}, '--export-shots', {str(tmp_path / 'out')!r}]); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "3 classes" in done.stdout


def test_remove_and_rename(loads: list[str | None]) -> None:
    assert main(["classes", "a.bank", "--remove", "red"]) == 0
    assert main(["classes", "a.bank", "--rename", "blue", "navy blue"]) == 0
    assert ClassBank.open("a.bank").names == ("green", "navy blue")
    assert loads == []
    assert main(["classes", "a.bank", "--remove", "navy blue", "--shot", "0"]) == 0
    assert len(ClassBank.open("a.bank").seen("navy blue")) == 2
    assert loads == [None]


def test_merge_loads_a_model_only_for_classes_of_both(
    loads: list[str | None], capsys: pytest.CaptureFixture[str]
) -> None:
    other = ClassBank(RecordingRuntime())
    other.register("black", [picture()])
    other.save("other.bank")
    assert main(["classes", "a.bank", "--merge", "other.bank"]) == 0
    assert loads == []
    other.register("red", [picture("red", seed=5)])
    other.save("other.bank")
    capsys.readouterr()
    assert main(["classes", "a.bank", "--merge", "other.bank", "--json", "-"]) == 0
    assert loads == [None]
    said = capsys.readouterr()
    assert json.loads(said.out)["shots"] == 8
    assert said.err.startswith("red: 2 shots")
    assert ClassBank.open("a.bank").names == ("red", "green", "blue", "black")


def test_rebuild(loads: list[str | None]) -> None:
    assert main(["classes", "a.bank", "--rebuild", "--model", "fake-2"]) == 0
    assert loads == ["fake-2"]
    found = ClassBank.load("a.bank", RecordingRuntime("fake-2"))
    assert same_banks(found, colour_bank(RecordingRuntime("fake-2")))


def test_export(loads: list[str | None]) -> None:
    bank = ClassBank.load("a.bank", RecordingRuntime())
    bank.rename("red", "Blue")
    bank.rename("green", "a:b?.")
    bank.save("a.bank")
    assert main(["classes", "a.bank", "--export-shots", "shots"]) == 0
    written = sorted(str(path.relative_to("shots")) for path in Path("shots").rglob("*.jpg"))
    assert written == ["Blue/0.jpg", "a_b_/0.jpg", "a_b_/1.jpg", *(f"blue-2/{row}.jpg" for row in range(3))]
    with Image.open("shots/Blue/0.jpg") as crop:
        assert crop.size == (32, 32)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent.bank"], "make one with `tenet register`"),
        (["picture.bank"], "expected a bank"),
        (["a.bank", "--remove", "rad"], "such as red"),
        (["a.bank", "--rename", "red", "blue"], "name that is free"),
        (["a.bank", "--rename", "red", "a/b"], "slash"),
        (["a.bank", "--remove", "blue", "--shot", "9"], "from 0 to 2"),
        (["a.bank", "--shot", "1"], "--remove NAME"),
        (["a.bank", "--merge", "absent.bank"], "no such file"),
        (["a.bank", "--merge", "strange.bank"], "rebuild"),
        (["a.bank", "--export-shots", "full"], "new or empty folder"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    loads: list[str | None], capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    Image.new("RGB", (4, 4)).save("picture.bank", "PNG")
    strange = ClassBank(RecordingRuntime("fake-9"))
    strange.register("other", [picture()])
    strange.save("strange.bank")
    Path("full").mkdir()
    Path("full/file").touch()
    before = Path("a.bank").read_bytes()
    assert main(["classes", *words]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("tenet classes: ")
    assert said.err.count("\n") == 1
    assert message in said.err
    assert said.out == ""
    assert Path("a.bank").read_bytes() == before
