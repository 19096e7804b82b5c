"""COCO JSON, read and written.

`bbox` is [x, y, width, height] in pixels with (0, 0) the top left corner, so xyxy is (x, y, x + width,
y + height). `iscrowd` boxes are ignored. `difficult` and `truncated`, which VOC sets in this format
carry, are read and written as well.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tenet.data.dataset import Dataset, Defect, Entry, Record, Scan
from tenet.data.files import inside, read_json, write_bytes, write_json
from tenet.data.files import place_picture as place
from tenet.data.images import encode_png, picture_size
from tenet.errors import DataError

_LISTS = ("images", "annotations", "categories")


def load_document(path: Path) -> dict[str, Any]:
    """The JSON object of a COCO file, with its three lists there."""
    document: dict[str, Any] = read_json(path, allow_nan=True)
    check_document(document, path)
    return document


def check_document(document: object, path: Path) -> None:
    """Refuse what is no COCO object with its three lists; `path` is what an error calls it."""
    if not isinstance(document, dict):
        raise DataError(f"{path}: expected a COCO object with images, annotations and categories, got a list")
    for name in _LISTS:
        if not isinstance(document.get(name), list):
            raise DataError(
                f"{path}: expected a COCO object with lists of images, annotations and categories; "
                f"{name} is missing or no list"
            )


def image_root(path: Path, document: dict[str, Any], images: Path | None = None) -> Path:
    """The folder that `file_name` is relative to: `images` if given, else the first of the usual
    places, beside the JSON file, that holds one of the first pictures."""
    if images is not None:
        if not images.is_dir():
            raise DataError(f"{images}: expected a folder with the pictures of {path}, found none")
        return images
    stem = path.stem.removeprefix("instances_")
    folder = path.parent
    places = [folder / "images", folder, folder.parent / "images", folder.parent / stem, folder.parent]
    names = [image.get("file_name") for image in document["images"][:20] if isinstance(image, dict)]
    for candidate in places:
        for name in names:
            picture = inside(candidate, name) if isinstance(name, str) else None
            if picture is not None and picture.is_file():
                return candidate
    return places[0] if places[0].is_dir() else folder


def scan_coco(path: Path, images: Path | None = None, layout: str = "coco") -> Scan:
    """Everything that a COCO file says, each defect named; no picture is opened."""
    document = load_document(path)
    return scan_document(document, path, image_root(path, document, images), layout)


def scan_document(document: dict[str, Any], path: Path, root: Path, layout: str = "coco") -> Scan:
    """`scan_coco` of a document that is in memory already."""
    defects: list[Defect] = []
    classes, row_of_category = _categories(document["categories"], path, defects)
    pictures = _images(document["images"], path, defects)
    by_image = _annotations(document["annotations"], path, {str(p["id"]) for _, p in pictures}, defects)
    entries = tuple(
        _entry(picture, key, row, by_image.get(str(picture["id"]), []), row_of_category, path, root, defects)
        for row, (key, picture) in enumerate(pictures)
    )
    return Scan(layout, path, classes, entries, tuple(defects))


def _categories(
    rows: list[Any], path: Path, defects: list[Defect]
) -> tuple[tuple[str, ...], dict[object, int]]:
    names: list[str] = []
    row_of: dict[object, int] = {}
    for key, category in enumerate(rows):
        where = f"{path}, category {key}"
        name = category.get("name") if isinstance(category, dict) else None
        identity = category.get("id") if isinstance(category, dict) else None
        if not isinstance(name, str) or not isinstance(identity, (int, str)):
            defects.append(Defect("malformed", where, f"expected an id and a name, got {category!r:.80}"))
        elif identity in row_of:
            defects.append(Defect("duplicate-id", where, f"category id {identity} is used twice"))
        elif name in names:
            # Two ids for one name are one class: both lead to its row.
            row_of[identity] = names.index(name)
        else:
            row_of[identity] = len(names)
            names.append(name)
    return tuple(names), row_of


def _images(rows: list[Any], path: Path, defects: list[Defect]) -> list[tuple[int, dict[str, Any]]]:
    """(place in the file, image) of the images that can be used."""
    found: list[tuple[int, dict[str, Any]]] = []
    seen: dict[str, dict[str, Any]] = {}
    for key, image in enumerate(rows):
        where = f"{path}, image {key}"
        if (
            not isinstance(image, dict)
            or not isinstance(image.get("id"), (int, str))
            or not isinstance(image.get("file_name"), str)
        ):
            detail = f"expected an id and a file_name, got {image!r:.80}"
            defects.append(Defect("malformed", where, detail, "drop picture", key=key))
            continue
        first = seen.get(str(image["id"]))
        if first is None:
            seen[str(image["id"])] = image
            found.append((key, image))
        elif first["file_name"] == image["file_name"]:
            detail = f"image id {image['id']} ({image['file_name']}) is listed twice"
            defects.append(Defect("duplicate-id", where, detail, "drop picture", key=key))
        else:
            detail = (
                f"image id {image['id']} is that of {first['file_name']} and of {image['file_name']}; "
                "its boxes are taken to be the first one's"
            )
            defects.append(Defect("duplicate-id", where, detail, "renumber", key=key))
    return found


def _annotations(
    rows: list[Any], path: Path, known: set[str], defects: list[Defect]
) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """Annotations of each image id, with their places in the file."""
    by_image: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    seen: set[object] = set()
    for key, annotation in enumerate(rows):
        where = f"{path}, annotation {key}"
        if (
            not isinstance(annotation, dict)
            or "image_id" not in annotation
            or "category_id" not in annotation
        ):
            detail = f"expected image_id, category_id and bbox, got {annotation!r:.80}"
            defects.append(Defect("malformed", where, detail, "drop box", key=key))
            continue
        identity = annotation.get("id")
        if identity is not None and not isinstance(identity, (int, str)):
            identity = repr(identity)
        if identity is not None and identity in seen:
            detail = f"annotation id {identity} is used twice"
            defects.append(Defect("duplicate-id", where, detail, "renumber", key=key))
        seen.add(identity)
        image_id = str(annotation["image_id"])
        if image_id not in known:
            detail = f"image_id {image_id} is not among the images"
            defects.append(Defect("unknown-image", where, detail, "drop box", key=key))
            continue
        by_image.setdefault(image_id, []).append((key, annotation))
    return by_image


def _entry(
    picture: dict[str, Any],
    key: int,
    row: int,
    annotations: list[tuple[int, dict[str, Any]]],
    row_of_category: dict[object, int],
    path: Path,
    root: Path,
    defects: list[Defect],
) -> Entry:
    name = picture["file_name"]
    where = f"{path}, image {picture['id']} ({name})"
    file = inside(root, name)
    if file is None:
        detail = f"expected a path inside {root}, got {name!r}"
        defects.append(Defect("unsafe-path", where, detail, "drop picture", row, key=key))
    width, height = _size(picture, file)
    labels = []
    for box, (place_in_file, annotation) in enumerate(annotations):
        category = annotation["category_id"]
        label = row_of_category.get(category, -1) if isinstance(category, (int, str)) else -1
        labels.append(label)
        if label < 0:
            detail = f"category_id {category!r:.40} is not among the categories"
            place_name = f"{where}, annotation {place_in_file}"
            defects.append(Defect("unknown-class", place_name, detail, "drop box", row, box))
    flags = {
        flag: np.array([bool(annotation.get(flag)) for _, annotation in annotations], np.bool_)
        for flag in ("difficult", "iscrowd", "truncated")
    }
    return Entry(
        id=str(picture["id"]),
        file_name=name,
        path=file,
        width=width,
        height=height,
        boxes=np.array([_xyxy(a.get("bbox")) for _, a in annotations], np.float64).reshape(-1, 4),
        labels=np.array(labels, np.int64),
        difficult=flags["difficult"],
        crowd=flags["iscrowd"],
        truncated=flags["truncated"],
        keys=np.array([place_in_file for place_in_file, _ in annotations], np.int64),
        ids=np.array([_whole(a.get("id"), k) for k, a in annotations], np.int64),
        where=where,
    )


def _size(picture: dict[str, Any], file: Path | None) -> tuple[int, int]:
    """(W, H) as annotated; from the picture itself where the file does not say."""
    width, height = picture.get("width"), picture.get("height")
    if isinstance(width, int) and isinstance(height, int) and width > 0 and height > 0:
        return width, height
    try:
        return picture_size(file) if file is not None else (0, 0)
    except DataError:
        return 0, 0  # the check of the picture itself names the fault


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and abs(value) < 2**62 else otherwise


def _xyxy(bbox: object) -> tuple[float, float, float, float]:
    """xyxy of COCO's [x, y, width, height]; NaN where it is not four numbers."""
    if isinstance(bbox, (list, tuple)) and len(bbox) == 4 and all(isinstance(v, (int, float)) for v in bbox):
        try:
            x, y, width, height = (float(value) for value in bbox)
            return x, y, x + width, y + height
        except OverflowError:
            pass
    nan = float("nan")
    return nan, nan, nan, nan


def read_coco(path: Path, images: Path | None = None) -> Dataset:
    """The set of a COCO file. A defect other than a box partly outside its picture is a DataError."""
    return Dataset.of(scan_coco(path, images))


def coco_document(dataset: Dataset, file_names: dict[str, str] | None = None) -> dict[str, Any]:
    """A COCO object of a set; `file_names` gives another name to a picture by its id."""
    names = file_names or {}
    # Ids stay where COCO can hold them: whole numbers without leading zeros.
    numbered = all(record.id.isdecimal() and str(int(record.id)) == record.id for record in dataset.records)
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    box_ids = np.concatenate([record.box_ids for record in dataset.records] or [np.zeros(0, np.int64)])
    keep_ids = len(np.unique(box_ids)) == len(box_ids) and (box_ids > 0).all()
    for row, record in enumerate(dataset.records):
        identity = int(record.id) if numbered else row + 1
        name = names.get(record.id, record.file_name)
        images.append({"id": identity, "file_name": name, "width": record.width, "height": record.height})
        for box, annotation in enumerate(_coco_annotations(dataset, row)):
            number = int(record.box_ids[box]) if keep_ids else len(annotations) + 1
            annotations.append({"id": number, "image_id": identity, **annotation})
    categories = [{"id": row + 1, "name": name} for row, name in enumerate(dataset.classes)]
    info = {"description": f"{dataset.name}, written by tenet; boxes xywh in pixels of the upright picture"}
    return {"info": info, "images": images, "annotations": annotations, "categories": categories}


def _coco_annotations(dataset: Dataset, row: int) -> Iterator[dict[str, Any]]:
    target = dataset.records[row].target
    for box in range(len(target)):
        x1, y1, x2, y2 = (float(value) for value in target.boxes[box])
        bbox = [round(value, 4) for value in (x1, y1, x2 - x1, y2 - y1)]
        yield {
            "category_id": int(target.labels[box]) + 1,
            "bbox": bbox,
            "area": round(bbox[2] * bbox[3], 4),
            "iscrowd": int(target.crowd[box]),
            "difficult": int(target.ignore[box] and not target.crowd[box]),
            "truncated": int(target.truncated[box]),
        }


def write_coco(dataset: Dataset, path: Path, images: Path | None = None) -> None:
    """Write `path` and, under `images` (the folder `images` beside it by default), the pictures."""
    root = path.parent / "images" if images is None else images
    file_names = place_pictures(dataset, root)
    write_json(path, coco_document(dataset, file_names))


def write_stream(path: Path, name: str, classes: tuple[str, ...], records: Iterable[Record]) -> None:
    """Write a set whose pictures are made one by one, as PNG under `images` beside `path`, and then `path`:
    only one picture is in memory at a time."""
    kept = []
    for record in records:
        if record.pixels is not None:
            write_bytes(path.parent / "images" / record.file_name, encode_png(record.pixels))
        kept.append(replace(record, pixels=None))
    write_json(path, coco_document(Dataset(name, classes, tuple(kept))))


def place_pictures(dataset: Dataset, root: Path) -> dict[str, str]:
    """Put the pictures of a set under `root`; their names there, by id. Two that would share a name, as
    sets from several folders can, are told apart by their ids."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for record in dataset.records:
        name = record.file_name
        if name in taken or inside(root, name) is None:
            name = f"{record.id.replace('/', '_')}{Path(record.file_name).suffix}"
        taken.add(name)
        names[record.id] = name
        if record.pixels is not None:
            write_bytes(root / name, encode_png(record.pixels))
        else:
            place(record.path, root / name)
    return names
