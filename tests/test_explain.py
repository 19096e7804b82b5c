"""Why a thing was found: the right boxes reach the network, the right positions are joined."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.bank import ClassBank
from tenet.drawing.explain import Explained, best_pairs, cut, explain, explanations, things
from tenet.errors import InputError, TenetError
from tenet.looks.sizes import SeenSize, working_size
from tenet.predictor import Tenet
from tenet.structures import Detections, Explanation

RED, BLUE = (220, 30, 30), (30, 30, 220)


def scene(width: int = 300, height: int = 200) -> np.ndarray:
    """A red and a blue rectangle on grey."""
    picture = np.full((height, width, 3), 128, np.uint8)
    picture[20:80, 30:90] = RED
    picture[100:180, 150:250] = BLUE
    return picture


@pytest.fixture
def bank(tmp_path: Path) -> ClassBank:
    path = tmp_path / "scene.png"
    Image.fromarray(scene()).save(path)
    bank = ClassBank(Tenet(FakeRuntime()))
    bank.register("red", [(path, (30, 20, 90, 80)), (path, (35, 25, 85, 75))])
    bank.register("blue", [(path, (150, 100, 250, 180))])
    return bank


def maps(side: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(side)
    return {name: rng.random((side, side)).astype(np.float32) for name in ("fo", "ho", "fo_ho", "spatial")}


def explained(shots: int = 2, side: int = 3, **changes: object) -> Explained:
    """One red thing with made-up maps."""
    found = Detections(
        np.array([[30, 20, 90, 80]], np.float32),
        np.array([0.9], np.float32),
        np.array([0]),
        np.array([0]),
        ("red",),
    )
    reason = Explanation(
        maps(side),
        tuple(maps(side) for _ in range(shots)),
        np.linspace(0.9, -0.2, shots).astype(np.float32),
        np.eye(side * side, dtype=np.float32)[None].repeat(shots, 0),
    )
    crops = tuple(np.full((20 + i, 30, 3), (220, 5 * i, 30), np.uint8) for i in range(shots))
    return replace(Explained(scene(), found, (reason,), {"red": crops}, 0.5), **changes)


def test_positions_that_are_the_same_are_joined() -> None:
    order = np.random.default_rng(0).permutation(9)
    pairs = best_pairs(np.eye(9)[order])
    assert all(pair.mutual for pair in pairs)
    assert {(pair.region, pair.shot) for pair in pairs} == set(enumerate(order.tolist()))


def test_mutual_pairs_come_first_and_the_most_alike_of_them() -> None:
    cosines = np.random.default_rng(0).random((49, 49))
    pairs = best_pairs(cosines, 49)
    assert [pair.mutual for pair in pairs] == sorted((pair.mutual for pair in pairs), reverse=True)
    for kind in (True, False):
        values = [pair.cosine for pair in pairs if pair.mutual is kind]
        assert values
        assert values == sorted(values, reverse=True)
    for pair in pairs:
        row, column = cosines[pair.region], cosines[:, pair.shot]
        assert pair.cosine == row.max() == cosines[pair.region, pair.shot]
        assert pair.mutual == (column.argmax() == pair.region)
    assert len({pair.region for pair in pairs}) == len(pairs)
    assert best_pairs(cosines) == pairs[:12]


@pytest.mark.parametrize("shape", [(0, 0), (3,), (2, 3, 3)])
def test_what_are_no_pairs_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"\(N, N\)"):
        best_pairs(np.zeros(shape))


class Listening(FakeRuntime):
    """Remembers what it is asked to explain, and answers with the boxes' left sides as cosines."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[tuple[int, int], np.ndarray]] = []

    def explain(self, image: np.ndarray, features: object, boxes: np.ndarray) -> list[Explanation]:
        self.asked.append(((image.shape[1], image.shape[0]), boxes))
        return [replace(one, cosines=box[:1]) for one, box in zip(
            super().explain(image, features, boxes), boxes, strict=True)]  # type: ignore[arg-type]  # fmt: skip


def test_boxes_are_scaled_with_the_picture_and_keep_their_order(bank: ClassBank) -> None:
    boxes = np.array([[30, 20, 90, 80], [150, 100, 250, 180], [60, 40, 120, 100], [0, 0, 10, 10]], np.float32)
    labels = np.array([0, 1, 0, 1])
    found = Detections(boxes, np.array([0.9, 0.8, 0.7, 0.6], np.float32), labels, labels * 0, ("red", "blue"))
    runtime = Listening()
    reasons = explanations(runtime, bank, scene(), found)
    assert runtime.encoded_images == 2  # once for each class
    assert len(reasons) == 4
    for name, (size, own) in zip(("red", "blue"), runtime.asked, strict=True):
        sides = [box[2:] - box[:2] for box in boxes[labels == ("red", "blue").index(name)]]
        assert size == working_size((300, 200), [SeenSize((w, h), (300, 200)) for w, h in sides])
        scale = np.array([size[0] / 300, size[1] / 200] * 2)
        assert own == pytest.approx(boxes[labels == ("red", "blue").index(name)] * scale, rel=1e-5)
    scales = [runtime.asked[label][0][0] / 300 for label in labels]
    assert [float(reason.cosines[0]) for reason in reasons] == pytest.approx(boxes[:, 0] * scales)


def test_shots_are_shown_without_their_surroundings(bank: ClassBank) -> None:
    for name, colour in (("red", RED), ("blue", BLUE)):
        for thing in things(bank, name):
            assert np.abs(thing.mean((0, 1)) - colour).max() < 25


def test_the_best_are_explained(bank: ClassBank) -> None:
    both = explain(Tenet(FakeRuntime()), scene(), bank, threshold=0.5)
    assert set(both.detections.names) == {"red", "blue"}
    assert not both.below
    assert both.note == "The best 2 detections, explained."
    one = explain(Tenet(FakeRuntime()), scene(), bank, top=1, classes=["blue"])
    assert one.detections.names.tolist() == ["blue"]
    assert list(one.shots) == ["blue"]


def test_nothing_above_the_threshold_is_said_plainly(bank: ClassBank) -> None:
    below = explain(Tenet(FakeRuntime()), scene(), bank, threshold=0.95)
    assert below.below
    assert len(below.detections) == 1
    assert "Nothing reaches the threshold 0.95" in below.note
    assert "0.90" in below.note


def test_nothing_at_all(bank: ClassBank) -> None:
    nothing = explain(Tenet(FakeRuntime()), np.full((50, 60, 3), 250, np.uint8), bank)
    assert len(nothing.detections) == 0
    assert "nothing to show" in nothing.note
    assert nothing.figure("empty.png").shape[2] == 3


@pytest.mark.parametrize(("top", "threshold"), [(0, 0.5), (-1, 0.5), (3, -0.1), (3, 1.5), (3, float("nan"))])
def test_bad_settings_are_refused(bank: ClassBank, top: int, threshold: float) -> None:
    with pytest.raises(InputError, match="expected"):
        explain(Tenet(FakeRuntime()), scene(), bank, top, threshold)


def test_a_picture_that_is_none_is_refused(bank: ClassBank) -> None:
    with pytest.raises(TenetError):
        explain(Tenet(FakeRuntime()), b"not a picture", bank)


def test_a_row_for_each_detection() -> None:
    one = explained()
    reason, found = one.explanations[0], one.detections
    twice = replace(one, detections=found.select(np.array([0, 0])), explanations=(reason, reason))
    small, large = one.figure("a"), twice.figure("a")
    assert small.shape[1] == large.shape[1]
    row = large.shape[0] - small.shape[0]
    assert row > 300
    top = small.shape[0] - row
    assert (large[top:][: row - 40] == large[top + row :][: row - 40]).mean() > 0.95  # the same row again
    assert (one.figure("a") == small).all()


def test_the_figure_shows_the_maps() -> None:
    one = explained()
    changed = {**one.explanations[0].region, "ho": 1 - one.explanations[0].region["ho"]}
    other = replace(one, explanations=(replace(one.explanations[0], region=changed),))
    differs = np.argwhere((one.figure() != other.figure()).any(2))
    assert len(differs)
    assert np.ptp(differs, axis=0).max() < 160  # that one map, and nothing else


@pytest.mark.parametrize("shots", [1, 2, 6, 7, 40])
@pytest.mark.parametrize("side", [1, 3, 7])
def test_any_number_of_shots_and_positions(shots: int, side: int) -> None:
    one = explained(shots, side)
    last = replace(one.detections, shots=np.array([shots - 1]))
    assert replace(one, detections=last).figure("x" * 500).shape == one.figure("猫").shape


@pytest.mark.parametrize(
    "box", [[0, 0, 300, 200], [5, 5, 5.2, 190], [299, 199, 300, 200], [-10, -10, 400, 1]]
)
def test_any_region(box: list[float]) -> None:
    one = explained()
    moved = replace(one.detections, boxes=np.array([box], np.float32))
    assert replace(one, detections=moved).figure().ndim == 3


def test_a_network_without_some_map() -> None:
    one = explained()
    few = {"fo_ho": one.explanations[0].region["fo_ho"]}
    reason = replace(one.explanations[0], region=few, shots=(few, few))
    assert replace(one, explanations=(reason,)).figure().ndim == 3


def test_what_does_not_belong_together_is_refused() -> None:
    one = explained()
    with pytest.raises(InputError, match="one for each detection"):
        replace(one, explanations=())
    with pytest.raises(InputError, match="every shot"):
        replace(one, shots={"red": one.shots["red"][:1]}).figure()
    with pytest.raises(InputError, match="every shot"):
        replace(one, detections=replace(one.detections, shots=np.array([9]))).figure()


def test_cutting_out() -> None:
    picture = scene()
    assert (cut(picture, np.array([30, 20, 90, 80], np.float32)) == RED).all()
    assert cut(picture, np.array([-5, -5, 900, 900], np.float32)).shape == picture.shape
    assert cut(picture, np.array([500, 500, 600, 600], np.float32)).shape == (1, 1, 3)
