"""Cut-outs and mosaics: boxes stay on what they were around."""

import numpy as np
import pytest

from tenet.data.queries import Query, cut_out, mosaic, ways_of


def make_query(height: int = 60, width: int = 90, seed: int = 0) -> Query:
    """Three rectangles of their own colours on black, with their boxes."""
    picture = np.zeros((height, width, 3), np.uint8)
    boxes = np.array([[5, 5, 25, 20], [40, 10, 60, 50], [70, 30, 88, 58]], np.float32)
    for value, (x1, y1, x2, y2) in zip((50, 100, 150), boxes.astype(int), strict=True):
        picture[y1:y2, x1:x2] = value + seed
    return Query(picture, boxes, np.array([0, 1, 2]), np.array([False, False, True]))


def colours(query: Query) -> list[set[int]]:
    """The colours inside each box."""
    return [
        set(query.picture[round(y1) : round(y2), round(x1) : round(x2)].ravel().tolist())
        for x1, y1, x2, y2 in query.boxes.tolist()
    ]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_a_cut_out_keeps_boxes_on_their_objects(seed: int, share: float) -> None:
    query = make_query()
    cut = cut_out(query, np.random.default_rng(seed), share)
    assert cut.picture.shape[:2] == (round(60 * share), round(90 * share))
    assert len(cut.boxes), "the window holds the centre of an object"
    for inside, label in zip(colours(cut), cut.labels.tolist(), strict=True):
        assert inside == {50 * (label + 1)}
    assert cut.boxes.min() >= 0
    assert (cut.boxes[:, 2:] <= np.array(cut.picture.shape[1::-1])).all()


def test_a_cut_out_of_everything_is_the_query() -> None:
    query = make_query()
    cut = cut_out(query, np.random.default_rng(0), 1.0)
    for one, other in zip(cut, query, strict=True):
        assert np.array_equal(one, other)


def test_an_object_of_which_little_is_left_is_ignored() -> None:
    picture = np.zeros((100, 100, 3), np.uint8)
    query = Query(picture, np.array([[0, 0, 100, 100]], np.float32), np.array([0]), np.array([False]))
    assert cut_out(query, np.random.default_rng(0), 0.3).ignore.tolist() == [True]
    assert cut_out(query, np.random.default_rng(0), 0.9).ignore.tolist() == [False]


def test_a_picture_without_objects_can_be_cut() -> None:
    empty = Query(
        np.zeros((50, 50, 3), np.uint8), np.zeros((0, 4), np.float32), np.zeros(0, int), np.zeros(0, bool)
    )
    assert cut_out(empty, np.random.default_rng(0), 0.5).picture.shape == (25, 25, 3)


def test_a_mosaic_keeps_boxes_on_their_objects() -> None:
    parts = [make_query(60 + 7 * i, 90 + 11 * i, seed=i) for i in range(4)]
    whole = mosaic(parts)
    assert whole.labels.tolist() == [0, 1, 2] * 4
    assert whole.ignore.tolist() == [False, False, True] * 4
    wanted = [{50 * (label + 1) + i} for i in range(4) for label in range(3)]
    assert colours(whole) == wanted


def test_ways_are_places_in_the_list() -> None:
    assert ways_of(np.array([7, 3, 9, 7]), [3, 7]).tolist() == [1, 0, -1, 1]
