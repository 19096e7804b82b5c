"""A bank as an annotated set: the pictures that its shots came with, each once, with these shots' boxes."""

from pathlib import Path

import numpy as np

from tenet.bank import ClassBank
from tenet.banks.stored_shots import Box
from tenet.data.dataset import Dataset, Record
from tenet.data.images import open_picture
from tenet.errors import InputError
from tenet.structures import Target

Known = list[tuple[int, Box]]
"""(row of the class, xyxy in pixels of the scene) of each shot in a scene."""


def dataset_of(bank: ClassBank, name: str) -> Dataset:
    """All shots that came with their pictures; bare crops have none to learn from, and are left out."""
    scenes: dict[bytes, Known] = {}
    for row, each in enumerate(bank.names):
        for shot in bank.shots(each):
            if shot.scene_box is not None:
                scenes.setdefault(shot.scene, []).append((row, shot.scene_box))
    if not scenes:
        raise InputError(
            f"{name}: expected shots with their pictures (IMAGE:x,y,w,h), got {bank.shot_count} bare crops; "
            "register some with their pictures"
        )
    records = (_record(number, scene, known) for number, (scene, known) in enumerate(scenes.items()))
    return Dataset(name, bank.names, tuple(records))


def _record(number: int, scene: bytes, known: Known) -> Record:
    picture = open_picture(scene, "stored scene")
    height, width = picture.shape[:2]
    boxes = np.array([box for _, box in known], np.float32).clip(0, (width, height, width, height))
    return Record(
        id=f"scene_{number}",
        path=Path(f"scene_{number}.jpg"),
        file_name=f"scene_{number}.jpg",
        width=width,
        height=height,
        target=Target.of(boxes, [row for row, _ in known]),
        box_ids=np.arange(len(known)),
        pixels=picture,
    )
