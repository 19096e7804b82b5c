"""One format to another. What the new format cannot hold is named, never lost in silence."""

from pathlib import Path

from tenet.data.dataset import Dataset, Scan, box_defects
from tenet.data.files import new_folder
from tenet.data.formats import FORMATS
from tenet.data.voc import CLASSES as VOC_CLASSES
from tenet.errors import InputError

_FLAG_NAMES = {
    "ignore": "ignored (difficult or crowd) boxes become ordinary ones",
    "crowd": "crowd boxes become difficult ones",
    "truncated": "truncated boxes lose that mark",
}


def convert(scan: Scan, layout: str, out: Path) -> tuple[Dataset, list[str]]:
    """Write the scanned set in another format to the new folder `out`.

    Returns the set and a line for everything that is not the same in the copy.
    """
    if layout not in FORMATS:
        raise InputError(f"format: expected one of {', '.join(FORMATS)}; got {layout!r}")
    dataset = Dataset.of(scan)
    notes = []
    clipped = sum(1 for defect in box_defects(scan) if defect.action == "set box")
    if clipped:
        notes.append(f"{clipped} boxes that were partly outside their pictures are clipped")
    for flag in FORMATS[layout].drops:
        if flag == "crowd" and "ignore" in FORMATS[layout].drops:
            continue
        count = sum(int(getattr(record.target, flag).sum()) for record in dataset.records)
        if count:
            notes.append(f"{layout} cannot hold it: {count} {_FLAG_NAMES[flag]}")
    used = _used(dataset)
    unused = [name for name in dataset.classes if name not in used]
    if layout == "voc" and unused and not set(dataset.classes) <= set(VOC_CLASSES):
        notes.append(f"voc keeps no list of classes: those without boxes are lost ({', '.join(unused[:5])})")
    new_folder(out)
    FORMATS[layout].write(dataset, out)
    return dataset, notes


def _used(dataset: Dataset) -> set[str]:
    return {dataset.classes[int(label)] for record in dataset.records for label in set(record.target.labels)}
