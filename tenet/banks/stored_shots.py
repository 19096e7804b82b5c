"""A shot as a bank keeps it: enough to encode it again, beside other shots or by another model.

Two small pictures, encoded as JPEG: the crop, and where the shot came with its picture, that picture as
the scene. The scene is kept at the largest size at which things are ever looked for and not at the
working size of the day, because that one follows from all shots of a class: a shot more, and all of them
are looked at in another size. Encoding always starts from what is kept, never from the user's picture, so
a class is the same however and in whichever order its shots came.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenet.data.images import open_picture
from tenet.data.transforms import resize
from tenet.looks.sizes import SeenSize, working_size
from tenet.structures import Shot

Picture = NDArray[np.uint8]
Box = tuple[float, float, float, float]

CROP_QUALITY, SCENE_QUALITY = 95, 90
SUBSAMPLING = "4:4:4"
"""Colours at full resolution: a class can be told by them."""


@dataclass(frozen=True)
class StoredShot:
    """One shot of a class.

    crop       JPEG: the object with a little context, padded to a square
    box        xyxy in pixels of the crop: the object without context and padding
    seen       how large it was, in pixels of the user's picture
    source     16 bytes, the same for the same pixels and box: tells a shot that was given twice
    scene      JPEG: the picture that it was taken from, scaled down; b"" for a bare crop
    scene_box  xyxy in pixels of the scene; None for a bare crop
    """

    crop: bytes
    box: Box
    seen: SeenSize
    source: bytes
    scene: bytes = b""
    scene_box: Box | None = None

    @property
    def bare(self) -> bool:
        """Whether nobody knows its surroundings."""
        return self.scene_box is None

    def thumbnail(self) -> Picture:
        """(S, S, 3) uint8 RGB, the crop."""
        return open_picture(self.crop, "stored crop")


def runtime_shots(stored: Sequence[StoredShot], size: int) -> list[Shot]:
    """All shots of a class as a runtime takes them: crops of side `size`, scenes at their working size."""
    seen = [one.seen for one in stored]
    return [_runtime_shot(one, seen, size) for one in stored]


def _runtime_shot(one: StoredShot, seen: Sequence[SeenSize], size: int) -> Shot:
    crop, boxes = resize(one.thumbnail(), _rows(one.box), size, size)
    if one.scene_box is None:
        return Shot(crop, boxes[0])
    width, height = working_size(one.seen.picture, seen)
    scene, scene_boxes = resize(open_picture(one.scene, "stored scene"), _rows(one.scene_box), width, height)
    return Shot(crop, boxes[0], scene, scene_boxes[0])


def _rows(box: Box) -> NDArray[np.float32]:
    return np.array([box], np.float32)


def without_doubles(
    kept: Sequence[StoredShot], read: Sequence[tuple[StoredShot, str]]
) -> tuple[list[StoredShot], list[str]]:
    """Of shots that were read, with what to tell about each, those that are not among `kept` and each once;
    and the notes about them, by the number that they get behind `kept`."""
    rows = {shot.source: row for row, shot in enumerate(kept)}
    fresh: list[StoredShot] = []
    notes: list[str] = []
    for shot, note in read:
        if shot.source in rows:
            notes.append(f"one shot is the same as shot {rows[shot.source]} and was left out")
            continue
        rows[shot.source] = len(kept) + len(fresh)
        if note:
            notes.append(f"shot {rows[shot.source]}: {note}")
        fresh.append(shot)
    return fresh, notes
