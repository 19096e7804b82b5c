"""Why a thing was found: the network's own maps for the best few detections, and the figure that shows them.

    explained = explain(model, picture, bank)
    explained.figure()            # (H, W, 3) uint8

Pictures are (H, W, 3) uint8 RGB; boxes are xyxy in pixels of the picture that was given. Reaches the network
through the runtime's protocol alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tenet.data.transforms import resize
from tenet.errors import InputError
from tenet.looks.sizes import SeenSize, working_size
from tenet.pictures import PictureLike, read_picture
from tenet.structures import ClassFeatures, Detections, Explanation

Picture = NDArray[np.uint8]
MOST_PAIRS = 12
"""Lines between a region and a shot: more of them hide what they join."""


class Bank(Protocol):
    """What is needed of a class bank."""

    @property
    def names(self) -> Sequence[str]: ...

    def features(self, name: str) -> ClassFeatures: ...

    def seen(self, name: str) -> Sequence[SeenSize]: ...

    def thumbnails(self, name: str) -> Sequence[Picture]: ...

    def shots(self, name: str) -> Sequence[Any]:
        """Each with `box`: the thing, xyxy in pixels of its thumbnail."""


@dataclass(frozen=True)
class Pair:
    """Two positions that look alike: of the region and of the shot, row by row from the upper left; their
    cosine; `mutual` where each is the nearest of the other."""

    region: int
    shot: int
    cosine: float
    mutual: bool


@dataclass(frozen=True, eq=False)
class Explained:
    """A picture, its best detections (boxes xyxy in its pixels), and for each the reason.

    shots        class → its shots, the thing without its surroundings
    below        nothing reached `threshold`: the one detection here is the best of those below
    asked        the box was asked for and not found: it is compared with the shots, and has no score
    """

    picture: Picture
    detections: Detections
    explanations: tuple[Explanation, ...]
    shots: dict[str, tuple[Picture, ...]]
    threshold: float
    below: bool = False
    asked: bool = False

    def __post_init__(self) -> None:
        if len(self.explanations) != len(self.detections):
            raise InputError(
                f"explanations: expected {len(self.detections)}, one for each detection, "
                f"got {len(self.explanations)}"
            )

    @property
    def note(self) -> str:
        """What was explained, in a sentence."""
        count = len(self.detections)
        if not count:
            return "The detector has nothing to show in this picture, not even below the threshold."
        if self.asked:
            return "The box that was asked for, compared with the shots; it has no score."
        if self.below:
            score = float(self.detections.scores[0])
            return (
                f"Nothing reaches the threshold {self.threshold:.2f}. "
                f"Explained is the best below it: {self.detections.names[0]}, {score:.2f}."
            )
        return "The best detection, explained." if count == 1 else f"The best {count} detections, explained."

    def figure(self, title: str = "") -> Picture:
        """All of it as one picture."""
        from tenet.drawing.explain_figure import draw_figure

        return draw_figure(self, title)


def explain(
    model: Any,
    picture: PictureLike,
    bank: Bank,
    top: int = 3,
    threshold: float | None = None,
    classes: Sequence[str] | None = None,
) -> Explained:
    """Detect, then explain the best `top` detections; where none reaches the threshold, the best below it."""
    if top < 1:
        raise InputError(f"top: expected at least 1 detection to explain, got {top}")
    limit = float(model.runtime.threshold if threshold is None else threshold)
    if not 0 <= limit <= 1:
        raise InputError(f"threshold: expected a score from 0 to 1, got {limit}")
    pixels = read_picture(picture)
    found = model.detect(pixels, bank, threshold=0.0, classes=classes)
    found = found.select(np.argsort(-found.scores, kind="stable"))
    above = int((found.scores >= limit).sum())
    best = found.select(np.arange(min(top, above) if above else min(1, len(found))))
    return Explained(
        pixels,
        best,
        explanations(model.runtime, bank, pixels, best),
        {name: things(bank, name) for name in dict.fromkeys(best.names.tolist())},
        limit,
        below=above == 0,
    )


def explanations(
    runtime: Any, bank: Bank, picture: Picture, detections: Detections
) -> tuple[Explanation, ...]:
    """The reason of each detection (boxes xyxy in pixels of `picture`), in their order.

    The picture is encoded once for each class that was found, at the size that suits what was found of it.
    """
    height, width = picture.shape[:2]
    names = detections.names
    reasons: dict[int, Explanation] = {}
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        sides = np.maximum(detections.boxes[rows, 2:] - detections.boxes[rows, :2], 1).tolist()
        size = working_size((width, height), [SeenSize((w, h), (width, height)) for w, h in sides])
        scaled, boxes = resize(picture, detections.boxes[rows], *size)
        [image] = runtime.encode_images([scaled])
        own = runtime.explain(image, bank.features(name), boxes)
        reasons.update(zip(rows.tolist(), own, strict=True))
    return tuple(reasons[row] for row in range(len(detections)))


def best_pairs(cosines: NDArray[np.floating], most: int = MOST_PAIRS) -> list[Pair]:
    """The positions of a region (rows) and of a shot (columns) that match best.

    Those that are each other's nearest come first, then others that are nearest one way; within each the
    most alike first, and no position of the region twice.
    """
    if cosines.ndim != 2 or cosines.size == 0:
        raise InputError(f"pairs: expected cosines of shape (N, N), got {cosines.shape}")
    forth, back = cosines.argmax(1), cosines.argmax(0)
    pairs = [
        Pair(row, int(column), float(cosines[row, column]), bool(back[column] == row))
        for row, column in enumerate(forth.tolist())
    ]
    return sorted(pairs, key=lambda pair: (not pair.mutual, -pair.cosine, pair.region))[:most]


def cut(picture: Picture, box: NDArray[np.float32]) -> Picture:
    """What is inside a box, xyxy in pixels of the picture; at least one pixel of it."""
    height, width = picture.shape[:2]
    left, top = min(max(int(np.floor(box[0])), 0), width - 1), min(max(int(np.floor(box[1])), 0), height - 1)
    right, bottom = min(int(np.ceil(box[2])), width), min(int(np.ceil(box[3])), height)
    return picture[top : max(bottom, top + 1), left : max(right, left + 1)]


def things(bank: Bank, name: str) -> tuple[Picture, ...]:
    """The shots of a class without context and padding: the part that the network's maps cover."""
    return tuple(
        cut(crop, np.asarray(shot.box, np.float32))
        for crop, shot in zip(bank.thumbnails(name), bank.shots(name), strict=True)
    )
