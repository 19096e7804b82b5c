"""Pictures and boxes change together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenet.data.transforms import flip, query_size, recolour, resize, stretched_size, support_crop, turn
from tenet.errors import InputError


def marked(width: int, height: int, box: tuple[int, int, int, int]) -> np.ndarray:
    """A grey picture with a white box (xyxy, pixels)."""
    picture = np.full((height, width, 3), 60, np.uint8)
    picture[box[1] : box[3], box[0] : box[2]] = 255
    return picture


def extent(picture: np.ndarray, threshold: int = 158) -> list[int]:
    mask = picture[..., 0] > threshold
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    return [int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1]


@settings(max_examples=40, deadline=None)
@given(st.integers(20, 90), st.integers(20, 90), st.integers(30, 150), st.integers(30, 150), st.booleans())
def test_resized_boxes_lie_on_what_they_marked(w: int, h: int, new_w: int, new_h: int, mirror: bool) -> None:
    box = (w // 4, h // 5, w // 4 + w // 2, h // 5 + h // 2)
    picture, boxes = resize(marked(w, h, box), np.array([box], np.float32), new_w, new_h)
    if mirror:
        picture, boxes = flip(picture, boxes)
    assert picture.shape == (new_h, new_w, 3)
    step = max(new_w / w, new_h / h, 1)
    assert np.abs(boxes[0] - extent(picture)).max() <= 1 + step / 2


def test_flipping_twice_changes_nothing_and_arguments_stay() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (5, 9, 3), dtype=np.uint8)
    boxes = np.array([[1, 2, 4, 5]], np.float32)
    before = boxes.copy()
    once = flip(picture, boxes)
    assert once[1].tolist() == [[5, 2, 8, 5]]
    twice = flip(*once)
    assert np.array_equal(twice[0], picture)
    assert np.array_equal(twice[1], before)
    assert np.array_equal(boxes, before)


@pytest.mark.parametrize("quarters", [0, 1, 2, 3, 5])
def test_a_turned_box_is_around_the_same_pixels(quarters: int) -> None:
    picture = np.zeros((6, 10, 3), np.uint8)
    picture[1:4, 2:8] = 200
    boxes = np.array([[2, 1, 8, 4]], np.float32)
    turned, [box] = turn(picture, boxes, quarters)
    x1, y1, x2, y2 = box.astype(int)
    assert turned.shape[:2] == ((6, 10) if quarters % 2 == 0 else (10, 6))
    assert (turned[y1:y2, x1:x2] == 200).all()
    assert turned.sum() == picture.sum()
    assert boxes.tolist() == [[2, 1, 8, 4]]


def test_four_quarters_change_nothing_and_no_box_is_no_problem() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (5, 9, 3), dtype=np.uint8)
    once, none = turn(picture, np.zeros((0, 4), np.float32), 1)
    assert none.shape == (0, 4)
    assert np.array_equal(turn(once, none, 3)[0], picture)


def test_recoloured_pictures_are_the_same_scene() -> None:
    """Every kind turns up; what was even stays even, what differed differs, and the picture given stays."""
    picture = np.zeros((4, 6, 3), np.uint8)
    picture[:, 3:] = (250, 40, 90)
    before, grey, coloured, negative = picture.copy(), 0, 0, 0
    for seed in range(60):
        seen = recolour(picture, np.random.default_rng(seed)).astype(int)
        assert seen.shape == picture.shape
        assert (seen[:, :3] == seen[0, 0]).all()
        assert (seen[:, 3:] == seen[0, 5]).all()
        assert (seen[0, 0] != seen[0, 5]).any()
        plain = len(set(seen[0, 5].tolist())) == 1
        grey, coloured = grey + plain, coloured + (not plain)
        negative += bool((seen[0, 0] > seen[0, 5]).all())
    assert np.array_equal(picture, before)
    assert grey > 15
    assert coloured > 15
    assert 5 < negative < grey


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_query_sizes_obey_both_sides(width: int, height: int) -> None:
    w, h = query_size(width, height, 600, 1000)
    assert max(w, h) <= 1000
    assert min(w, h) <= 600
    assert min(w, h) == 600 or max(w, h) == 1000


def test_query_size_refuses_nonsense() -> None:
    with pytest.raises(InputError, match="shorter <= longer"):
        query_size(10, 10, 700, 600)
    with pytest.raises(InputError, match="at least 1"):
        resize(np.zeros((2, 2, 3), np.uint8), np.zeros((0, 4), np.float32), 0, 4)
    with pytest.raises(InputError, match="aspect"):
        stretched_size(4, 4, 0)


def test_stretching_keeps_the_area() -> None:
    width, height = stretched_size(256, 256, 4 / 3)
    assert width / height == pytest.approx(4 / 3)
    assert width * height == pytest.approx(256 * 256)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 60), st.integers(0, 40), st.integers(6, 40), st.integers(6, 40), st.integers(0, 30))
def test_support_crops_show_the_object_where_they_say(x: int, y: int, w: int, h: int, context: int) -> None:
    box = (x, y, x + w, y + h)
    crop, inner = support_crop(marked(100, 80, box), np.array(box, np.float32), 96, context)
    assert crop.shape == (96, 96, 3)
    scale = 96 / max(
        min(100, x + w + context) - max(0, x - context), min(80, y + h + context) - max(0, y - context)
    )
    assert np.abs(inner - extent(crop)).max() <= 1.01 + max(scale, 1) / 2
    # The longer side fills the crop; what is left over is black on both sides.
    filled = np.flatnonzero(crop.max(axis=(1, 2))), np.flatnonzero(crop.max(axis=(0, 2)))
    assert max(len(side) for side in filled) == 96
    for side in filled:
        assert abs(side[0] - (95 - side[-1])) <= 1


def test_support_crop_of_the_ancestor() -> None:
    crop, inner = support_crop(
        marked(500, 400, (100, 100, 228, 164)), np.array([100, 100, 228, 164], np.float32), 320
    )
    assert inner.tolist() == [32, 96, 288, 224]
    assert crop[64:256].min() > 0
    assert crop[:64].max() == crop[256:].max() == 0


def test_support_crop_refuses_what_is_no_box() -> None:
    picture = np.zeros((10, 10, 3), np.uint8)
    for box in ([5, 5, 5, 8], [0, 0, float("nan"), 4], [40, 40, 60, 60]):
        with pytest.raises(InputError, match="support crop"):
            support_crop(picture, np.array(box, np.float32), 32, 4)


def test_support_crop_at_the_border_begins_with_the_object() -> None:
    picture = np.zeros((40, 40, 3), np.uint8)
    picture[:, 0] = 255
    crop, inner = support_crop(picture, np.array([0, 0, 8, 16], np.float32), 32, 0)
    assert inner.tolist() == [8, 0, 24, 32]
    assert crop[:, 8].min() > 200
