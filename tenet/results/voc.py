"""VOC XML: an annotation file with a `score` in each object."""

from collections.abc import Sequence
from xml.etree import ElementTree  # only to build; files are parsed by defusedxml

from tenet.data.voc import annotation, object_box, parse_xml_bytes, xml_text
from tenet.errors import DataError
from tenet.results.fields import number, share, side
from tenet.results.pictures import PictureResult, as_dataset, best_first


def to_voc(found: PictureResult) -> str:
    """The XML file of one picture."""
    dataset = as_dataset([found])
    root = annotation(dataset, dataset.records[0], found.file_name)
    for item, score in zip(root.findall("object"), found.detections.scores, strict=True):
        ElementTree.SubElement(item, "score").text = f"{float(score):.6f}"
    return xml_text(root)


def from_voc(text: str, classes: Sequence[str] | None = None, name: str = "VOC XML") -> PictureResult:
    """The detections of an XML file; an object without a score has score 1.

    classes  those that were asked for; without them, the names in the file in alphabetical order
    """
    root = parse_xml_bytes(text.encode("utf-8"), name)
    objects = root.findall("object")
    names = [(item.findtext("name") or "").strip() for item in objects]
    known = tuple(sorted(set(names))) if classes is None else tuple(classes)
    for row, said in enumerate(names):
        if not said or said not in known:
            raise DataError(f"{name}, object {row}: expected one of {', '.join(known)}; got {said!r}")
    width, height = (side(root.findtext(f"size/{way}"), name, way) for way in ("width", "height"))
    boxes = [_box(item, f"{name}, object {row}") for row, item in enumerate(objects)]
    scores = [
        share(item.findtext("score") or "1", f"{name}, object {row}", "score")
        for row, item in enumerate(objects)
    ]
    labels = [known.index(said) for said in names]
    found = best_first(boxes, scores, labels, [0] * len(boxes), known)
    return PictureResult((root.findtext("filename") or "").strip(), width, height, found)


def _box(item: ElementTree.Element, where: str) -> tuple[float, float, float, float]:
    """`object_box`, of which each edge must be there."""
    for edge in ("xmin", "ymin", "xmax", "ymax"):
        number(item.findtext(f"bndbox/{edge}"), where, edge)
    return object_box(item)
