"""Banks that `tenet detect` and `tenet explain` are given: unusable ones, and those of other models."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import safetensors
from detect_parts import photos_and_bank
from fake_runtime import FakeRuntime

from tenet.bank import ClassBank
from tenet.cli import main
from tenet.predictor import Tenet
from tenet.runtime import shipped


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    photos_and_bank(monkeypatch, tmp_path)


def half_a_bank() -> None:
    whole = Path("things.bank").read_bytes()
    Path("other.bank").write_bytes(whole[: len(whole) // 2])


def a_picture() -> None:
    Path("other.bank").write_bytes(Path("photos/one.png").read_bytes())


def no_classes() -> None:
    ClassBank(FakeRuntime()).save("other.bank")


@pytest.mark.parametrize("command", ["detect", "explain"])
@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: None, "no such file"),
        (half_a_bank, "expected"),
        (a_picture, "expected"),
        (no_classes, "got an empty bank; register one: `tenet register other.bank NAME IMAGE`"),
    ],
    ids=["absent", "half", "picture", "empty"],
)
def test_a_bank_that_cannot_be_used_is_refused_before_the_model_is_loaded(
    command: str,
    make: Callable[[], None],
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(Tenet, "load", staticmethod(lambda name=None: loaded.append(name)))
    make()
    assert main([command, "other.bank", "photos/one.png"]) == 1
    out, err = capsys.readouterr()
    assert (out, loaded) == ("", [])
    assert err.startswith(f"tenet {command}: other.bank: ")
    assert says in err
    assert err.count("\n") == 1


def test_a_bank_of_a_shipped_model_is_read_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --model, though another one is the default; what did not come with tenet has to be named."""
    asked: list[str | None] = []
    load = Tenet.load
    monkeypatch.setattr(Tenet, "load", staticmethod(lambda name=None: (asked.append(name), load())[1]))
    words = ["detect", "things.bank", "photos/both.png"]
    assert main(words) == 0
    monkeypatch.setattr(shipped, "shipped_models", lambda: ["fake"])
    assert main(words) == 0
    assert main([*words, "--model", "mine"]) == 0
    assert asked == [None, "fake", "mine"]


@pytest.mark.parametrize("command", ["detect", "explain"])
def test_a_bank_of_another_model_and_the_commands_that_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("things.bank").rename("my things.bank")
    words = [command, "my things.bank", "photos/both.png"]
    assert main([*words, "--model", "fake-2"]) == 1
    err = capsys.readouterr().err
    assert "expected a bank of model fake (fake-2), got one of fake (fake-1)" in err
    assert "`--model NAME`" in err
    assert err.count("\n") == 1
    assert main([*words, "--model", "fake-1"]) == 0
    [rebuild] = re.findall(r"`tenet (classes [^`]+)`", err)
    assert main(shlex.split(rebuild)) == 0
    assert main([*words, "--model", "fake-2"]) == 0


def test_a_damaged_class_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(Path("things.bank").read_bytes())
    with safetensors.safe_open("things.bank", "np") as file:
        colour = file.get_tensor("raw")[0].tobytes()
    content[content.rindex(colour)] ^= 1
    Path("things.bank").write_bytes(content)
    assert main(["detect", "things.bank", "photos/both.png"]) == 1
    assert "the file is damaged" in capsys.readouterr().err
