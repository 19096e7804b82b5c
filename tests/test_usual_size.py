"""Boxes of another size than all shots count less, where the shots have one size."""

import numpy as np
import pytest
from fake_bank import FakeBank
from fake_runtime import FakeRuntime

from tenet.bank import ClassBank
from tenet.looks.request import Request
from tenet.looks.sizes import SeenSize
from tenet.looks.usual_size import UsualSize, usual_size
from tenet.structures import Detections

BOXES = np.array([[0, 0, 40, 40], [0, 0, 20, 80], [0, 0, 120, 120], [0, 0, 10, 10]], np.float32)


def shots(*sides: float, scenes: bool = True) -> list[SeenSize]:
    """One in each picture of 400 x 300 px."""
    return [SeenSize((side, side), (400, 300), scene * scenes) for scene, side in enumerate(sides, start=1)]


def test_things_of_one_size_lower_boxes_of_another() -> None:
    factor = usual_size(shots(40, 41, 39, 40, 42)).factor(BOXES, (400, 300))
    assert factor[:2] == pytest.approx([1, 1], abs=0.05)  # the same area, whatever its shape
    assert factor[2] < 0.5
    assert factor[3] < 0.5
    twice = usual_size(shots(40, 41, 39, 40, 42)).factor(2 * BOXES, (800, 600))
    assert np.allclose(twice, factor)


@pytest.mark.parametrize(
    "seen",
    [
        [],
        shots(40),
        shots(40, 40, 40, 40, 40, scenes=False),
        [SeenSize((40, 40))] * 5,
        [SeenSize((40 + i, 40), (400, 300), 7) for i in range(5)],
        shots(20, 40, 80, 160, 35),
    ],
    ids=["none", "one", "unknown pictures", "bare crops", "one picture", "many sizes"],
)
def test_shots_that_tell_no_size_change_nothing(seen: list[SeenSize]) -> None:
    assert (usual_size(seen).factor(BOXES, (400, 300)) == 1).all()


def test_more_pictures_that_agree_tell_more() -> None:
    factors = [usual_size(shots(*[40] * n)).factor(BOXES, (400, 300))[2] for n in (1, 2, 3, 5, 10)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] == 1
    assert factors[-1] < 0.1


def test_boxes_of_no_extent_and_no_boxes() -> None:
    usual = UsualSize(np.log(0.1), 0.2)
    assert usual.factor(np.zeros((0, 4), np.float32), (400, 300)).shape == (0,)
    [flat] = usual.factor(np.array([[5, 5, 5, 9]], np.float32), (400, 300))
    assert 0 <= flat < 0.1


def test_scores_are_judged_before_they_are_calibrated() -> None:
    class Halved(FakeRuntime):
        def calibrate(self, scores: np.ndarray) -> np.ndarray:
            return np.asarray(scores / 2, np.float32)

    runtime = Halved()
    bank = FakeBank(runtime, red=SeenSize((40, 40)))
    request = Request(runtime, bank, 0.0, None, "auto", False, 10)
    found = Detections(BOXES, np.full(4, 0.8, np.float32), np.zeros(4, np.int64), np.zeros(4, np.int64))
    assert request.judge((400, 300), found) == pytest.approx([0.4] * 4)
    request._usual = [usual_size(shots(40, 40, 40, 40))]
    told = request.judge((400, 300), found)
    assert told[0] == pytest.approx(0.4, abs=0.01)
    assert told[2] < 0.2
    assert (found.scores == np.float32(0.8)).all()


def test_a_bank_tells_pictures_apart() -> None:
    """Two shots of one picture share its number; another picture has another; a crop has none."""
    rng = np.random.default_rng(0)
    one, other = (rng.integers(0, 255, (120, 160, 3), dtype=np.uint8) for _ in range(2))
    bank = ClassBank(FakeRuntime())
    bank.register(
        "red", [(one, (10, 10, 50, 50)), (one, (60, 20, 100, 60)), (other, (5, 5, 45, 45)), other[:50, :50]]
    )
    first, second, third, crop = (size.scene for size in bank.seen("red"))
    assert first == second != third
    assert 0 not in (first, third)
    assert crop == 0
