"""A repaired copy of a set, which loses nothing that it does not name.

The annotation files themselves are edited, so fields that this house does not know stay. What a repair
does to each defect is its `action`; the list of what was done is returned.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from tenet.data.coco import load_document
from tenet.data.dataset import Defect, Scan, box_defects
from tenet.data.files import inside, new_folder, place_picture, write_bytes, write_json, write_text
from tenet.data.voc import parse_xml, years
from tenet.errors import DataError

Box = tuple[float, ...]


@dataclass
class _Plan:
    """What happens to which row of the scan. Boxes are xyxy in pixels of the picture."""

    pictures: set[int] = field(default_factory=set)
    boxes: set[tuple[int, int]] = field(default_factory=set)
    moved: dict[tuple[int, int], Box] = field(default_factory=dict)
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)
    loose: list[Defect] = field(default_factory=list)
    done: list[str] = field(default_factory=list)


def repair(scan: Scan, defects: Iterable[Defect], out: Path) -> list[str]:
    """Write a copy of the set at `scan.source` to the new folder `out`, without its defects.

    Returns a line for everything that was changed or left out.
    """
    plan = _plan(scan, list(defects))
    new_folder(out)
    _WRITERS[scan.layout](scan, plan, out)
    return plan.done


def _plan(scan: Scan, defects: list[Defect]) -> _Plan:
    plan = _Plan()
    scaled = _set_sizes(scan, defects, plan)
    own = [defect for defect in defects if defect.kind not in ("outside-box", "empty-box", "not-a-box")]
    # Boxes are judged again: in the right frame some are no longer outside.
    for defect in [*own, *box_defects(scaled)]:
        if defect.action in ("scale", "set size"):
            continue
        if defect.action == "drop picture" and defect.image >= 0:
            if defect.image not in plan.pictures:
                boxes = len(scan.entries[defect.image])
                plan.done.append(f"left out with its {boxes} boxes: {defect}")
            plan.pictures.add(defect.image)
        elif defect.action == "drop box" and defect.image >= 0:
            plan.boxes.add((defect.image, defect.box))
            plan.done.append(f"left out: {defect}")
        elif defect.action == "set box":
            plan.moved[defect.image, defect.box] = defect.value
            plan.done.append(f"clipped to {[round(v, 2) for v in defect.value]}: {defect}")
        else:
            plan.loose.append(defect)
    return plan


def _set_sizes(scan: Scan, defects: list[Defect], plan: _Plan) -> Scan:
    """The scan with the pictures' own sizes. Where only the scale differs the boxes are scaled along:
    they were drawn in the annotated frame."""
    entries = list(scan.entries)
    for defect in defects:
        if defect.action not in ("scale", "set size"):
            continue
        entry = entries[defect.image]
        width, height = (int(side) for side in defect.value)
        plan.sizes[defect.image] = (width, height)
        boxes = entry.boxes
        if defect.action == "scale":
            boxes = boxes * np.array([width / entry.width, height / entry.height] * 2)
            for box, moved in enumerate(boxes):
                plan.moved[defect.image, box] = tuple(float(value) for value in moved)
        entries[defect.image] = replace(entry, width=width, height=height, boxes=boxes)
        what = "size set and boxes scaled" if defect.action == "scale" else "size set"
        plan.done.append(f"{what}: {defect}")
    return replace(scan, entries=tuple(entries))


def _kept_pictures(scan: Scan, plan: _Plan, folder: Path) -> None:
    for row, entry in enumerate(scan.entries):
        target = inside(folder, entry.file_name)
        if row not in plan.pictures and entry.path is not None and target is not None:
            place_picture(entry.path, target)


def _write_coco(scan: Scan, plan: _Plan, out: Path) -> None:
    document = json.loads(json.dumps(load_document(scan.source)))
    images, annotations = document["images"], document["annotations"]
    row_of_id = {entry.id: row for row, entry in enumerate(scan.entries)}
    dropped_boxes, dropped_images = set(), set()
    for row, entry in enumerate(scan.entries):
        for box, key in enumerate(entry.keys.tolist()):
            if row in plan.pictures or (row, box) in plan.boxes:
                dropped_boxes.add(key)
            elif (row, box) in plan.moved:
                x1, y1, x2, y2 = plan.moved[row, box]
                bbox = [round(value, 4) for value in (x1, y1, x2 - x1, y2 - y1)]
                annotations[key]["bbox"] = bbox
                annotations[key]["area"] = round(bbox[2] * bbox[3], 4)
    seen: set[str] = set()
    for key, image in enumerate(images):
        identity = str(image.get("id")) if isinstance(image, dict) else ""
        row = row_of_id.get(identity, -1)
        if row in plan.pictures and identity not in seen:
            dropped_images.add(key)
        elif row in plan.sizes:
            image["width"], image["height"] = plan.sizes[row]
        seen.add(identity)
    _loose_coco(document, plan, dropped_boxes, dropped_images)
    document["images"] = [image for key, image in enumerate(images) if key not in dropped_images]
    document["annotations"] = [a for key, a in enumerate(annotations) if key not in dropped_boxes]
    folder = out / "annotations" if scan.layout == "fsod" else out
    write_json(folder / scan.source.name, document)
    _kept_pictures(scan, plan, out / "images")


def _loose_coco(document: dict[str, Any], plan: _Plan, boxes: set[int], images: set[int]) -> None:
    """Entries that belong to no picture: left out, or given a number of their own."""
    for defect in plan.loose:
        in_images = ", image " in defect.where
        rows = document["images" if in_images else "annotations"]
        if defect.action == "renumber":
            numbers = [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), int)]
            new = max(numbers, default=0) + 1
            plan.done.append(f"id {rows[defect.key]['id']} became {new}: {defect}")
            rows[defect.key]["id"] = new
        elif defect.action in ("drop picture", "drop box"):
            (images if in_images else boxes).add(defect.key)
            plan.done.append(f"left out: {defect}")
        else:
            _drop_category(document, plan, defect)


def _drop_category(document: dict[str, Any], plan: _Plan, defect: Defect) -> None:
    """A category that is not one, or whose id another has: the first stays."""
    kept: list[Any] = []
    ids: set[object] = set()
    for category in document["categories"]:
        sound = isinstance(category, dict) and isinstance(category.get("name"), str)
        identity = category.get("id") if isinstance(category, dict) else None
        if sound and isinstance(identity, (int, str)) and identity not in ids:
            kept.append(category)
            ids.add(identity)
    document["categories"] = kept
    plan.done.append(f"left out: {defect}")


def _write_voc(scan: Scan, plan: _Plan, out: Path) -> None:
    found = years(scan.source)
    dropped: set[Path] = set()
    for defect in plan.loose:
        plan.done.append(f"left out: {defect}")
        if defect.action == "drop picture":
            dropped.add(Path(defect.where))
    for row, entry in enumerate(scan.entries):
        source = Path(entry.where)
        year = source.parent.parent
        folder = out if len(found) == 1 else out / year.name
        if row in plan.pictures or entry.path is None:
            dropped.add(source)
            continue
        root = parse_xml(source)
        _edit_voc(root, row, entry.keys.tolist(), plan)
        text = ElementTree.tostring(root, encoding="unicode")
        write_text(folder / "Annotations" / source.name, text + "\n")
        place_picture(entry.path, folder / "JPEGImages" / entry.path.name)
    for year in found:
        folder = out if len(found) == 1 else out / year.name
        gone = {path.stem for path in dropped if path.parent.parent == year}
        _copy_image_sets(year, folder, gone)


def _edit_voc(root: ElementTree.Element, row: int, keys: list[int], plan: _Plan) -> None:
    objects = root.findall("object")
    for box, key in enumerate(keys):
        if (row, box) in plan.boxes:
            root.remove(objects[key])
        elif (row, box) in plan.moved:
            x1, y1, x2, y2 = plan.moved[row, box]
            for side, edge in (("xmin", x1 + 1), ("ymin", y1 + 1), ("xmax", x2), ("ymax", y2)):
                element = objects[key].find(f"bndbox/{side}")
                if element is not None:
                    element.text = str(int(edge)) if edge % 1 == 0 else f"{edge:.4f}"
    if row in plan.sizes:
        for side, value in zip(("width", "height"), plan.sizes[row], strict=True):
            element = root.find(f"size/{side}")
            if element is not None:
                element.text = str(value)


def _copy_image_sets(year: Path, folder: Path, gone: set[str]) -> None:
    for file in sorted((year / "ImageSets").glob("*/*.txt")):
        kept: dict[str, None] = {}
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.split() and line.split()[0] not in gone:
                kept[line] = None
        write_text(folder / file.relative_to(year), "".join(f"{line}\n" for line in kept))


def _write_yolo(scan: Scan, plan: _Plan, out: Path) -> None:
    for row, entry in enumerate(scan.entries):
        if row in plan.pictures or entry.path is None:
            continue
        kept = []
        source = Path(entry.where)
        lines = source.read_text(encoding="utf-8").splitlines() if source.is_file() else []
        for box, key in enumerate(entry.keys.tolist()):
            if (row, box) in plan.boxes:
                continue
            line = lines[key - 1]
            if (row, box) in plan.moved:
                x1, y1, x2, y2 = plan.moved[row, box]
                shares = ((x1 + x2) / 2 / entry.width, (y1 + y2) / 2 / entry.height)
                sides = ((x2 - x1) / entry.width, (y2 - y1) / entry.height)
                line = " ".join([line.split()[0], *(f"{value:.8f}" for value in (*shares, *sides))])
            kept.append(line)
        label = (out / "labels" / entry.file_name).with_suffix(".txt")
        if source.is_file():
            write_text(label, "".join(f"{line}\n" for line in kept))
    for defect in plan.loose:
        plan.done.append(f"left out: {defect}")
    _kept_pictures(scan, plan, out / "images")
    names = dict(enumerate(scan.classes))
    write_text(out / "data.yaml", "names: " + json.dumps({str(k): v for k, v in names.items()}) + "\n")
    for file in sorted(scan.source.glob("*.y*ml")):
        write_bytes(out / "data.yaml" if file.name == "data.yaml" else out / file.name, file.read_bytes())


_WRITERS = {"coco": _write_coco, "fsod": _write_coco, "voc": _write_voc, "yolo": _write_yolo}


def repaired_path(scan: Scan, out: Path) -> Path:
    """Where the repaired set is to be read from."""
    if scan.layout == "coco":
        return out / scan.source.name
    if scan.layout == "fsod":
        return out / "annotations" / scan.source.name
    if not out.is_dir():
        raise DataError(f"{out}: expected the repaired set there, found none")
    return out
