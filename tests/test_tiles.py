"""Tiles: they cover the picture, and a thing anywhere lies whole in one of them."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenet.errors import InputError
from tenet.looks.sizes import LARGEST, SMALLEST, SeenSize, working_size
from tenet.looks.tiles import MOST_TILES, OVERLAP, TOO_SMALL, cut, needs_tiles, plan_tiles
from tenet.looks.views import LEAST_SIDE, MOST_RIVALS, MOST_SIZE, View, combine, plan_views
from tenet.structures import Detections

lengths = st.integers(1, 9000)


@given(lengths, lengths, st.integers(40, 800), st.floats(0.01, 0.5))
def test_tiles_cover_and_share_their_overlap(width: int, height: int, tile: int, share: float) -> None:
    overlap = max(1, int(tile * share))
    tiles = cut((width, height), tile, overlap)
    for axis, length in ((0, width), (1, height)):
        spans = sorted({(one[axis], one[axis + 2]) for one in tiles})
        assert spans[0][0] == 0
        assert spans[-1][1] == length
        assert all(end - start <= tile for start, end in spans)
        for (_, end), (start, _) in pairwise(spans):
            assert end - start >= overlap
    assert len(set(tiles)) == len(tiles)


@given(st.integers(1000, 8000), st.integers(1000, 8000), st.floats(4, 60), st.floats(0.5, 2), st.data())
def test_a_thing_anywhere_lies_whole_in_a_tile(
    width: int, height: int, side: float, aspect: float, data: st.DataObject
) -> None:
    thing = (side * aspect**0.5, side / aspect**0.5)
    tiles, overlap = plan_tiles((width, height), [SeenSize(thing)])
    assert overlap >= OVERLAP * side
    x = data.draw(st.floats(0, width - thing[0]))
    y = data.draw(st.floats(0, height - thing[1]))
    assert any(x1 <= x and y1 <= y and x + thing[0] <= x2 and y + thing[1] <= y2 for x1, y1, x2, y2 in tiles)


@given(st.integers(500, 30000), st.integers(500, 30000), st.floats(1, 50))
def test_tiles_are_bounded(width: int, height: int, side: float) -> None:
    tiles, _ = plan_tiles((width, height), [SeenSize((side, side))])
    assert 1 <= len(tiles) <= MOST_TILES


def test_only_what_would_be_too_small_is_cut() -> None:
    just = 4000 * TOO_SMALL / LARGEST
    assert not needs_tiles((4000, 3000), [SeenSize((just + 1, just + 1))])
    assert needs_tiles((4000, 3000), [SeenSize((just - 1, just - 1))])
    # A shot in its own picture tells shares, not pixels.
    assert needs_tiles((400, 300), [SeenSize((20, 20), (4000, 3000))])
    assert not needs_tiles((4000, 3000), [SeenSize((40, 40), (400, 300))])


def test_an_outlier_does_not_make_tiles_mostly_overlap() -> None:
    seen = [SeenSize((20, 20))] * 9 + [SeenSize((2000, 2000))]
    tiles, overlap = plan_tiles((4000, 3000), seen)
    assert overlap <= (tiles[0][2] - tiles[0][0]) / 2 + 1


def test_one_class_is_looked_at_at_its_working_size() -> None:
    for thing in (10, 60, 150, 290):
        seen = [SeenSize((thing, thing), (640, 480))]
        [view] = plan_views((1280, 960), [seen], tiles=False)
        assert view.size == working_size((1280, 960), seen)
        assert view.part == (0, 0, 1280, 960)


def test_classes_of_different_sizes_are_grouped() -> None:
    small, middle, large = ([SeenSize((side, side), (640, 480))] for side in (30, 66, 300))
    views = plan_views((640, 480), [large, small, middle, small])
    assert {view.labels for view in views} == {(0, 1, 2, 3)}
    assert sorted(max(view.size) for view in views) == [SMALLEST, pytest.approx(LARGEST, abs=15)]
    assert len(plan_views((640, 480), [middle, small])) == 1


@given(st.lists(st.floats(1, 600), min_size=1, max_size=12), st.integers(300, 5000), st.integers(300, 5000))
def test_every_class_is_looked_for_in_the_whole_picture(sides: list[float], width: int, height: int) -> None:
    views = plan_views((width, height), [[SeenSize((side, side))] for side in sides])
    by_labels: dict[tuple[int, ...], int] = {}
    for view in views:
        by_labels[view.labels] = by_labels.get(view.labels, 0) + 1
        x1, y1, x2, y2 = view.part
        assert 0 <= x1 < x2 <= width
        assert 0 <= y1 < y2 <= height
        assert max(view.size) <= LARGEST
    assert sorted(label for labels in by_labels for label in labels) == list(range(len(sides)))
    assert len(by_labels) <= 4
    assert all(any(v.part == (0, 0, width, height) for v in views if v.labels == k) for k in by_labels)


def test_size_as_asked() -> None:
    seen = [[SeenSize((5, 5))], [SeenSize((500, 500))]]
    [view] = plan_views((4000, 2000), seen, 640)
    assert (view.size, view.labels) == ((640, 320), (0, 1))
    assert plan_views((700, 300), seen, "original")[0].size == (700, 300)
    assert max(plan_views((9000, 300), seen, "original")[0].size) == MOST_SIZE
    assert min(plan_views((9000, 10), seen, 480)[0].size) == LEAST_SIDE


def test_a_view_in_a_mirror_gives_boxes_of_the_picture() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (90, 160, 3), dtype=np.uint8)
    view = View((0,), (20, 10, 140, 80), (240, 140), mirrored=True)
    plain = replace(view, mirrored=False)
    assert np.array_equal(view.pixels(picture), plain.pixels(picture)[:, ::-1])
    boxes = np.array([[0, 0, 60, 140], [200, 20, 240, 50]], np.float32)
    rows = np.zeros(2, np.int64)
    found = Detections(boxes, np.ones(2, np.float32), rows, rows)
    turned = replace(found, boxes=np.array([[180, 0, 240, 140], [0, 20, 40, 50]], np.float32))
    assert np.array_equal(view.in_picture(turned)[0].boxes, plain.in_picture(found)[0].boxes)
    assert view.in_picture(found.select(np.zeros(2, np.bool_)))[0].boxes.shape == (0, 4)


@pytest.mark.parametrize("size", ["large", 0, -3, 10**6, 3.5, True, None])
def test_a_size_that_is_none_is_refused(size: object) -> None:
    with pytest.raises(
        InputError, match="size: expected 'auto', 'thorough', 'once', 'original' or a longer side"
    ):
        plan_views((100, 100), [[SeenSize((5, 5))]], size)  # type: ignore[arg-type]


def test_one_tile_is_untiled() -> None:
    seen = [[SeenSize((4, 4))]]
    assert needs_tiles((300, 200), seen[0])
    assert plan_views((300, 200), seen) == plan_views((300, 200), seen, tiles=False)


def test_a_view_gives_boxes_of_the_picture() -> None:
    views = plan_views((4000, 3000), [[SeenSize((40, 40))]])
    for view in views[1:]:
        x1, y1, x2, y2 = view.part
        corners = np.array([[0, 0, *view.size]], np.float32)
        whole = Detections(corners, np.ones(1, np.float32), np.zeros(1, np.int64), np.zeros(1, np.int64))
        placed, was_cut = view.in_picture(whole)
        np.testing.assert_allclose(placed.boxes, [[x1, y1, x2, y2]], atol=0.01)
        assert was_cut.tolist() == [any(view.inner)]


def test_no_more_than_the_limit_and_none_below_the_threshold() -> None:
    [view] = plan_views((640, 480), [[SeenSize((50, 50))]])
    boxes = np.array([[60 * i, 5, 60 * i + 50, 40] for i in range(8)], np.float32)
    scores = np.linspace(0.9, 0.2, 8).astype(np.float32)
    one = Detections(boxes, scores, np.zeros(8, np.int64), np.arange(8))
    assert len(combine([view], [one], ["a"], 0.0, 300)) == 8
    np.testing.assert_array_equal(combine([view], [one], ["a"], 0.5, 300).scores, scores[scores >= 0.5])
    np.testing.assert_array_equal(combine([view], [one], ["a"], 0.0, 3).shots, [0, 1, 2])


def test_every_view_looks_for_all_and_doubles_are_reported_once() -> None:
    """Few classes: each group's view looks for all. Many: each for its own alone. Tiles: for theirs."""
    large, small = [SeenSize((400, 400), (640, 480))], [SeenSize((50, 50), (640, 480))]
    views = plan_views((640, 480), [large, small, large])
    assert [view.size for view in views] == [(480, 360), (960, 720)]
    assert all(view.labels == view.matched == (0, 1, 2) for view in views)
    twice = []
    for view in views:
        boxes = np.array([[64, 48, 320, 240]], np.float32) * view.size[0] / 640
        scores = np.array([0.9 if view.size[0] == 960 else 0.8], np.float32)
        twice.append(Detections(boxes, scores, np.ones(1, np.int64), np.zeros(1, np.int64)))
    found = combine(views, twice, ["a", "b", "c"], 0.1, 300)
    np.testing.assert_allclose(found.scores, [0.9])
    np.testing.assert_allclose(found.boxes, [[64, 48, 320, 240]], atol=0.01)
    tiny = [SeenSize((30, 30), (6400, 4800))]
    mixed = plan_views((6400, 4800), [[SeenSize((4000, 4000), (6400, 4800))], tiny])
    assert {view.labels for view in mixed} == {(0,), (1,)}
    assert all(view.matched == (0, 1) for view in mixed)
    many = plan_views((640, 480), [large, small] * (MOST_RIVALS // 2 + 1))
    assert all(view.matched == view.labels for view in many)
