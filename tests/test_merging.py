"""Looks at one picture put together: no doubles, nothing lost, the order of scores."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tenet.looks.merging import SAME, iou, join, merge, nms, without_pieces
from tenet.structures import Detections


def found(boxes: list[tuple[float, ...]], scores: list[float], labels: list[int] | None = None) -> Detections:
    n = len(boxes)
    return Detections(
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(scores, np.float32),
        np.array(labels if labels is not None else [0] * n, np.int64),
        np.arange(n),
    )


def uncut(one: Detections) -> NDArray[np.bool_]:
    return np.zeros(len(one), np.bool_)


corner = st.integers(0, 40)
one_box = st.tuples(
    corner, corner, st.integers(1, 30), st.integers(1, 30), st.integers(1, 99), st.integers(0, 2)
)


@given(st.lists(one_box, max_size=25))
def test_nms_keeps_the_best_and_no_doubles(rows: list[tuple[int, ...]]) -> None:
    boxes = [(x, y, x + w, y + h) for x, y, w, h, _, _ in rows]
    one = found(boxes, [row[4] / 100 for row in rows], [row[5] for row in rows])
    kept = nms(one.boxes, one.scores, one.labels)
    assert (np.diff(one.scores[kept]) <= 0).all()
    overlaps = iou(one.boxes, one.boxes)
    for place, row in enumerate(kept):
        others = np.delete(kept, place)
        assert not ((overlaps[row, others] > SAME) & (one.labels[others] == one.labels[row])).any()
    for row in set(range(len(rows))) - set(kept.tolist()):  # whatever went, went for a better one
        better = (one.scores[kept] >= one.scores[row]) & (one.labels[kept] == one.labels[row])
        assert (overlaps[row, kept] > SAME)[better].any()


def test_iou_by_hand() -> None:
    one = found([(0, 0, 10, 10)], [1]).boxes
    two = found([(0, 0, 10, 10), (5, 0, 15, 10), (20, 20, 30, 30), (3, 3, 3, 3)], [1] * 4).boxes
    np.testing.assert_allclose(iou(one, two), [[1, 1 / 3, 0, 0]])


def test_nms_stops_at_the_most_that_is_asked_for() -> None:
    boxes: list[tuple[float, ...]] = [(20 * row, 0, 20 * row + 10, 10) for row in range(9)]
    one = found(boxes, [row / 10 for row in range(9)])
    all_of_them = nms(one.boxes, one.scores, one.labels)
    assert nms(one.boxes, one.scores, one.labels, most=4).tolist() == all_of_them[:4].tolist() == [8, 7, 6, 5]


def test_nms_leaves_other_classes_alone() -> None:
    one = found([(0, 0, 10, 10), (0, 0, 10, 10)], [0.9, 0.8], [0, 1])
    assert nms(one.boxes, one.scores, one.labels).tolist() == [0, 1]


def test_merging_with_itself_changes_nothing() -> None:
    one = found([(0, 0, 10, 10), (30, 0, 40, 10), (0, 0, 10, 10)], [0.9, 0.8, 0.7], [0, 0, 1])
    both = merge([(one, uncut(one))] * 2)
    np.testing.assert_array_equal(both.boxes, one.boxes)
    np.testing.assert_array_equal(both.labels, one.labels)
    np.testing.assert_array_equal(both.shots, one.shots)


def test_one_part_is_itself_even_with_overlaps() -> None:
    one = found([(0, 0, 10, 10), (0, 0, 10, 9)], [0.9, 0.8])
    assert len(merge([(one, uncut(one))])) == 2
    assert len(merge([(one, uncut(one)), (found([], []), np.zeros(0, np.bool_))])) == 1


def test_a_piece_goes_where_the_whole_is_there() -> None:
    # The left half of the thing scores higher than the whole thing that the neighbour has.
    left, right = found([(90, 0, 100, 20)], [0.95]), found([(90, 0, 112, 20)], [0.7])
    both = merge([(left, np.array([True])), (right, np.array([False]))])
    np.testing.assert_array_equal(both.boxes, right.boxes)


def test_a_piece_stays_where_nothing_explains_it() -> None:
    piece, elsewhere = found([(90, 0, 100, 20)], [0.9]), found([(300, 0, 320, 20)], [0.8])
    assert len(merge([(piece, np.array([True])), (elsewhere, np.array([False]))])) == 2
    other_class = found([(90, 0, 112, 20)], [0.8], [1])
    assert len(merge([(piece, np.array([True])), (other_class, np.array([False]))])) == 2


def test_inputs_are_not_changed() -> None:
    one = found([(0, 0, 10, 10), (0, 0, 10, 9)], [0.8, 0.9])
    before = one.boxes.copy(), one.scores.copy()
    merge([(one, uncut(one))] * 2)
    without_pieces(one, np.array([True, False]))
    np.testing.assert_array_equal(one.boxes, before[0])
    np.testing.assert_array_equal(one.scores, before[1])


def test_joining_nothing() -> None:
    assert len(join([], ["a"])) == 0
    assert join([], ["a"]).classes == ("a",)


def test_noise_explains_no_piece_away() -> None:
    """A sure thing in two pieces stays beside an unsure box around both, and goes for one about as sure."""
    pieces = [(0, 0, 50, 40), (50, 0, 100, 40)]
    cut = np.array([True, True, False])
    for score, stays in ((0.005, 3), (0.39, 3), (0.41, 1), (0.9, 1)):
        everything = found([*pieces, (0, 0, 100, 40)], [0.8, 0.8, score])
        assert len(without_pieces(everything, cut)[0]) == stays
