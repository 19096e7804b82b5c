"""Packed detections: what comes out is what went in, to 1/64 px; damage is found."""

import zlib

import numpy as np
import pytest

from tenet.engine.packed_detections import GRID, pack, unpack
from tenet.structures import Detections


def found(count: int, seed: int) -> Detections:
    rng = np.random.default_rng(seed)
    corner, side = rng.uniform(0, 3000, (count, 2)), rng.uniform(1, 900, (count, 2))
    return Detections(
        np.concatenate([corner, corner + side], 1).astype(np.float32),
        rng.random(count).astype(np.float32),
        rng.integers(0, 1200, count),
        np.zeros(count, np.int64),
    )


@pytest.mark.parametrize("counts", [[], [0], [3], [0, 5, 0, 100], [1] * 40])
def test_what_comes_out_is_what_went_in(counts: list[int]) -> None:
    pictures = [(7 * place, found(count, place)) for place, count in enumerate(counts)]
    packed = pack(pictures)
    out = unpack(packed)
    assert out.rows.tolist() == [row for row, own in pictures for _ in range(len(own))]
    together = [own for _, own in pictures] or [Detections.empty()]
    assert (out.scores == np.concatenate([own.scores for own in together])).all()
    assert (out.labels == np.concatenate([own.labels for own in together])).all()
    boxes = np.concatenate([own.boxes for own in together])
    assert np.abs(out.boxes - boxes).max(initial=0) <= 0.5 / GRID + 1e-4  # a float32 of 3000 px has 2e-4
    again = pack([(row, replace_boxes(own, out.boxes[out.rows == row])) for row, own in pictures])
    assert again == packed  # packing twice loses nothing more


def replace_boxes(own: Detections, boxes: np.ndarray) -> Detections:
    return Detections(boxes, own.scores, own.labels, own.shots)


def test_it_is_small() -> None:
    pictures = [(row, found(100, row)) for row in range(4)]
    plain = 4 * 100 * (16 + 4 + 8)
    assert len(pack(pictures)) < 0.6 * plain


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not deflated",
        zlib.compress(b""),
        zlib.compress(b"ab"),
        zlib.compress(np.array([5], "<i4").tobytes()),
        zlib.compress(np.array([-1], "<i4").tobytes()),
        zlib.compress(np.array([1, 0, 9], "<i4").tobytes()),
        zlib.compress(np.array([2, 0, 1, 1, -1], "<i4").tobytes()),
    ],
)
def test_bytes_of_something_else_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        unpack(content)


def test_every_cut_and_every_flipped_bit_is_found() -> None:
    packed = pack([(0, found(3, 0))])
    for end in range(len(packed)):
        with pytest.raises(ValueError, match=r"\S"):
            unpack(packed[:end])
    before = unpack(packed)
    for place in range(len(packed)):
        harmed = bytearray(packed)
        harmed[place] ^= 4
        try:
            after = unpack(bytes(harmed))
        except ValueError:
            continue
        # Deflate's head has a few bits that mean nothing for the content.
        assert all((a == b).all() for a, b in zip(after, before, strict=True))
