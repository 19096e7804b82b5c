"""Detections of some pictures as few bytes: what a shard of an evaluation holds of one draw. No torch.

    m  (1,) int32       pictures
    rows, counts  (m,)  int32: each picture's row in the test set, and its number of detections
    boxes               (n, 4) float32, to 1/64 of a pixel
    scores              (n,) float32
    labels              (n,) int32

little-endian, one after the other, deflated. Of the last three the first bytes of all numbers come first,
then the second ones, …: bytes of a kind are alike, and deflate finds that. Deflate's checksum tells a
damaged block from a whole one.
"""

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenet.structures import Detections

GRID = 64
"""Parts of a pixel that boxes are kept to. A power of two: such numbers are exact and end in zeros."""
LEVEL = 6
WORD = 4


class Unpacked(NamedTuple):
    """n detections: rows (n,) of their pictures, boxes (n, 4) xyxy in the pictures' pixels, scores and labels
    (n,)."""

    rows: NDArray[np.int64]
    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int64]


def pack(pictures: Sequence[tuple[int, Detections]]) -> bytes:
    """(row of the picture, what was found there; boxes xyxy in its pixels), as bytes."""
    found = [detections for _, detections in pictures] or [Detections.empty()]
    boxes = np.concatenate([own.boxes for own in found])
    head = [len(pictures), *(row for row, _ in pictures), *(len(own) for _, own in pictures)]
    parts = [
        np.array(head, "<i4").tobytes(),
        _planes(np.round(boxes.astype(np.float64) * GRID) / GRID, "<f4"),
        _planes(np.concatenate([own.scores for own in found]), "<f4"),
        _planes(np.concatenate([own.labels for own in found]), "<i4"),
    ]
    return zlib.compress(b"".join(parts), LEVEL)


def unpack(content: bytes) -> Unpacked:
    """What `pack` packed; bytes that are damaged are a ValueError."""
    try:
        raw = zlib.decompress(content)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if len(raw) < WORD:
        raise ValueError("expected the number of pictures, found nothing")
    m = int(np.frombuffer(raw, "<i4", 1)[0])
    start = WORD * (1 + 2 * m)
    if m < 0 or len(raw) < start:
        raise ValueError(f"expected {m} pictures, found fewer bytes than those need")
    rows, counts = np.frombuffer(raw, "<i4", 2 * m, WORD).reshape(2, m)
    n = int(counts.sum())
    if (counts < 0).any() or len(raw) != start + n * WORD * 6:
        raise ValueError(f"expected {n} detections, found {len(raw) - start} bytes of them")
    boxes = _words(raw[start : start + 16 * n], "<f4").reshape(n, 4)
    scores = _words(raw[start + 16 * n : start + 20 * n], "<f4")
    labels = _words(raw[start + 20 * n :], "<i4")
    return Unpacked(np.repeat(rows, counts).astype(np.int64), boxes, scores, labels.astype(np.int64))


def _planes(values: NDArray[Any], kind: str) -> bytes:
    """The first byte of every number, then the second, …"""
    words = np.ascontiguousarray(values.astype(kind)).reshape(-1).view(np.uint8)
    return words.reshape(-1, WORD).T.tobytes()


def _words(planes: bytes, kind: str) -> NDArray[Any]:
    split = np.frombuffer(planes, np.uint8).reshape(WORD, -1)
    return np.ascontiguousarray(split.T).reshape(-1).view(kind).astype(kind[1:])
