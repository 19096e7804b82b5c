"""A picture is looked at again where its things are of another size than the shots', and only there."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
from fake_bank import FakeBank, PiecesRuntime, scene
from predictor_parts import same

from tenet.looks.second_look import (
    FACTOR,
    LEAST_LONGER,
    MOST_ENLARGED,
    MOST_LONGER,
    MOST_LOOKS,
    Looks,
    found_shift,
)
from tenet.looks.sizes import SeenSize, seen_well
from tenet.looks.views import LEAST_SIDE, Size, plan_views
from tenet.predictor import Tenet
from tenet.runtime.protocol import Picture
from tenet.structures import ClassFeatures, Detections

SHOT = SeenSize((128, 128), (640, 480))


class NearSighted(PiecesRuntime):
    """Sees only things of 90 px and more for sure; remembers how large the pictures were."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[tuple[int, int]] = []

    def _match(self, image: Picture, classes: Sequence[ClassFeatures]) -> Detections:
        self.sizes.append((image.shape[1], image.shape[0]))
        found = super()._match(image, classes)
        sides = (found.boxes[:, 2:] - found.boxes[:, :2]).max(1, initial=0)
        sure = np.where(sides >= 90, found.scores, 0.3)
        return Detections(found.boxes, sure.astype(np.float32), found.labels, found.shots)


def spots(width: int, height: int, side: int, number: int = 4) -> np.ndarray:
    """Red squares in a row."""
    places = [(10 + place * (side + 20), 20) for place in range(number)]
    return scene(width, height, *(("red", (x, y, x + side, y + side)) for x, y in places))


@pytest.fixture
def runtime() -> NearSighted:
    return NearSighted()


@pytest.fixture
def bank(runtime: NearSighted) -> FakeBank:
    return FakeBank(runtime, red=SHOT)


def look(runtime: NearSighted, bank: FakeBank, picture: np.ndarray, size: Size = "auto") -> Detections:
    runtime.sizes.clear()
    found = Tenet(runtime).detect(picture, bank, size=size)
    assert isinstance(found, Detections)
    return found


def test_small_things_are_found_by_a_closer_look(runtime: NearSighted, bank: FakeBank) -> None:
    """Close-ups were shown, and the picture is a wide view of three times the width."""
    found = look(runtime, bank, spots(1920, 1440, 128))
    assert len(found) == 4
    assert runtime.sizes[0] == (480, 360)
    assert len(runtime.sizes) == 2
    assert 1200 < runtime.sizes[1][0] < 1700
    np.testing.assert_allclose(found.boxes[:, 2:] - found.boxes[:, :2], 128, atol=6)
    assert len(look(runtime, bank, spots(1920, 1440, 128), size=480)) == 0


def test_things_as_large_as_the_shots_are_looked_at_once(runtime: NearSighted, bank: FakeBank) -> None:
    for picture in (spots(640, 480, 128), spots(640, 480, 124), spots(1280, 960, 280)):
        assert len(look(runtime, bank, picture)) == 4
        assert len(runtime.sizes) == 1


def test_large_things_are_looked_at_from_afar(runtime: NearSighted, bank: FakeBank) -> None:
    far = FakeBank(runtime, red=SeenSize((48, 48), (640, 480)))
    assert len(look(runtime, far, spots(640, 480, 180, 3))) == 3
    assert runtime.sizes[0] == (960, 720)
    assert 300 <= runtime.sizes[1][0] < 480


@pytest.mark.parametrize("size", [480, 1280, "original", "once"])
def test_a_size_that_was_asked_for_is_kept(size: Size, runtime: NearSighted, bank: FakeBank) -> None:
    look(runtime, bank, spots(1920, 1440, 40), size=size)
    assert len(runtime.sizes) == 1


def test_thorough_is_auto_twice_second_looks_among_them(runtime: NearSighted, bank: FakeBank) -> None:
    once = look(runtime, bank, spots(1920, 1440, 128))
    sizes = list(runtime.sizes)
    twice = look(runtime, bank, spots(1920, 1440, 128), size="thorough")
    assert runtime.sizes == 2 * sizes
    assert len(twice) == len(once) == 4


def test_where_nothing_is_found_nothing_is_looked_for_again(runtime: NearSighted, bank: FakeBank) -> None:
    assert len(look(runtime, bank, scene(1920, 1440))) == 0
    assert len(runtime.sizes) == 1


def test_a_calibration_changes_nothing_of_what_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trial that calibrates sees what users will see."""
    seen = []
    for factor in (0.1, 1.0):
        runtime = NearSighted()
        monkeypatch.setattr(runtime, "calibrate", partial(np.multiply, np.float32(factor)))
        look(runtime, FakeBank(runtime, red=SHOT), spots(1920, 1440, 128))
        seen.append(runtime.sizes)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 2


def test_tiles_are_not_looked_at_again(runtime: NearSighted) -> None:
    dust = SeenSize((20, 20), (1920, 1440))
    tiny = FakeBank(runtime, red=dust)
    look(runtime, tiny, spots(1920, 1440, 100))
    tiles = len(plan_views((1920, 1440), [tiny.seen("red")]))
    assert len(runtime.sizes) == tiles > 2
    # A class in tiles does not keep the others from a closer look.
    assert len(look(runtime, FakeBank(runtime, red=SHOT, green=dust), spots(1920, 1440, 128))) == 4
    assert len(runtime.sizes) == tiles + 2


def test_tiles_that_bare_crops_call_for_follow_a_look_that_finds_nothing(runtime: NearSighted) -> None:
    """A crop of 40 px may be one of another camera: a large thing in the whole picture proves it."""
    bare = FakeBank(runtime, red=SeenSize((40, 40)))
    assert len(look(runtime, bare, spots(3000, 2000, 300, 3))) == 3
    assert runtime.sizes == [(960, 640)]
    assert len(look(runtime, bare, spots(3000, 2000, 91, 4))) == 4
    assert len(runtime.sizes) > 4
    look(runtime, bare, scene(3000, 2000))
    guessed = len(runtime.sizes)
    look(runtime, bare, scene(3000, 2000), size="once")
    assert 4 < guessed == len(runtime.sizes)
    look(runtime, bare, spots(3000, 2000, 300, 3), size="once")
    assert len(runtime.sizes) == guessed
    known = FakeBank(runtime, red=SeenSize((40, 40), (3000, 2000)))
    look(runtime, known, spots(3000, 2000, 300, 3))
    assert len(runtime.sizes) == guessed, "what is known needs no proof"


def test_guessed_tiles_of_one_class_leave_the_others_their_looks(runtime: NearSighted) -> None:
    near = SeenSize((500, 500), (3000, 2000))
    both = FakeBank(runtime, red=near, blue=SeenSize((40, 40)))
    picture = scene(3000, 2000, ("red", (100, 100, 700, 700)), ("blue", (1500, 900, 1591, 991)))
    found = look(runtime, both, picture)
    assert sorted(found.names) == ["blue", "red"]
    assert len(runtime.sizes) > 4


def test_every_group_of_classes_is_looked_for_again() -> None:
    """With many classes each group has views of its own; another group's view at that size is not theirs."""
    seen = [[SeenSize((side, side), (1000, 750))] for side in (200, 100) for _ in range(20)]
    plan = plan_views((1000, 750), seen)
    assert [max(view.size) for view in plan] == [480, 960]
    looks = Looks((1000, 750), plan, list(plan), [Detections.empty(())] * 2)
    assert [(view.labels, max(view.size)) for view in looks.again(-np.log(2))] == [
        (tuple(range(20)), 960),
        (tuple(range(20, 40)), 1920),
    ]


def test_things_that_are_seen_well_are_not_made_larger(runtime: NearSighted) -> None:
    """A crop of 500 px was shown; things of 150 px are large enough."""
    crop = FakeBank(runtime, red=SeenSize((500, 500)))
    assert len(look(runtime, crop, spots(640, 480, 150, 3))) == 3
    assert len(runtime.sizes) == 1
    assert seen_well((640, 480), crop.seen("red")) == pytest.approx((192, 500))
    low, high = seen_well((1920, 1440), [SeenSize((20, 20), (1920, 1440))])
    assert (low, high) == pytest.approx((20, 192))


def test_many_pictures_are_each_as_alone(runtime: NearSighted, bank: FakeBank) -> None:
    pictures = [spots(1920, 1440, 128), spots(640, 480, 128), scene(64, 48), spots(960, 720, 60)]
    alone = [look(runtime, bank, picture) for picture in pictures]
    for batch in (1, 3, 8):
        together = Tenet(runtime).detect(pictures, bank, batch=batch)
        for one, other in zip(together, alone, strict=True):
            same(one, other)


@pytest.mark.parametrize("zoom", [0.1, 0.4, 0.75, 1.0, 2.5])
def test_the_shift_is_that_of_most_things(zoom: float) -> None:
    """Classes of different sizes, one camera; a few boxes are far off."""
    generator = np.random.default_rng(0)
    expected = np.repeat([40.0, 100.0], 20)
    sides = expected * zoom * np.exp(generator.normal(0, 0.15, 40))
    sides[:4] *= 5
    boxes = np.stack([np.zeros(40), np.zeros(40), sides, sides], 1).astype(np.float32)
    scores = generator.uniform(0.3, 0.9, 40).astype(np.float32)
    assert found_shift(boxes, scores, expected, expected) == pytest.approx(np.log(zoom), abs=0.2)
    assert found_shift(boxes, scores, 0.5 * zoom * expected, 2 * zoom * expected) == pytest.approx(0)


@pytest.mark.parametrize("picture", [(640, 480), (40, 30), (4000, 3000), (3000, 20), (100, 1)])
@pytest.mark.parametrize("shift", [-3.0, -1.0, -0.35, 0.35, 1.0, 3.0])
def test_sizes_stay_within_limits(picture: tuple[int, int], shift: float) -> None:
    [first] = plan_views(picture, [[SHOT]])
    looks = Looks(picture, [first], [first], [Detections.empty(())])
    views = looks.again(shift)
    room = max(picture) > 320 if shift < 0 else True
    assert len(views) == room
    for again in views:
        longer = max(again.size)
        most = max(max(first.size), min(MOST_LONGER, MOST_ENLARGED * max(picture)))
        assert min(LEAST_LONGER, max(first.size)) - 1 <= longer <= most + 1
        assert (longer > max(first.size)) == (shift < 0)
        assert min(again.size) >= LEAST_SIDE
        assert again.part == first.part


def test_looks_come_to_an_end() -> None:
    [first] = plan_views((4000, 3000), [[SHOT]])
    looks = Looks((4000, 3000), [first], [first], [Detections.empty(())])
    assert looks.again(0.9 * np.log(FACTOR)) == []
    shifts = [-0.5, -0.45, -1.0, -2.0, 1.0]
    assert sum(bool(looks.again(shift)) for shift in shifts) == MOST_LOOKS - 1
