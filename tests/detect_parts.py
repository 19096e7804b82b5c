"""What the tests of `tenet detect` start from: a fake network, a bank of red and green, three pictures."""

from pathlib import Path

import pytest
from fake_bank import scene
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.bank import ClassBank
from tenet.predictor import Tenet

RED, GREEN = (100, 120, 170, 180), (300, 200, 360, 270)


def photos_and_bank(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """photos/both.png, one.png and zero.png, and things.bank, in `folder`, where the test works from then."""
    monkeypatch.setattr(Tenet, "load", staticmethod(lambda name=None: Tenet(FakeRuntime(name or "fake-1"))))
    monkeypatch.chdir(folder)
    (folder / "photos").mkdir()
    both = scene(640, 480, ("red", RED), ("green", GREEN))
    Image.fromarray(both).save("photos/both.png")
    bank = ClassBank(FakeRuntime())
    bank.register("red", [(both, RED)])
    bank.register("green", [(both, GREEN)])
    bank.save("things.bank")
    Image.fromarray(scene(640, 480, ("green", GREEN))).save("photos/one.png")
    Image.fromarray(scene(640, 480)).save("photos/zero.png")
