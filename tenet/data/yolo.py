"""YOLO text folders, read and written.

    data.yaml                 `names:` a list, or a map from number to name
    images/train/a.jpg
    labels/train/a.txt        class x y width height, in shares of the picture, (x, y) the centre

`images` and `labels` have the same tree below them; a picture without a text file has no objects. Each
part may have a folder of its own instead: train/images, train/labels. Where there is no data.yaml,
`classes.txt` or `obj.names` gives the names, one on each line; a folder without either has those of the
data.yaml in the folder that it is in. A line with more than five numbers is a polygon
(class x1 y1 x2 y2 …), and its box is taken. The format knows no ignored, crowd or truncated boxes: writing
says how many flags it leaves out.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

from tenet.data.coco import place_pictures
from tenet.data.dataset import Dataset, Defect, Entry, Scan
from tenet.data.files import write_text
from tenet.data.images import SUFFIXES, picture_size
from tenet.errors import DataError

_NAME_FILES = ("classes.txt", "obj.names", "names.txt")


def is_yolo(folder: Path) -> bool:
    """Whether a folder has YOLO's labels or its data.yaml."""
    return (folder / "labels").is_dir() or any(folder.glob("*.yaml")) or any(folder.glob("*/labels"))


def class_names(folder: Path) -> tuple[str, ...]:
    """The class names of data.yaml, or of a file with one name on each line, or of the parent's data.yaml."""
    for path in sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        names = _yaml_names(path)
        if names:
            return names
    for file in _NAME_FILES:
        path = folder / file
        if path.is_file():
            lines = path.read_text(encoding="utf-8").splitlines()
            return tuple(line.strip() for line in lines if line.strip())
    above = Path(os.path.abspath(folder)).parent / "data.yaml"  # of `.` too, which has no parent
    names = _yaml_names(above) if above.is_file() else ()
    if names:
        return names
    raise DataError(
        f"{folder}: expected data.yaml with `names`, there or one folder above, or classes.txt with one name "
        "on each line; found neither"
    )


def _yaml_names(path: Path) -> tuple[str, ...]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: expected YAML, but it does not parse ({str(error).splitlines()[0]})"
        ) from error
    names = document.get("names") if isinstance(document, dict) else None
    if isinstance(names, list):
        return tuple(str(name) for name in names)
    if isinstance(names, dict) and set(names) == set(range(len(names))):
        return tuple(str(names[number]) for number in range(len(names)))
    if names is not None:
        raise DataError(
            f"{path}: expected `names` to be a list or a map from 0, 1, … to names, got {names!r:.80}"
        )
    return ()


def scan_yolo(folder: Path, images: Path | None = None, part: str | None = None) -> Scan:
    """Everything that a YOLO folder says, or one part of it, each defect named. Headers of the pictures are
    read, because boxes are in shares of their sizes."""
    classes = class_names(folder)
    defects: list[Defect] = []
    entries: list[Entry] = []
    seen: set[Path] = set()
    trees = _trees(folder, images) if part is None else [_part_tree(folder, images, part)]
    for tree, image_root, label_root in trees:
        pictures = sorted(path for path in image_root.rglob("*") if path.suffix.lower() in SUFFIXES)
        for path in pictures:
            relative = path.relative_to(image_root)
            label = label_root / relative.with_suffix(".txt")
            name = (Path(tree) / relative).as_posix()
            if label in seen:
                detail = f"expected one picture for {label.name}, got {name} as well"
                defects.append(Defect("duplicate-id", str(path), detail, "drop picture"))
                continue
            seen.add(label)
            entries.append(_entry(path, label, name, classes, len(entries), defects))
        for label in sorted(label_root.rglob("*.txt")):
            if label not in seen and label.name not in _NAME_FILES:
                row = len(entries)
                name = (Path(tree) / label.relative_to(label_root)).as_posix()
                entries.append(_entry(None, label, name, classes, row, defects))
                detail = f"expected a picture of this name under {image_root}, found none"
                defects.append(Defect("missing-picture", str(label), detail, "drop picture", row))
    return Scan("yolo", folder, classes, tuple(entries), tuple(defects), box_word="line")


def _trees(folder: Path, images: Path | None) -> list[tuple[str, Path, Path]]:
    """(part, pictures, labels) of the folder itself, or of each of its parts (`train/images`)."""
    if images is not None:
        return [("", images, folder / "labels")]
    if (folder / "labels").is_dir():
        return [("", folder / "images", folder / "labels")]
    parts = _part_folders(folder)
    if not parts:
        raise DataError(f"{folder}: expected folders images and labels, found none")
    return [(part.name, part / "images", part / "labels") for part in parts]


def _part_folders(folder: Path) -> list[Path]:
    """The folders that have labels of their own (`train/labels`)."""
    return sorted(path.parent for path in folder.glob("*/labels") if path.is_dir())


def _part_tree(folder: Path, images: Path | None, part: str) -> tuple[str, Path, Path]:
    """(part, pictures, labels) of one part: `images/train` and `labels/train`, or `train/images` and
    `train/labels`. Pictures are called as they are where the whole folder is read."""
    labels = folder / "labels"
    if labels.is_dir():
        pictures = images or folder / "images"
        below = [path for root in (pictures, labels) for path in root.glob("*") if path.is_dir()]
        tree = (part, pictures / part, labels / part)
    else:
        below = _part_folders(folder)
        tree = (part, images or folder / part / "images", folder / part / "labels")
    known = sorted({path.name for path in below})
    if part not in known:
        raise DataError(f"{folder}: expected a part among {', '.join(known) or 'none'}; got {part}")
    return tree


def _entry(
    path: Path | None, label: Path, name: str, classes: Sequence[str], row: int, defects: list[Defect]
) -> Entry:
    try:
        width, height = picture_size(path) if path is not None else (0, 0)
    except DataError:
        width, height = 0, 0  # the check of the picture itself names the fault
    boxes: list[tuple[float, float, float, float]] = []
    labels: list[int] = []
    keys: list[int] = []
    for key, line in _lines(label, row, defects):
        box, number = parse_line(line, width, height)
        known = 0 <= number < len(classes)
        where = f"{label}, line {key}"
        if box is None:
            detail = f"expected `class x y width height`, got {line[:60]!r}"
            defects.append(Defect("malformed", where, detail, "drop box", row, len(boxes)))
        elif not known:
            detail = f"expected a class from 0 to {len(classes) - 1}, got {number}"
            defects.append(Defect("unknown-class", where, detail, "drop box", row, len(boxes)))
        boxes.append(box or (0.0, 0.0, float(width or 1), float(height or 1)))
        labels.append(number if known else -1)
        keys.append(key)
    off = np.zeros(len(boxes), np.bool_)
    numbers = np.array(keys, np.int64)
    return Entry(
        id=Path(name).with_suffix("").as_posix(),
        file_name=name,
        path=path,
        width=width,
        height=height,
        boxes=np.array(boxes, np.float64).reshape(-1, 4),
        labels=np.array(labels, np.int64),
        difficult=off,
        crowd=off,
        truncated=off,
        keys=numbers,
        ids=numbers,
        where=str(label),
    )


def _lines(label: Path, row: int, defects: list[Defect]) -> list[tuple[int, str]]:
    """(number from 1, text) of the lines that say something."""
    if not label.is_file():
        return []
    try:
        text = label.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        detail = f"expected text in UTF-8, but it cannot be read ({error})"
        defects.append(Defect("unreadable-file", str(label), detail, "drop picture", row))
        return []
    return [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]


def parse_line(line: str, width: int, height: int) -> tuple[tuple[float, float, float, float] | None, int]:
    """(xyxy in pixels of the picture, class number) of a line; no box where it cannot be one."""
    try:
        values = [float(word) for word in line.split()]
        number = int(values[0])
        shares = np.array(values[1:], np.float64)
    except (ValueError, IndexError, OverflowError):
        return None, -1
    if len(shares) == 4:
        x, y, w, h = shares
        edges = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
    elif len(shares) >= 6 and len(shares) % 2 == 0:
        edges = (shares[::2].min(), shares[1::2].min(), shares[::2].max(), shares[1::2].max())
    else:
        return None, number
    x1, y1, x2, y2 = (float(edge) for edge in edges)
    return (x1 * width, y1 * height, x2 * width, y2 * height), number


def format_line(box: Sequence[float], label: int, width: int, height: int) -> str:
    """The line of a box, xyxy in pixels of a picture of that size."""
    x1, y1, x2, y2 = box
    x, y, w, h = (x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height
    return f"{label} {x:.8f} {y:.8f} {w:.8f} {h:.8f}"


def read_yolo(folder: Path, images: Path | None = None) -> Dataset:
    """The set of a YOLO folder."""
    return Dataset.of(scan_yolo(folder, images))


def write_yolo(dataset: Dataset, folder: Path) -> None:
    """Write data.yaml, images/ and labels/ under `folder`."""
    file_names = place_pictures(dataset, folder / "images")
    for record in dataset.records:
        lines = [
            format_line(box, int(label), record.width, record.height) + "\n"
            for box, label in zip(record.target.boxes.tolist(), record.target.labels, strict=True)
        ]
        label_file = (folder / "labels" / file_names[record.id]).with_suffix(".txt")
        write_text(label_file, "".join(lines))
    names = dict(enumerate(dataset.classes))
    document = {"path": ".", "train": "images", "val": "images", "names": names}
    write_text(folder / "data.yaml", yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
