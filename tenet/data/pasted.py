"""Things that nobody annotated: made from pieces of pictures, pasted in numbers on other pictures.

Eighty classes of whole things teach a detector that only such things exist. Here a class is an outline that
is filled with a piece of a photograph, or with a pattern in two colours; its objects differ in size, turn and
light, lie alone or in crowds, and some shine through. They are pasted on a set's own pictures, on a small
part of one, enlarged, or on clouds. Objects of the set stay annotated; one that things hide by more than a
third is marked as difficult.

The same set and seed give the same pictures, with one version of numpy.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.data.coco import write_stream
from tenet.data.dataset import Dataset, Record
from tenet.data.painting import (
    MAX_HIDDEN,
    SUPERSAMPLING,
    Progress,
    clouds,
    eroded,
    extent,
    leaves_enough,
    pooled,
    tinted,
)
from tenet.data.shapes import COLOURS, OUTLINES, TEXTURES, Grid, Mask
from tenet.data.splits import THING
from tenet.errors import DataError, InputError
from tenet.structures import Target

BLOBS, CARDS = 0.45, 0.15
"""Shares of classes that are irregular blobs and rectangles; the others have one of the drawn outlines."""
PHOTOGRAPHS = 0.65
"""Share of classes that are filled with a piece of a photograph."""
SIZES = (0.05, 0.3)
"""Half a thing's side, as a share of the picture's shorter side: least and most."""
WHOLE, PART = 0.5, 0.25
"""Shares of pictures that lie on a whole picture of the set and on an enlarged part; the others on clouds."""
CROWDS, MOST = 0.6, 25
"""Share of a class's appearances in which it comes in a crowd, and the most objects of one."""
COVERED = 0.5
"""About the most of a picture that objects of one class fill."""
GREY = 0.2
"""Share of pictures without colour."""
LEAST_RADIUS, LEAST_PIXELS = 6.0, 24


@dataclass(frozen=True, eq=False)
class Thing:
    """A class: what its objects have in common."""

    outline: Callable[[Grid, Grid], Mask]
    fill: Callable[[Grid, Grid], NDArray[np.float64]]
    """u and v in −1…1 → colours (…, 3)."""
    aspect: float
    radius: float
    upright: bool
    spread: float
    """Standard deviation of the logarithm of its objects' sizes."""
    alpha: float
    rim: float
    light: float


def pasted_records(dataset: Dataset, images: int, classes: int, seed: int = 0) -> Iterator[Record]:
    """Pictures with things, made one by one; labels are rows of `pasted_classes`."""
    if images < 1 or classes < 1 or seed < 0:
        raise InputError(
            "pasted: expected at least 1 picture, 1 class and a seed from 0, "
            f"got {images}, {classes} and {seed}"
        )
    if not dataset.records:
        raise DataError(f"{dataset.name}: expected pictures to paste on, found none")
    things = [_thing(_generator(seed, 0, number), dataset) for number in range(classes)]
    boxes_before = 0
    for index in range(images):
        rng = _generator(seed, 1, index)
        record = _record(rng, index, dataset, things, boxes_before)
        boxes_before += len(record.target)
        yield record


def pasted_classes(dataset: Dataset, classes: int) -> tuple[str, ...]:
    """The set's own classes, then the things'."""
    return (*dataset.classes, *(f"{THING}{number + 1:03d}" for number in range(classes)))


def write_pasted(
    folder: Path,
    dataset: Dataset,
    images: int,
    classes: int,
    seed: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write `pasted_records` as COCO JSON with PNG pictures; returns the JSON file."""
    stream: Iterable[Record] = pasted_records(dataset, images, classes, seed)
    if progress is not None:
        stream = progress(stream, images)
    path = folder / "annotations.json"
    write_stream(path, f"pasted-{seed}", pasted_classes(dataset, classes), stream)
    return path


def _generator(*numbers: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(numbers)))


# Classes --------------------------------------------------------------------------------------------


def _thing(rng: np.random.Generator, dataset: Dataset) -> Thing:
    return Thing(
        outline=_outline(rng),
        fill=_photograph(rng, dataset) if rng.random() < PHOTOGRAPHS else _pattern(rng),
        aspect=float(np.exp(rng.normal(0, 0.35)).clip(0.4, 2.5)),
        radius=float(np.exp(rng.uniform(*np.log(SIZES)))),
        upright=bool(rng.random() < 0.5),
        spread=float(rng.uniform(0.05, 0.4)),
        alpha=float(rng.choice([1.0, 1.0, 1.0, 0.8, 0.6])),
        rim=float(rng.uniform(0.6, 1.1)),
        light=float(rng.uniform(0, 0.25)),
    )


def _outline(rng: np.random.Generator) -> Callable[[Grid, Grid], Mask]:
    kind = rng.random()
    if kind < BLOBS:
        return _blob(rng)
    if kind < BLOBS + CARDS:
        return lambda u, v: (np.abs(u) <= 1) & (np.abs(v) <= 1)
    return OUTLINES[list(OUTLINES)[int(rng.integers(len(OUTLINES)))]]


def _blob(rng: np.random.Generator) -> Callable[[Grid, Grid], Mask]:
    """An irregular round thing: a circle with a few waves of random height."""
    heights = rng.normal(0, 1, 6) * np.array([0.16, 0.12, 0.09, 0.06, 0.04, 0.03])
    phases = rng.uniform(0, 2 * np.pi, 6)

    def inside(u: Grid, v: Grid) -> Mask:
        angle = np.arctan2(v, u)[..., None]
        edge = 0.8 + (heights * np.cos(np.arange(2, 8) * angle + phases)).sum(-1)
        return np.asarray(np.hypot(u, v) <= edge.clip(0.3, 1))

    return inside


def _photograph(rng: np.random.Generator, dataset: Dataset) -> Callable[[Grid, Grid], NDArray[np.float64]]:
    """A square piece of a picture."""
    picture = dataset.records[int(rng.integers(len(dataset)))].picture()
    piece = _piece(rng, picture, (0.15, 0.6)).astype(np.float64)
    side = len(piece)

    def colours(u: Grid, v: Grid) -> NDArray[np.float64]:
        row, column = (((t + 1) / 2 * side).astype(int).clip(0, side - 1) for t in (v, u))
        return piece[row, column]

    return colours


def _pattern(rng: np.random.Generator) -> Callable[[Grid, Grid], NDArray[np.float64]]:
    texture = list(TEXTURES.values())[int(rng.integers(len(TEXTURES)))]
    table = list(COLOURS.values())
    main, accent = (tinted(rng, table[int(rng.integers(len(table)))]) for _ in range(2))

    def colours(u: Grid, v: Grid) -> NDArray[np.float64]:
        share = texture(u, v)[..., None]
        return main * (1 - share) + accent * share

    return colours


def _piece(
    rng: np.random.Generator, picture: NDArray[np.uint8], shares: tuple[float, float]
) -> NDArray[np.uint8]:
    """A square piece whose side is a share of the picture's shorter one."""
    height, width = picture.shape[:2]
    side = max(1, int(min(height, width) * rng.uniform(*shares)))
    top, left = int(rng.integers(0, height - side + 1)), int(rng.integers(0, width - side + 1))
    return picture[top : top + side, left : left + side]


# Pictures -------------------------------------------------------------------------------------------


def _record(
    rng: np.random.Generator, index: int, dataset: Dataset, things: list[Thing], boxes_before: int
) -> Record:
    ground = dataset.records[int(rng.integers(len(dataset)))]
    canvas, whole = _ground(rng, ground)
    height, width = canvas.shape[:2]
    owners = np.full((height, width), -1, np.int64)
    numbers: list[int] = []
    areas: list[int] = []
    for turn in range(int(rng.integers(1, 4))):
        # The first class goes round, so that every one is shown equally often.
        number = index % len(things) if turn == 0 else int(rng.integers(len(things)))
        for alpha, colours, place in _objects(rng, things[number], height, width):
            solid = alpha >= 0.5
            if solid.sum() < LEAST_PIXELS or not leaves_enough(owners[place], solid, owners, areas):
                continue
            mix = (alpha * things[number].alpha)[..., None]
            canvas[place] = canvas[place] * (1 - mix) + colours * mix
            owners[place][solid] = len(numbers)
            areas.append(int(solid.sum()))
            numbers.append(number)
    target = _target(owners, numbers, len(dataset.classes), ground.target if whole else None)
    name = f"{index + 1:06d}.png"
    return Record(
        id=str(index + 1),
        path=Path(name),
        file_name=name,
        width=width,
        height=height,
        target=target,
        box_ids=np.arange(boxes_before + 1, boxes_before + 1 + len(target), dtype=np.int64),
        pixels=_developed(rng, canvas),
    )


def _ground(rng: np.random.Generator, record: Record) -> tuple[NDArray[np.float64], bool]:
    """What things lie on, of the picture's size, and whether it is that picture as a whole."""
    picture, kind = record.picture(), rng.random()
    if kind < WHOLE:
        return picture.astype(np.float64), True
    if kind < WHOLE + PART:
        piece = Image.fromarray(np.ascontiguousarray(_piece(rng, picture, (0.1, 0.4))))
        enlarged = piece.resize((record.width, record.height), Image.Resampling.BICUBIC)
        return np.asarray(enlarged).astype(np.float64), False
    return clouds(rng, record.width, record.height), False


Pasted = tuple[NDArray[np.float64], NDArray[np.float64], tuple[slice, slice]]
"""An object's opacity (h, w) and colours (h, w, 3), and where it lies in the picture."""


def _objects(rng: np.random.Generator, thing: Thing, height: int, width: int) -> Iterator[Pasted]:
    """Objects of one class in a picture of that size: a few, or a crowd."""
    shorter = min(height, width)
    count = int(rng.integers(4, MOST + 1)) if rng.random() < CROWDS else int(rng.integers(1, 4))
    usual = thing.radius * shorter * float(np.exp(rng.normal(0, 0.25)))
    longest = max(thing.aspect, 1 / thing.aspect) ** 0.5
    for _ in range(max(1, min(count, int(COVERED * height * width / (4 * usual**2))))):
        radius = max(LEAST_RADIUS, usual * float(np.exp(rng.normal(0, thing.spread))))
        alpha, colours = _object(rng, thing, min(radius, 0.3 * shorter / longest), longest)
        side = len(alpha)
        # A fifth of it may lie beyond the picture's edge.
        out = side // 5
        if side > shorter:
            continue
        top, left = (int(rng.integers(-out, room - side + out + 1)) for room in (height, width))
        rows = slice(max(0, top), min(height, top + side))
        columns = slice(max(0, left), min(width, left + side))
        inner = slice(rows.start - top, rows.stop - top), slice(columns.start - left, columns.stop - left)
        yield alpha[inner], colours[inner], (rows, columns)


def _object(
    rng: np.random.Generator, thing: Thing, radius: float, longest: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Opacity (s, s) and colours (s, s, 3) of one object."""
    side = int(np.ceil(2.6 * radius * longest)) + 2
    n = side * SUPERSAMPLING
    line = ((np.arange(n) + 0.5) / n * 2 - 1) * side / 2 / radius
    x, y = np.meshgrid(line, line)
    angle = float(rng.normal(0, 0.15)) if thing.upright else float(rng.uniform(-np.pi, np.pi))
    stretch = thing.aspect**0.5 * float(np.exp(rng.normal(0, 0.1)))
    u = (x * np.cos(angle) + y * np.sin(angle)) / stretch
    v = (y * np.cos(angle) - x * np.sin(angle)) * stretch
    if rng.random() < 0.5:
        u = -u
    mask = thing.outline(u, v)
    light = (1 + thing.light * (x / 2 - y)[..., None]) * rng.uniform(0.85, 1.15)
    rim = np.where(eroded(mask, max(1, n // 30)), 1.0, thing.rim)[..., None]
    colours = np.clip(thing.fill(u, v) * light * rim, 0, 255)
    weight = mask[..., None].astype(np.float64)
    alpha = pooled(weight)[..., 0]
    return alpha, pooled(colours * weight) / np.maximum(alpha, 1e-6)[..., None]


def _target(owners: NDArray[np.int64], numbers: list[int], own: int, ground: Target | None) -> Target:
    """Boxes of the things, and of the objects of the picture that they lie on."""
    boxes = [extent(owners == row) for row in range(len(numbers))]
    labels = [own + number for number in numbers]
    if ground is None:
        return Target.of(boxes, labels)
    hidden = [_hidden(owners, box) > MAX_HIDDEN for box in ground.boxes]
    crowd = [*np.zeros(len(boxes), np.bool_), *ground.crowd]
    return Target.of(
        [*boxes, *ground.boxes.tolist()],
        [*labels, *ground.labels.tolist()],
        ignore=[*np.zeros(len(boxes), np.bool_), *(ground.ignore | hidden)],
        crowd=crowd,
        truncated=[*np.zeros(len(boxes), np.bool_), *ground.truncated],
    )


def _hidden(owners: NDArray[np.int64], box: NDArray[np.float32]) -> float:
    """The share of a box that things cover."""
    x1, y1 = np.floor(box[:2]).astype(int)
    x2, y2 = np.ceil(box[2:]).astype(int)
    return float((owners[y1:y2, x1:x2] >= 0).mean())


def _developed(rng: np.random.Generator, canvas: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The canvas with a little noise, some without colour."""
    if rng.random() < GREY:
        canvas = np.repeat(canvas.mean(2, keepdims=True), 3, 2)
    noisy = canvas + rng.normal(0, rng.uniform(0, 4), (*canvas.shape[:2], 1))
    return np.clip(noisy, 0, 255).astype(np.uint8)
