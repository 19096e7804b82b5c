"""How a picture is looked at: which part of it, at which size, for which classes.

Things of very different sizes want different working sizes: classes are put into a few groups by size, and
each group has its own views. All classes compete in each, so each looks for all that need no tiles: a thing
larger or smaller than its shots is found at the size that suits. Pixels of a view are made when needed
and dropped afterwards.
Sizes are (width, height) in pixels; boxes are xyxy.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.errors import InputError
from tenet.looks.merging import Look, join, merge
from tenet.looks.sizes import LARGEST, OBJECT, SMALLEST, SeenSize, all_bare, expected_side, scaled_to
from tenet.looks.tiles import Tile, needs_tiles, plan_tiles
from tenet.runtime.protocol import Picture
from tenet.structures import Detections, FloatArray

ALIKE = math.sqrt(2)
"""Classes whose wanted working sizes differ by at most this factor share one: two groups at most between
`SMALLEST` and `LARGEST`."""
MOST_RIVALS = 32
"""Classes compete for a box. Up to so many do so in every view, also those that another view looks for: a
stingray at a size for sharks is still no shark. With more classes, each view has only those of its group."""
ALIKE_TILED = 2.0
"""The same for classes that are looked for in tiles, by their expected side: one set of tiles costs more."""
MOST_TILED_GROUPS = 2
NEAR = 6
"""Pixels of the working picture: a box that ends so near an inner border is taken to be cut by it. The
network's edges are off by a few, and a whole thing taken for a cut one is lost only where it is a double."""
LEAST_SIDE = 32
"""Pixels that either side of a working picture has at least, so that a panorama is not a line."""
LEAST_SIZE, MOST_SIZE = 64, 2048
"""Limits of a longer side that the user asks for."""
WORDS = ("auto", "thorough", "once", "original")
"""`auto`: from the sizes of the shots, and what is found may change it (`tenet.looks.second_look`); `once`
without that; `thorough`: two opinions at the size of `auto` (`tenet.looks.request`)."""

JUDGED = ("boxes", "scores", "labels")
Judge = Callable[[FloatArray, FloatArray, NDArray[np.int64]], FloatArray]
"""Boxes (n, 4), raw scores (n,) and labels (n,) of a picture → the scores (n,) that are told."""
Size = int | str
"""One of `WORDS`, or the longer side of the working picture in pixels."""


@dataclass(frozen=True)
class View:
    """One look at a picture.

    labels   rows of the classes that are looked for
    rivals   rows of all classes that compete for what is seen, `labels` among them; none: `labels` alone
    part     xyxy in whole pixels of the picture: what is looked at
    size     of the working picture that the part is scaled to
    least    boxes with a longer side below this, in pixels of the picture, are left to other views
    inner    which borders of the part (left, top, right, bottom) lie inside the picture
    guessed  whether bare crops alone say that things are too small for it: tiles follow if none is found
    mirrored whether it is looked at as in a mirror; boxes that come out are those of the picture
    """

    labels: tuple[int, ...]
    part: Tile
    size: tuple[int, int]
    least: float = 0.0
    inner: tuple[bool, bool, bool, bool] = (False, False, False, False)
    rivals: tuple[int, ...] = ()
    guessed: bool = False
    mirrored: bool = False

    @property
    def matched(self) -> tuple[int, ...]:
        """Rows of the classes that the network is asked for; what it labels are places in it."""
        return self.rivals or self.labels

    def pixels(self, picture: Picture) -> Picture:
        """The working picture: bilinear with anti-aliasing, as in training."""
        x1, y1, x2, y2 = self.part
        region = picture[y1:y2, x1:x2]
        if self.mirrored:
            region = region[:, ::-1]
        if (x2 - x1, y2 - y1) == self.size:
            return np.ascontiguousarray(region)
        scaled = Image.fromarray(np.ascontiguousarray(region)).resize(self.size, Image.Resampling.BILINEAR)
        return np.array(scaled)

    def in_picture(self, found: Detections) -> Look:
        """Detections in the working picture, as detections in the whole one with rows of all classes as
        labels; and which boxes an inner border cuts. Boxes are xyxy in pixels before and after."""
        if self.mirrored:
            left, top, right, bottom = found.boxes.T
            width = np.float32(self.size[0])
            found = replace(found, boxes=np.stack([width - right, top, width - left, bottom], 1))
        x1, y1, x2, y2 = self.part
        scale = np.array([(x2 - x1) / self.size[0], (y2 - y1) / self.size[1]] * 2, np.float32)
        low, high = np.array([x1, y1] * 2, np.float32), np.array([x2, y2] * 2, np.float32)
        boxes = np.clip(found.boxes * scale + low, low, high).astype(np.float32)
        labels = np.array(self.matched, np.int64)[found.labels]
        sides = boxes[:, 2:] - boxes[:, :2]
        rows = (sides > 0).all(1) & (sides.max(1, initial=0) >= self.least) & np.isin(labels, self.labels)
        placed = replace(found, boxes=boxes, labels=labels, classes=()).select(rows)
        return placed, self._cut(placed.boxes, NEAR * scale)

    def _cut(self, boxes: FloatArray, near: FloatArray) -> NDArray[np.bool_]:
        """Which boxes, xyxy in pixels of the picture, end near an inner border."""
        close: NDArray[np.bool_] = np.abs(boxes - np.array(self.part)) <= near
        return np.asarray((close & np.array(self.inner)).any(1), np.bool_)


def check_size(size: Size) -> None:
    """Refuse a `size` that is none."""
    if size in WORDS:
        return
    if (
        isinstance(size, bool)
        or not isinstance(size, (int, np.integer))
        or not LEAST_SIZE <= size <= MOST_SIZE
    ):
        raise InputError(
            f"size: expected {', '.join(map(repr, WORDS))} or a longer side of {LEAST_SIZE} to {MOST_SIZE} "
            f"px, got {size!r}"
        )


def plan_views(
    picture: tuple[int, int], seen: Sequence[Sequence[SeenSize]], size: Size = "auto", tiles: bool = True
) -> list[View]:
    """The views of a picture of that size; `seen` holds, for each class, the sizes of its shots.

    A class is looked for in the views of all groups, or in tiles and the whole picture. What bare crops say
    of a size is a guess, which the whole picture may prove wrong: it comes first (`tiles_after`), unless all
    is to be looked at once.
    """
    check_size(size)
    every = tuple(range(len(seen)))
    if size == "original":
        return [_whole(picture, every, min(max(picture), MOST_SIZE))]
    if size not in WORDS:
        return [_whole(picture, every, int(size))]
    cut = {label for label in every if tiles and needs_tiles(picture, seen[label])}
    views: list[View] = []
    wanted = {label: _wanted(picture, seen[label]) for label in every if label not in cut}
    for labels in _groups(wanted, ALIKE):
        longer = math.exp(sum(math.log(wanted[label]) for label in labels) / len(labels))
        views.append(_whole(picture, labels, longer))
    sides = {label: expected_side(picture, seen[label]) for label in cut}
    for labels in _groups(sides, ALIKE_TILED, MOST_TILED_GROUPS):
        own = [one for label in labels for one in seen[label]]
        first, *parts = _tiled(picture, labels, own)
        if parts and size == "auto" and all_bare(own):
            views.append(replace(first, least=0.0, guessed=True))
        else:
            views += [first, *parts]
    if len(every) > MOST_RIVALS:
        return views
    # Every class competes in every view anyway: what a view finds of the other groups is kept as well.
    whole = tuple(label for label in every if label not in cut)
    return [_with_rivals(view, every, whole) for view in views]


def tiles_after(view: View, picture: tuple[int, int], seen: Sequence[Sequence[SeenSize]]) -> list[View]:
    """The tiles that follow where a `guessed` view found nothing."""
    own = [one for label in view.labels for one in seen[label]]
    return [
        replace(part, rivals=view.rivals, mirrored=view.mirrored)
        for part in _tiled(picture, view.labels, own)[1:]
    ]


def _with_rivals(view: View, every: tuple[int, ...], whole: tuple[int, ...]) -> View:
    """A view in which all classes compete; one of a group of `whole` classes looks for all of these."""
    labels = whole if set(view.labels) <= set(whole) else view.labels
    return replace(view, labels=labels, rivals=() if labels == every else every)


def combine(
    views: Sequence[View],
    found: Sequence[Detections],
    classes: Sequence[str],
    threshold: float,
    most: int,
    judge: Judge | None = None,
) -> Detections:
    """What the views of one picture found, in that picture's pixels: at least `threshold`, best first.

    `judge` makes a picture's raw scores into those that are told.
    """
    looks = [view.in_picture(one) for view, one in zip(views, found, strict=True)]
    if judge is not None and looks:
        looks = _judged(looks, judge)
    groups: dict[tuple[int, ...], list[Look]] = {}
    for view, (placed, cut) in zip(views, looks, strict=True):
        good = placed.scores >= threshold
        groups.setdefault(view.labels, []).append((placed.select(good), cut[good]))
    # Groups have no class in common: doubles can only be within one.
    merged = join([merge(looks, most) for looks in groups.values()], classes)
    return merged.select(np.arange(min(most, len(merged))))


def _judged(looks: Sequence[Look], judge: Judge) -> list[Look]:
    """The same looks with the scores that are told: all of them are judged together."""
    parts = [placed for placed, _ in looks]
    scores = judge(*(np.concatenate([getattr(part, name) for part in parts]) for name in JUDGED))
    ends = np.cumsum([len(part) for part in parts])[:-1]
    told = np.split(scores, ends)
    return [(replace(placed, scores=own), cut) for (placed, cut), own in zip(looks, told, strict=True)]


def _wanted(picture: tuple[int, int], seen: Sequence[SeenSize]) -> float:
    """Longer side of the working picture for one class, as `tenet.looks.sizes.working_size` has it."""
    return min(max(max(picture) * OBJECT / expected_side(picture, seen), SMALLEST), LARGEST)


def _groups(values: dict[int, float], factor: float, most: int | None = None) -> list[tuple[int, ...]]:
    """Labels in groups whose values lie within `factor`; with more than `most` groups, wider ones."""
    ordered = sorted(values, key=lambda label: (values[label], label))
    groups: list[list[int]] = []
    for label in ordered:
        if groups and values[label] <= values[groups[-1][0]] * factor * (1 + 1e-9):
            groups[-1].append(label)
        else:
            groups.append([label])
    if most is not None and len(groups) > most:
        return _groups(values, factor * 1.25, most)
    return [tuple(sorted(group)) for group in groups]


def _whole(picture: tuple[int, int], labels: tuple[int, ...], longer: float, least: float = 0.0) -> View:
    return View(labels, (0, 0, *picture), at_least(scaled_to(picture, longer)), least)


def _tiled(picture: tuple[int, int], labels: tuple[int, ...], seen: Sequence[SeenSize]) -> list[View]:
    """The whole picture for things that no tile has whole, then the tiles."""
    tiles, overlap = plan_tiles(picture, seen)
    if len(tiles) == 1:
        return [_whole(picture, labels, LARGEST)]
    width, height = picture
    views = [_whole(picture, labels, LARGEST, least=overlap)]
    for x1, y1, x2, y2 in tiles:
        inner = (x1 > 0, y1 > 0, x2 < width, y2 < height)
        size = at_least(scaled_to((x2 - x1, y2 - y1), LARGEST))
        views.append(View(labels, (x1, y1, x2, y2), size, inner=inner))
    return views


def at_least(size: tuple[int, int]) -> tuple[int, int]:
    """A working picture's size with both sides at `LEAST_SIDE` at least."""
    return max(size[0], LEAST_SIDE), max(size[1], LEAST_SIDE)
