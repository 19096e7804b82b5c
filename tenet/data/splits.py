"""Base and novel classes of the paper's three benchmarks, and the check that neither side leaks.

VOC (three splits of 15 / 5), COCO (60 / 20: the novel ones are VOC's classes), FSOD (800 / 200: the
classes of its train and its test file).
"""

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.data.dataset import Dataset, Record
from tenet.data.voc import CLASSES as VOC_CLASSES
from tenet.errors import DataError, InputError

# fmt: off
COCO_CLASSES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee",
    "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple",
    "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote", "keyboard",
    "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase",
    "scissors", "teddy bear", "hair drier", "toothbrush",
)
# fmt: on
"""COCO's eighty classes, in its order."""

VOC_TO_COCO = {
    "aeroplane": "airplane",
    "diningtable": "dining table",
    "motorbike": "motorcycle",
    "pottedplant": "potted plant",
    "sofa": "couch",
    "tvmonitor": "tv",
}
"""VOC's names of the classes that COCO calls otherwise."""

FSOD_COUNTS = (800, 200)
THING = "thing-"
"""What the names of pasted things (`tenet.data.pasted`) begin with: they are no class of any benchmark."""


@dataclass(frozen=True)
class Split:
    """Classes to train on (base) and classes that are new at test (novel); no class is both."""

    name: str
    base: tuple[str, ...]
    novel: tuple[str, ...]

    def __post_init__(self) -> None:
        both = sorted(one_name(self.base) & one_name(self.novel))
        if both:
            raise DataError(
                f"split {self.name}: expected base and novel classes apart, got {', '.join(both)} in both"
            )


def one_name(names: Iterable[str]) -> set[str]:
    """Class names as COCO spells them, so that `sofa` and `couch` are one class."""
    return {VOC_TO_COCO.get(name, name) for name in names}


def _voc_split(number: int, *novel: str) -> Split:
    return Split(f"voc{number}", tuple(name for name in VOC_CLASSES if name not in novel), novel)


def _coco_split() -> Split:
    seen = one_name(VOC_CLASSES)
    base = tuple(name for name in COCO_CLASSES if name not in seen)
    return Split("coco", base, tuple(name for name in COCO_CLASSES if name in seen))


SPLITS: dict[str, Split] = {
    "voc1": _voc_split(1, "bird", "bus", "cow", "motorbike", "sofa"),
    "voc2": _voc_split(2, "aeroplane", "bottle", "cow", "horse", "sofa"),
    "voc3": _voc_split(3, "boat", "cat", "motorbike", "sheep", "sofa"),
    "coco": _coco_split(),
}


def get_split(name: str) -> Split:
    """The split of this name; FSOD's comes from its files, see `fsod_split`."""
    if name not in SPLITS:
        raise InputError(f"split: expected one of {', '.join(SPLITS)}; got {name!r}")
    return SPLITS[name]


def fsod_split(train: Dataset, test: Dataset, exact: bool = True) -> Split:
    """FSOD's split: the classes of its train file are base, those of its test file novel. With `exact`
    their numbers must be the paper's, 800 and 200."""
    got = (len(train.classes), len(test.classes))
    if exact and got != FSOD_COUNTS:
        raise DataError(
            f"FSOD: expected {FSOD_COUNTS[0]} and {FSOD_COUNTS[1]} classes, got {got[0]} and {got[1]}"
        )
    return Split("fsod", train.classes, test.classes)


def base_side(dataset: Dataset, split: Split) -> Dataset:
    """What may be trained on: boxes of base classes, and of pasted things. Pictures that also show novel
    objects stay, with those boxes taken out."""
    base = set(own_names(dataset, split.base))
    return dataset.with_classes([n for n in dataset.classes if n in base or n.startswith(THING)])


def without_novel(dataset: Dataset, split: Split) -> Dataset:
    """The pictures that show no novel object. In the others it would be learned that such things, whose
    boxes were taken out, are background."""
    novel = own_names(dataset, split.novel)
    return dataset.without(record.id for record in dataset.with_classes(novel, keep_empty=False).records)


def novel_side(dataset: Dataset, split: Split) -> Dataset:
    """What is tested: boxes of novel classes, in all pictures."""
    return dataset.with_classes(own_names(dataset, split.novel))


def own_names(dataset: Dataset, names: tuple[str, ...]) -> list[str]:
    """Those of the named classes that the set has, as it spells them."""
    wanted = one_name(names)
    return [name for name in dataset.classes if VOC_TO_COCO.get(name, name) in wanted]


def spelled_as(test: Dataset, other: Dataset) -> Dataset:
    """`other` with the class names of `test`: VOC's sofa is COCO's couch."""
    spelling = {VOC_TO_COCO.get(name, name): name for name in test.classes}
    return other.renamed({name: spelling.get(VOC_TO_COCO.get(name, name), name) for name in other.classes})


def find_leaks(train: Dataset, test: Dataset, split: Split | None = None, near: bool = False) -> list[str]:
    """A line for each class or picture of the test side that is in the training side.

    split  with it, no novel class may have a box in `train`; without it, no class of `test` may
    near   also decode all pictures and find those that look the same in other files or sizes
    """
    shown = one_name(name for name, count in train.class_counts().items() if count)
    tested = one_name(split.novel if split is not None else test.classes)
    leaks = [f"class {name} of the test side has boxes in {train.name}" for name in sorted(shown & tested)]
    leaks += [
        f"picture {test.records[b].file_name} of {test.name} is {train.records[a].file_name} of {train.name}"
        for a, b in _same_pictures(train, test, near)
    ]
    return leaks


def refuse_leaks(train: Dataset, test: Dataset, split: Split | None = None, near: bool = False) -> None:
    """A DataError where `find_leaks` finds any: call it before training."""
    leaks = find_leaks(train, test, split, near)
    if leaks:
        more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
        raise DataError(
            f"expected training and test apart, but {leaks[0]}{more}; take them out of the training side, "
            "see `tenet data leakage`"
        )


def _same_pictures(train: Dataset, test: Dataset, near: bool) -> list[tuple[int, int]]:
    pairs = set(_same_files(train, test))
    if near:
        pairs |= set(_same_looks(train, test))
    return sorted(pairs)


def _same_files(train: Dataset, test: Dataset) -> list[tuple[int, int]]:
    """Rows of one file, or of two files of the same bytes. Only files of equal length are read."""
    by_length: dict[int, list[int]] = {}
    for row, record in enumerate(train.records):
        by_length.setdefault(_length(record.path), []).append(row)
    digests: dict[Path, bytes] = {}
    pairs = []
    for b, record in enumerate(test.records):
        length = _length(record.path)
        for a in by_length.get(length, []) if length > 0 else []:
            if _digest(train.records[a].path, digests) == _digest(record.path, digests):
                pairs.append((a, b))
    return pairs


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _digest(path: Path, known: dict[Path, bytes]) -> bytes:
    if path not in known:
        known[path] = hashlib.blake2b(path.read_bytes(), digest_size=16).digest()
    return known[path]


def _same_looks(train: Dataset, test: Dataset) -> list[tuple[int, int]]:
    """Rows whose 16 × 16 grey thumbnails are the same but for noise (correlation above 0.995)."""
    left, right = _thumbnails(train), _thumbnails(test)
    pairs = []
    for start in range(0, len(right), 512):
        alike = right[start : start + 512] @ left.T > 0.995
        pairs += [(int(a), int(b) + start) for b, a in np.argwhere(alike)]
    return pairs


def _thumbnails(dataset: Dataset) -> NDArray[np.float32]:
    """(n, 256) grey thumbnails of mean 0 and length 1."""
    rows = np.zeros((len(dataset), 256), np.float32)
    # Pillow decodes outside the interpreter's lock: threads keep the cores busy.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for row, values in enumerate(pool.map(_thumbnail, dataset.records)):
            rows[row] = values
    return rows


def _thumbnail(record: Record) -> NDArray[np.float32]:
    small = Image.fromarray(record.picture()).convert("L").resize((16, 16), Image.Resampling.BOX)
    values = np.asarray(small, np.float32).ravel()
    values = values - values.mean()
    return values / max(float(np.linalg.norm(values)), 1e-6)
