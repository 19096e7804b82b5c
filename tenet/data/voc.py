"""PASCAL VOC devkits, read and written.

    VOC2007/Annotations/000005.xml      one file for each picture
    VOC2007/ImageSets/Main/trainval.txt the picture ids of a set, one on each line
    VOC2007/JPEGImages/000005.jpg

A folder that holds such folders (`VOCdevkit/VOC2007`, `VOCdevkit/VOC2012`) is read as one set, with ids
`2007/000005`. VOC counts pixels from 1 and includes the last one: `xmin, ymin, xmax, ymax` there is
(xmin − 1, ymin − 1, xmax, ymax) here. `difficult` objects are ignored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree  # only to build; files are parsed by defusedxml

import numpy as np
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from tenet.data.dataset import Dataset, Defect, Entry, Record, Scan
from tenet.data.files import inside, write_text
from tenet.data.images import SUFFIXES, picture_size
from tenet.errors import DataError

CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train"),
    "tvmonitor",
)
"""The twenty classes, in the devkit's order."""

MAX_XML_BYTES = 16_000_000
_FLAGS = ("difficult", "truncated")


def is_voc(folder: Path) -> bool:
    """Whether a folder is a devkit year or holds some."""
    return bool(years(folder))


def years(folder: Path) -> list[Path]:
    """The devkit years in a folder: itself, or its sub-folders that hold `Annotations`."""
    if (folder / "Annotations").is_dir():
        return [folder]
    return sorted(year.parent for year in folder.glob("*/Annotations") if year.is_dir())


def year_name(year: Path) -> str:
    """`2007` of `VOC2007`."""
    return year.name.removeprefix("VOC") or year.name


def scan_voc(folder: Path, images: Path | None = None, image_set: str | None = None) -> Scan:
    """Everything that a devkit says, each defect named.

    images     where the pictures are, if not in JPEGImages
    image_set  a file of ImageSets/Main such as `trainval`; all annotation files by default
    """
    found = years(folder)
    if not found:
        raise DataError(f"{folder}: expected a VOC devkit, with a folder Annotations of XML; found none")
    defects: list[Defect] = []
    parsed: list[tuple[Entry, list[str]]] = []
    for year in found:
        prefix = "" if len(found) == 1 else f"{year_name(year)}/"
        for name in _ids(year, image_set, defects):
            found_entry = _scan_file(year, name, prefix, images, len(parsed), defects)
            if found_entry is not None:
                parsed.append(found_entry)
    classes = _class_list(names for _, names in parsed)
    entries = tuple(_labelled(entry, names, classes) for entry, names in parsed)
    for row, (entry, names) in enumerate(parsed):
        for box, name in enumerate(names):
            if not name:
                where = f"{entry.where}, object {box}"
                defects.append(Defect("unknown-class", where, "expected a name", "drop box", row, box))
    return Scan("voc", folder, classes, entries, tuple(defects), box_word="object")


def read_voc(folder: Path, images: Path | None = None, image_set: str | None = None) -> Dataset:
    """The set of a devkit, or of one image set of it."""
    name = f"{folder.name}_{image_set}" if image_set else folder.name
    return Dataset.of(scan_voc(folder, images, image_set), name)


def parse_xml(path: Path) -> ElementTree.Element:
    """The root of an annotation file; entities, which can fill a memory or read files, are refused."""
    try:
        if path.stat().st_size > MAX_XML_BYTES:
            raise DataError(f"{path}: expected an annotation of at most {MAX_XML_BYTES} bytes, got more")
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: expected VOC XML, but it cannot be read ({error})") from error
    return parse_xml_bytes(content, str(path))


def parse_xml_bytes(content: bytes, name: str) -> ElementTree.Element:
    """`parse_xml` of a file's content; `name` is what an error calls it."""
    try:
        root = fromstring(content, forbid_dtd=True)
    except (ParseError, DefusedXmlException, ValueError) as error:
        raise DataError(f"{name}: expected VOC XML, but it cannot be read ({error})") from error
    return root


def _ids(year: Path, image_set: str | None, defects: list[Defect]) -> list[str]:
    if image_set is None:
        return sorted(file.stem for file in (year / "Annotations").glob("*.xml"))
    path = inside(year / "ImageSets" / "Main", f"{image_set}.txt")
    if path is None or not path.is_file():
        known = sorted(file.stem for file in (year / "ImageSets" / "Main").glob("*.txt"))
        raise DataError(f"{year}: expected an image set among {', '.join(known) or 'none'}; got {image_set}")
    names: dict[str, None] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        # Class lists such as bird_train.txt have a second column: 1 shown, -1 not shown, 0 difficult.
        words = line.split()
        if not words or (len(words) > 1 and words[1] == "-1"):
            continue
        if words[0] in names:
            defects.append(Defect("duplicate-id", f"{path}, line {number}", f"{words[0]} is listed twice"))
        names[words[0]] = None
    return list(names)


def _scan_file(
    year: Path, name: str, prefix: str, images: Path | None, row: int, defects: list[Defect]
) -> tuple[Entry, list[str]] | None:
    path = inside(year / "Annotations", f"{name}.xml")
    if path is None:
        detail = f"expected a name inside Annotations, got {name!r}"
        defects.append(Defect("unsafe-path", str(year), detail))
        return None
    try:
        root = parse_xml(path)
    except DataError as error:
        # The message begins with the file's name, which `where` says already.
        detail = str(error).removeprefix(f"{path}: ")
        defects.append(Defect("unreadable-file", str(path), detail, "drop picture"))
        return None
    objects = root.findall("object")
    boxes = [object_box(item) for item in objects]
    names = [(item.findtext("name") or "").strip() for item in objects]
    flags = {
        flag: np.array([(item.findtext(flag) or "0").strip() == "1" for item in objects], np.bool_)
        for flag in _FLAGS
    }
    picture = _picture(root, year, name, images, path, row, defects)
    width, height = _size(root, picture)
    count = np.arange(len(boxes), dtype=np.int64)
    entry = Entry(
        id=f"{prefix}{name}",
        file_name=f"{prefix}{picture.name}",
        path=picture,
        width=width,
        height=height,
        boxes=np.array(boxes, np.float64).reshape(-1, 4),
        labels=count,
        difficult=flags["difficult"],
        crowd=np.zeros(len(boxes), np.bool_),
        truncated=flags["truncated"],
        keys=count,
        ids=count,
        where=str(path),
    )
    return entry, names


def object_box(item: ElementTree.Element) -> tuple[float, float, float, float]:
    """xyxy edges, counted from 0, of an object's 1-based inclusive `bndbox`."""
    try:
        sides = ("xmin", "ymin", "xmax", "ymax")
        x1, y1, x2, y2 = (float(item.findtext(f"bndbox/{side}") or "nan") for side in sides)
    except ValueError:
        x1 = y1 = x2 = y2 = float("nan")
    return x1 - 1, y1 - 1, x2, y2


def _picture(
    root: ElementTree.Element,
    year: Path,
    name: str,
    images: Path | None,
    path: Path,
    row: int,
    defects: list[Defect],
) -> Path:
    """The picture of an annotation: as its `filename` says, else the annotation's own name."""
    folder = images or year / "JPEGImages"
    said = (root.findtext("filename") or "").strip()
    named = inside(folder, said) if said else None
    if said and named is None:
        detail = f"expected a filename inside {folder}, got {said!r}"
        defects.append(Defect("unsafe-path", str(path), detail, "drop picture", row))
    # The annotation's own name wins: tools that rename sets forget the element inside the file.
    for suffix in SUFFIXES:
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    return named if named is not None else folder / f"{name}.jpg"


def _size(root: ElementTree.Element, picture: Path) -> tuple[int, int]:
    try:
        width, height = (int(float(root.findtext(f"size/{side}") or 0)) for side in ("width", "height"))
        if width > 0 and height > 0:
            return width, height
    except (ValueError, OverflowError):
        pass
    try:
        return picture_size(picture)
    except DataError:
        return 0, 0  # the check of the picture itself names the fault


def _class_list(lists: Iterable[list[str]]) -> tuple[str, ...]:
    """The devkit's twenty in its order where all are of them, else the names in alphabetical order."""
    names = {name for row in lists for name in row if name}
    return CLASSES if names <= set(CLASSES) else tuple(sorted(names))


def _labelled(entry: Entry, names: Sequence[str], classes: tuple[str, ...]) -> Entry:
    rows = {name: row for row, name in enumerate(classes)}
    labels = np.array([rows.get(name, -1) for name in names], np.int64)
    return replace(entry, labels=labels)


def write_voc(dataset: Dataset, folder: Path, image_set: str = "trainval") -> None:
    """Write a devkit year: Annotations, ImageSets/Main/<image_set>.txt and JPEGImages. Boxes that do not
    lie on whole pixels keep their fraction, as some of VOC's own files do."""
    from tenet.data.coco import place_pictures

    stems = _stems(dataset)
    renamed = Dataset(
        dataset.name,
        dataset.classes,
        tuple(
            replace(record, file_name=f"{stems[record.id]}{_suffix(record.file_name)}")
            for record in dataset.records
        ),
    )
    file_names = place_pictures(renamed, folder / "JPEGImages")
    for record in renamed.records:
        xml = xml_text(annotation(renamed, record, file_names[record.id]))
        write_text(folder / "Annotations" / f"{stems[record.id]}.xml", xml)
    lines = "".join(f"{stems[record.id]}\n" for record in renamed.records)
    write_text(folder / "ImageSets" / "Main" / f"{image_set}.txt", lines)


def _suffix(file_name: str) -> str:
    return Path(file_name).suffix or ".png"


def _stems(dataset: Dataset) -> dict[str, str]:
    """A file name without suffix for each picture: its own where no two share it, else its id."""
    own = {record.id: Path(record.file_name).stem for record in dataset.records}
    if len(set(own.values())) == len(own):
        return own
    return {record.id: record.id.replace("/", "_") for record in dataset.records}


def annotation(dataset: Dataset, record: Record, file_name: str) -> ElementTree.Element:
    """VOC's `annotation` of one picture of a set, an `object` for each box in its order."""
    root = ElementTree.Element("annotation")
    ElementTree.SubElement(root, "folder").text = dataset.name
    ElementTree.SubElement(root, "filename").text = file_name
    size = ElementTree.SubElement(root, "size")
    for side, value in (("width", record.width), ("height", record.height), ("depth", 3)):
        ElementTree.SubElement(size, side).text = str(value)
    target = record.target
    for row in range(len(target)):
        item = ElementTree.SubElement(root, "object")
        ElementTree.SubElement(item, "name").text = dataset.classes[int(target.labels[row])]
        ElementTree.SubElement(item, "truncated").text = str(int(target.truncated[row]))
        ElementTree.SubElement(item, "difficult").text = str(int(target.ignore[row]))
        box = ElementTree.SubElement(item, "bndbox")
        x1, y1, x2, y2 = (float(value) for value in target.boxes[row])
        for side, edge in (("xmin", x1 + 1), ("ymin", y1 + 1), ("xmax", x2), ("ymax", y2)):
            ElementTree.SubElement(box, side).text = str(int(edge)) if edge % 1 == 0 else f"{edge:.4f}"
    return root


def xml_text(root: ElementTree.Element) -> str:
    """An annotation as the text of its file."""
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
