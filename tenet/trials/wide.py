"""Test pictures put together: a wide view, in which things are smaller than the shots let expect."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tenet.data.dataset import Record
from tenet.errors import DataError
from tenet.structures import Target

GROUND = 114
"""Grey where a picture does not fill its place."""


def wide_views(records: Sequence[Record], across: int) -> list[Record]:
    """`across` × `across` pictures in each, in their order; those that fill no whole one are left out.
    Nothing is scaled: a thing keeps its pixels and takes up less of the picture."""
    each = across**2
    if len(records) < each:
        raise DataError(
            f"expected at least {each} test pictures to join {across} x {across}, got {len(records)}"
        )
    return [
        _joined(records[start : start + each], across) for start in range(0, len(records) - each + 1, each)
    ]


def _joined(records: Sequence[Record], across: int) -> Record:
    width, height = (max(getattr(record, side) for record in records) for side in ("width", "height"))
    sheet = np.full((across * height, across * width, 3), GROUND, np.uint8)
    targets = []
    for place, record in enumerate(records):
        x, y = place % across * width, place // across * height
        sheet[y : y + record.height, x : x + record.width] = record.picture()
        moved = record.target.boxes + np.array([x, y, x, y], np.float32)
        targets.append(replace(record.target, boxes=moved))
    names = ("boxes", "labels", "ignore", "crowd", "truncated")
    return replace(
        records[0],
        id="+".join(record.id for record in records),
        width=across * width,
        height=across * height,
        target=Target(*(np.concatenate([getattr(target, name) for target in targets]) for name in names)),
        box_ids=np.concatenate([record.box_ids for record in records]),
        pixels=sheet,
    )
