"""A set made by code: textured objects of many classes on backgrounds, exact boxes, any size, seeded.

What the tests and a newcomer without data train on. A class is an outline, a texture and two colours
(`striped-star-red-white`); its objects differ in size, shape, rotation, light and a little in colour. At
most a third of an object is hidden by others. A box is the tightest around the pixels that one sees of
an object, from the map of who is where, not from its formula.

The same arguments give the same set with one version of numpy; numpy promises that its random bits stay
the same over versions, but not what it derives from them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenet.data.coco import write_stream
from tenet.data.dataset import Dataset, Record
from tenet.data.painting import SUPERSAMPLING, Progress, clouds, eroded, extent, leaves_enough, pooled, tinted
from tenet.data.shapes import COLOURS, OUTLINES, TEXTURES
from tenet.errors import InputError
from tenet.structures import Target


@dataclass(frozen=True)
class Kind:
    """A class of synthetic objects."""

    outline: str
    texture: str
    colour: str
    accent: str

    @property
    def name(self) -> str:
        return f"{self.texture}-{self.outline}-{self.colour}-{self.accent}"


def kinds(count: int) -> tuple[Kind, ...]:
    """The first `count` classes. The list is one and the same for every seed, so that two sets of
    different seeds can be training and test; neighbours differ in outline, texture and colour."""
    if not 1 <= count <= 1000:
        raise InputError(f"classes: expected 1 to 1000, got {count}")
    outlines, textures, colours = list(OUTLINES), list(TEXTURES), list(COLOURS)
    found: dict[Kind, None] = {}
    index = 0
    while len(found) < count:
        # Steps that share no factor with the lists' lengths visit every combination.
        lap = index // len(outlines)
        outline = outlines[(index * 7) % len(outlines)]
        texture = textures[(index * 5 + lap * 7 + 2) % len(textures)]
        colour = colours[(index * 7 + lap * 11) % len(colours)]
        accent = colours[(index * 7 + lap * 11 + 4 + lap % 5) % len(colours)]
        found[Kind(outline, texture, colour, accent)] = None
        index += 1
    return tuple(found)


def synthetic_dataset(
    images: int = 100, classes: int = 20, size: tuple[int, int] = (320, 240), seed: int = 0, objects: int = 5
) -> Dataset:
    """A set in memory.

    size     (W, H) of the pictures, each side at least 32
    objects  most objects in a picture; at least 1
    """
    table = kinds(classes)
    names = tuple(kind.name for kind in table)
    return Dataset(f"synthetic-{seed}", names, tuple(_records(images, table, size, seed, objects)))


def _records(
    images: int, table: tuple[Kind, ...], size: tuple[int, int], seed: int, objects: int
) -> Iterator[Record]:
    if images < 1 or objects < 1:
        raise InputError(f"images and objects: expected at least 1, got {images} and {objects}")
    if min(size) < 32 or max(size) > 8192:
        raise InputError(f"size: expected sides of 32 to 8192 pixels, got {size[0]}x{size[1]}")
    boxes_before = 0
    for index in range(images):
        record = _record(index, table, size, seed, objects, boxes_before)
        boxes_before += len(record.target)
        yield record


def write_synthetic(
    folder: Path,
    images: int = 100,
    classes: int = 20,
    size: tuple[int, int] = (320, 240),
    seed: int = 0,
    objects: int = 5,
    progress: Progress | None = None,
) -> Path:
    """Write `synthetic_dataset` as COCO JSON with PNG pictures, one picture in memory at a time; returns
    the JSON file. `progress` wraps an iterable and its length, as tqdm does."""
    table = kinds(classes)
    stream: Iterable[Record] = _records(images, table, size, seed, objects)
    if progress is not None:
        stream = progress(stream, images)
    path = folder / "annotations.json"
    write_stream(path, f"synthetic-{seed}", tuple(kind.name for kind in table), stream)
    return path


def _record(
    index: int, table: tuple[Kind, ...], size: tuple[int, int], seed: int, objects: int, boxes_before: int
) -> Record:
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, index])))
    picture, owners, labels, _ = _scene(rng, index, table, size, objects)
    boxes = np.array([extent(owners == number) for number in range(len(labels))], np.float32).reshape(-1, 4)
    name = f"{index + 1:06d}.png"
    return Record(
        id=str(index + 1),
        path=Path(name),
        file_name=name,
        width=size[0],
        height=size[1],
        target=Target.of(boxes, labels),
        box_ids=np.arange(boxes_before + 1, boxes_before + 1 + len(boxes), dtype=np.int64),
        pixels=picture,
    )


def _scene(
    rng: np.random.Generator, index: int, table: tuple[Kind, ...], size: tuple[int, int], objects: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[int], list[int]]:
    """(picture, the number of the object that each pixel shows or -1, the objects' classes, and how many
    pixels each would have if nothing hid it)."""
    width, height = size
    canvas = clouds(rng, width, height)
    owners = np.full((height, width), -1, np.int64)
    areas: list[int] = []
    labels: list[int] = []
    wanted = int(rng.integers(1, objects + 1))
    for attempt in range(wanted * 4):
        # The first object goes round the classes, so that every one is shown equally often.
        first = not labels
        label = index % len(table) if first else int(rng.integers(len(table)))
        alpha, colours, (left, top) = _object(rng, table[label], width, height)
        solid = alpha >= 0.5
        rows, columns = alpha.shape
        window = (slice(top, top + rows), slice(left, left + columns))
        if solid.sum() < 12 or not leaves_enough(owners[window], solid, owners, areas):
            continue
        mix = alpha[..., None]
        canvas[window] = canvas[window] * (1 - mix) + colours * mix
        owners[window][solid] = len(labels)
        areas.append(int(solid.sum()))
        labels.append(label)
        if len(labels) == wanted or attempt == wanted * 4 - 1:
            break
    noise = rng.normal(0, 3.5, (height, width, 1)) + rng.normal(0, 1.5, (height, width, 3))
    return np.clip(canvas + noise, 0, 255).astype(np.uint8), owners, labels, areas


def _object(
    rng: np.random.Generator, kind: Kind, width: int, height: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[int, int]]:
    """(alpha (h, w), colours (h, w, 3), (left, top)) of one object, wholly inside the picture."""
    shorter = min(width, height)
    radius = shorter * float(np.exp(rng.uniform(np.log(0.07), np.log(0.3))))
    radius = max(radius, min(6.0, shorter * 0.3))
    stretch = float(np.exp(rng.uniform(-0.22, 0.22)))
    side = min(int(np.ceil(2 * radius * 1.25)) + 2, shorter)
    n = side * SUPERSAMPLING
    line = (np.arange(n) + 0.5) / n * 2 - 1
    x, y = np.meshgrid(line * side / 2 / radius, line * side / 2 / radius)
    # Most things stand more or less upright; some lie anywhere.
    angle = float(rng.normal(0, 0.3)) if rng.random() < 0.7 else float(rng.uniform(-np.pi, np.pi))
    u = (x * np.cos(angle) + y * np.sin(angle)) * stretch
    v = (-x * np.sin(angle) + y * np.cos(angle)) / stretch
    if rng.random() < 0.5:
        u = -u
    mask = OUTLINES[kind.outline](u, v)
    texture = TEXTURES[kind.texture](u, v)[..., None]
    main, accent = (tinted(rng, COLOURS[name]) for name in (kind.colour, kind.accent))
    # Light from one side, and a darker rim, so that it is an object and not a hole.
    light = 1 + float(rng.uniform(0.05, 0.25)) * (x * np.cos(1.0) - y)[..., None]
    rim = np.where(eroded(mask, max(1, n // 40)), 1.0, 0.62)[..., None]
    colours = np.clip((main * (1 - texture) + accent * texture) * light * rim, 0, 255)
    weight = mask[..., None].astype(np.float64)
    alpha = pooled(weight)[..., 0]
    shade = pooled(colours * weight) / np.maximum(alpha, 1e-6)[..., None]
    left = int(rng.integers(0, width - side + 1))
    top = int(rng.integers(0, height - side + 1))
    return alpha, shade, (left, top)
