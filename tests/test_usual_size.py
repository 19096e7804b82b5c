"""Boxes of another size than the rest count less, where the shots have one size."""

import numpy as np
import pytest
from fake_runtime import FakeRuntime

from tenet.bank import ClassBank
from tenet.looks.request import Request
from tenet.looks.sizes import SeenSize
from tenet.looks.usual_size import UsualSize, usual_size
from tenet.predictor import Tenet
from tenet.structures import ClassFeatures, Detections

BOXES = np.array([[0, 0, 40, 40], [0, 0, 20, 80], [0, 0, 120, 120], [0, 0, 10, 10]], np.float32)
SCORES = np.array([0.6, 0.5, 0.3, 0.3], np.float32)
SIZE = (400, 300)


def shots(*sides: float, scenes: bool = True) -> list[SeenSize]:
    """One in each picture of 400 x 300 px."""
    return [SeenSize((side, side), SIZE, scene * scenes) for scene, side in enumerate(sides, start=1)]


def test_things_of_one_size_lower_boxes_of_another() -> None:
    usual = usual_size(shots(40, 41, 39, 40, 42))
    factor = usual.factor(BOXES, SCORES, SIZE)
    assert factor[:2] == pytest.approx([1, 1], abs=0.05)  # the same area, whatever its shape
    assert factor[2] < 0.5
    assert factor[3] < 0.5
    assert np.allclose(usual.factor(2 * BOXES, SCORES, (800, 600)), factor)


@pytest.mark.parametrize("zoom", [0.2, 0.5, 3.0])
def test_a_picture_tells_its_own_scale(zoom: float) -> None:
    """Close-ups are shown, a wide view is looked at: the best boxes stay, the odd ones still fall."""
    factor = usual_size(shots(40, 41, 39, 40, 42)).factor(zoom * BOXES, SCORES, SIZE)
    assert (factor[:2] > 0.9).all()
    assert (factor[2:] < 0.5).all()


def test_a_single_box_keeps_its_score() -> None:
    usual = usual_size(shots(200, 210, 190, 205))
    assert usual.factor(BOXES[3:], SCORES[3:], SIZE) > 0.9


@pytest.mark.parametrize(
    "seen",
    [
        [],
        shots(40),
        shots(40, 40, 40, 40, 40, scenes=False),
        [SeenSize((40, 40))] * 5,
        [SeenSize((40 + i, 40), SIZE, 7) for i in range(5)],
        shots(20, 40, 80, 160, 35),
    ],
    ids=["none", "one", "unknown pictures", "bare crops", "one picture", "many sizes"],
)
def test_shots_that_tell_no_size_change_nothing(seen: list[SeenSize]) -> None:
    assert (usual_size(seen).factor(BOXES, SCORES, SIZE) == 1).all()


def test_more_pictures_that_agree_tell_more() -> None:
    factors = [usual_size(shots(*[40] * n)).factor(BOXES, SCORES, SIZE)[2] for n in (1, 2, 3, 5, 10)]
    assert factors == sorted(factors, reverse=True)
    assert factors[0] == 1
    assert factors[-1] < 0.1


def test_boxes_of_no_extent_and_no_boxes() -> None:
    usual = UsualSize(np.log(0.1), 0.2)
    assert usual.factor(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), SIZE).shape == (0,)
    flat = np.concatenate([BOXES[:1], [[5, 5, 5, 9]]]).astype(np.float32)
    factor = usual.factor(flat, SCORES[:2], SIZE)
    assert factor[0] > 0.9
    assert 0 <= factor[1] < 0.1


class Squared(FakeRuntime):
    """Finds the same boxes everywhere; its curve is not a straight line."""

    def match(self, images: object, classes: list[ClassFeatures]) -> list[Detections]:  # type: ignore[override]
        none = np.zeros(4, np.int64)
        return [Detections(BOXES, SCORES, none, none) for _ in images]  # type: ignore[attr-defined]

    def calibrate(self, scores: np.ndarray) -> np.ndarray:
        return np.asarray(scores**2, np.float32)


def bank_of(runtime: FakeRuntime, *sides: int) -> ClassBank:
    """A class whose shots have these sides, each in a picture of its own."""
    rng = np.random.default_rng(0)
    bank = ClassBank(runtime)
    scenes = [rng.integers(0, 255, (300, 400, 3), dtype=np.uint8) for _ in sides]
    bank.register("red", [(scene, (10, 10, 10 + s, 10 + s)) for scene, s in zip(scenes, sides, strict=True)])
    return bank


def test_scores_are_judged_before_they_are_calibrated() -> None:
    runtime = Squared()
    bank = bank_of(runtime, 40, 41, 39, 40)
    request = Request(runtime, bank, 0.0, None, "original", False, 10)
    told = request.judge(SIZE, BOXES, SCORES, np.zeros(4, np.int64))
    factor = usual_size(bank.seen("red")).factor(BOXES, SCORES, SIZE)
    assert told == pytest.approx((SCORES * factor) ** 2)
    assert told[2] < 0.5 * SCORES[2] ** 2
    assert SCORES[2] == np.float32(0.3)


def test_detections_are_judged_by_their_shots() -> None:
    runtime, picture = Squared(), np.zeros((300, 400, 3), np.uint8)
    even, uneven = (
        Tenet(runtime).detect(picture, bank_of(runtime, *sides), threshold=0.0, size="original")
        for sides in ((40, 41, 39, 40), (20, 150, 40, 90))
    )
    assert uneven.scores == pytest.approx(np.sort(SCORES**2)[::-1])
    assert even.scores[:2] == pytest.approx(uneven.scores[:2], rel=0.05)
    assert (even.scores[2:] < uneven.scores[2:] / 2).all()


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
