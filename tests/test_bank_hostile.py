"""ClassBank: shots, names and features that are refused, or taken with a note."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bank_parts import THING, colour_bank, picture
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.bank import ClassBank
from tenet.errors import DataError, InputError, TenetError, WeightsError
from tenet.looks.sizes import SeenSize
from tenet.structures import ClassFeatures


def files(folder: Path) -> dict[str, Any]:
    """Files that are no pictures, each a shot that must be refused."""
    whole = BytesIO()
    Image.fromarray(picture(width=400, height=400)).save(whole, "JPEG")
    content = {
        "text.jpg": b"not a picture",
        "empty.png": b"",
        "truncated.jpg": whole.getvalue()[: len(whole.getvalue()) // 2],
    }
    for name, data in content.items():
        (folder / name).write_bytes(data)
    Image.new("1", (30_000, 3_000)).save(folder / "bomb.png")
    return {name: folder / name for name in (*content, "bomb.png", "absent.jpg")}


def test_files_that_are_no_pictures(tmp_path: Path) -> None:
    bank = ClassBank(FakeRuntime())
    good = picture()
    for name, path in files(tmp_path).items():
        for shot in (path, (path, THING)):
            with pytest.raises(DataError, match=rf"^red, shot 1: .*{name}: expected") as caught:
                bank.register("red", [good, shot])
            assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match=r"shot 0: picture: expected a picture"):
        bank.register("red", [b"bytes that are no picture"])
    for shot in (tmp_path, str(tmp_path), (tmp_path, THING)):
        with pytest.raises(DataError, match=r"shot 0: .*expected a picture, got a folder; list its files"):
            bank.register("red", [shot])
    assert len(bank) == 0


@pytest.mark.parametrize(
    ("shot", "message"),
    [
        (np.zeros((0, 5, 3), np.uint8), "at least 1 x 1 px"),
        (np.zeros((5, 5, 3), np.float32), "array of uint8"),
        (np.zeros((5, 5, 2), np.uint8), r"shape \(H, W, 3\)"),
        (None, "expected a path, bytes, a PIL picture or an array, got NoneType"),
        (7, "got int"),
        (
            (picture(), (200, 10, 260, 50)),
            "1 × 1 px inside its picture of 160 × 120 px, got 200, 10, 260, 50",
        ),
        ((picture(), (-50, -50, 0.2, 40)), "inside its picture"),
        ((picture(), (10, 10, 10, 40)), "x2 > x1 and y2 > y1, got 10, 10, 10, 40"),
        ((picture(), (100, 80, 20, 30)), "is it x, y, width, height"),
        ((picture(), (float("nan"), 0, 9, 9)), "four finite numbers"),
        ((picture(), (0, 0, float("inf"), 9)), "four finite numbers"),
        ((picture(), (1, 2, 3)), "four finite numbers"),
        ((picture(), ("a", "b", "c", "d")), "four finite numbers"),
        ((picture(), [[1, 2, 3, 4]]), "four finite numbers"),
        ((picture(), ()), "four finite numbers"),
        ((picture(), 5), "pair"),
        ((picture(),), "pair"),
        ((picture(), THING, "x"), "pair"),
    ],
)
def test_one_bad_shot_and_nothing_is_registered(shot: Any, message: str) -> None:
    runtime = FakeRuntime()
    bank = ClassBank(runtime)
    bank.register("red", [picture()])
    before = bank.features("red")
    for name in ("red", "new"):
        with pytest.raises(InputError, match=rf"^{name}, shot 1: .*{message}") as caught:
            bank.register(name, [picture(seed=5), shot, picture(seed=6)])
        assert "\n" not in str(caught.value)
    assert bank.names == ("red",)
    assert bank.features("red") is before
    assert runtime.encoded_shots == 1


@pytest.mark.parametrize("shots", [[], (), iter(()), None, 5, {"a": 1}])
def test_no_shots(shots: Any) -> None:
    bank = ClassBank(FakeRuntime())
    with pytest.raises(InputError, match="red, shots: expected"):
        bank.register("red", shots)
    assert len(bank) == 0


@pytest.mark.parametrize(
    "name", ["", "  ", " red", "a/b", "a\\b", "..", "a\nb", "a\x00b", "\ud800", "x" * 101]
)
def test_names_that_are_refused(name: str) -> None:
    bank = ClassBank(FakeRuntime())
    with pytest.raises(InputError, match="class name: expected") as caught:
        bank.register(name, [picture()])
    assert str(caught.value).isprintable()
    assert len(bank) == 0
    with pytest.raises(InputError, match="expected text, got int"):
        bank.register(5, [picture()])  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x" * 100, "pine cone", "松ぼっくり", "n.a.", "a,b", "C:", "__metadata__"])
def test_names_that_are_allowed(name: str, tmp_path: Path) -> None:
    bank = ClassBank(FakeRuntime())
    bank.register(name, [picture()])
    bank.save(tmp_path / "a.bank")
    assert ClassBank.open(tmp_path / "a.bank").names == (name,)


def test_extreme_shapes() -> None:
    bank = ClassBank(FakeRuntime())
    long = np.full((4, 30_000, 3), 90, np.uint8)
    answer = bank.register("long", [long, (long, (10, 0, 30, 4)), np.zeros((1, 1, 3), np.uint8)])
    assert answer.shots == 3
    assert np.isfinite(bank.features("long").phi).all()


def test_an_unknown_class_names_those_like_it() -> None:
    bank = colour_bank()
    with pytest.raises(InputError, match=r"class 'gren': expected one of the bank's, such as green"):
        bank.features("gren")


def test_boxes_at_the_border_are_cut_with_a_note() -> None:
    bank = ClassBank(FakeRuntime())
    answer = bank.register("red", [(picture(), (100, 60, 190, 121)), (picture(), (100.2, 60, 160.3, 120))])
    cut = [note for note in answer.notes if "outside the picture" in note]
    assert cut == ["shot 0: its box reaches 30 px outside the picture and was cut there"]
    assert bank.seen("red")[0] == SeenSize((60, 60), (160, 120))


def test_a_box_around_everything_is_a_bare_crop() -> None:
    bank = ClassBank(FakeRuntime())
    answer = bank.register("red", [(picture(), (0, 0, 160, 119))])
    assert bank.shots("red")[0].bare
    assert bank.seen("red") == [SeenSize((160, 119))]
    assert answer.verdict == "unknown"
    assert "bare crop" in answer.notes[0]


def test_features_that_are_not_numbers_are_refused() -> None:
    class Broken(FakeRuntime):
        value = np.nan

        def encode_shots(self, shots: Any) -> ClassFeatures:
            found = super().encode_shots(shots)
            return ClassFeatures(found.psi_rpn, found.psi, found.phi + self.value, found.raw)

    bank = ClassBank(Broken())
    for value in (np.nan, np.inf, 1e6):
        Broken.value = value
        with pytest.raises(WeightsError, match="finite phi"):
            bank.register("red", [picture()])
    assert len(bank) == 0
    Broken.value = 0.0
    assert bank.register("red", [(picture(), THING)]).verdict == "unknown"  # a runtime that tells no ranks


def test_errors_are_of_one_family() -> None:
    with pytest.raises(TenetError):
        ClassBank.load("no/such.bank", FakeRuntime())
