"""Supports: the pictures that show a class, and what the network makes of them.

Uneven numbers of shots are normal: the shots of all classes are one list, `rows` says which of them
make up a class, and a mask tells real shots from padding.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from tenet.errors import InputError
from tenet.ops.boxes import check_boxes
from tenet.structures import ClassFeatures


class Supports(NamedTuple):
    """Support crops for a batch of pictures.

    crops  M RGB tensors (3, H, W) with values in 0…255
    boxes  (M, 4) xyxy in pixels of its crop: the object, without context and padding
    rows   (E, K, Z) int64, or (1, K, Z) for the same classes in every picture: rows of `crops`, −1 for
           none
    """

    crops: list[Tensor]
    boxes: Tensor
    rows: Tensor

    def check(self) -> None:
        count = len(self.crops)
        check_boxes(self.boxes, "supports.boxes")
        if self.boxes.shape != (count, 4):
            raise InputError(
                f"supports.boxes: expected ({count}, 4), one for each crop; got {tuple(self.boxes.shape)}"
            )
        if self.rows.ndim != 3 or 0 in self.rows.shape or self.rows.is_floating_point():
            raise InputError(f"supports.rows: expected whole numbers (E, K, Z), got {tuple(self.rows.shape)}")
        if bool((self.rows >= count).any()) or bool((self.rows < -1).any()):
            raise InputError(
                f"supports.rows: expected rows from 0 to {count - 1}, or -1; got {self.rows.tolist()}"
            )
        if bool((self.rows < 0).all(-1).any()):
            raise InputError("supports.rows: expected at least one shot for every class; a class has none")
        for i, (crop, box) in enumerate(zip(self.crops, self.boxes.tolist(), strict=True)):
            x1, y1, x2, y2 = box
            if not (x1 < x2 and y1 < y2):
                raise InputError(f"supports.boxes: expected x1 < x2 and y1 < y2; crop {i} has an empty box")
            height, width = crop.shape[-2:]
            if not (x1 < width and y1 < height and x2 > 0 and y2 > 0):
                raise InputError(
                    f"supports.boxes: expected the object inside its crop of {width} x {height} px, "
                    f"but crop {i} has the box {box}"
                )


class SupportFeatures(NamedTuple):
    """Encoded supports; E is 1 where every picture has the same classes.

    psi_rpn (E, K, Z, d), psi (E, K, Z, d), phi (E, K, Z, 2d, S, S), raw (E, K, Z, c or 0)
    mask    (E, K, Z) bool, real shots
    closed_form (E, K, w) what the shots taught in their own pictures (`tenet.models.closed_form`), or None
    """

    psi_rpn: Tensor
    psi: Tensor
    phi: Tensor
    raw: Tensor
    mask: Tensor
    closed_form: Tensor | None = None

    def check(self, pictures: int, d: int, lengths: tuple[int, ...]) -> None:
        """Refuse features of another number of pictures, or of another model."""
        if len(self.mask) not in (1, pictures):
            raise InputError(
                f"supports: expected classes for {pictures} pictures, or 1 for all; got {len(self.mask)}"
            )
        if self.psi.shape[-1] != d or self.phi.shape[-3] != 2 * d:
            raise InputError(
                f"classes: expected features of d = {d} channels, got {self.psi.shape[-1]}; "
                "they were made by another model, register the class anew"
            )
        allowed = [(self.mask.shape[1], size) for size in lengths]
        if self.closed_form is not None and tuple(self.closed_form.shape[1:]) not in allowed:
            raise InputError(
                f"classes: expected closed-form weights of shape {' or '.join(map(str, allowed))} "
                f"for each picture, got {tuple(self.closed_form.shape[1:])}; register the class anew"
            )

    def to_class(self, k: int) -> ClassFeatures:
        """Class k of the first picture as numpy, without its padding."""
        real = self.mask[0, k]
        psi_rpn, psi, phi, raw = (
            x[0, k][real].detach().cpu().numpy().astype(np.float32)
            for x in (self.psi_rpn, self.psi, self.phi, self.raw)
        )
        if self.closed_form is None:
            return ClassFeatures(psi_rpn, psi, phi, raw)
        learned = self.closed_form[0, k].detach().cpu().numpy().astype(np.float32)
        return ClassFeatures(psi_rpn, psi, phi, raw, learned)


def stack_classes(classes: list[ClassFeatures]) -> SupportFeatures:
    """Classes of a bank, with uneven shots, as one batch of K classes for any number of pictures."""
    if not classes:
        raise InputError("expected at least one class to look for, got none; register one first")
    shapes = {(c.psi_rpn.shape[1:], c.psi.shape[1:], c.phi.shape[1:], c.raw.shape[1:]) for c in classes}
    if len(shapes) != 1:
        raise InputError(f"classes: expected features of one model, got {len(shapes)} different shapes")
    shots = max(len(c) for c in classes)
    fields = {}
    for name in ("psi_rpn", "psi", "phi", "raw"):
        arrays = [getattr(c, name) for c in classes]
        padded = np.zeros((1, len(classes), shots, *arrays[0].shape[1:]), np.float32)
        for k, array in enumerate(arrays):
            padded[0, k, : len(array)] = array
        fields[name] = torch.from_numpy(padded)
    mask = torch.tensor([[[z < len(c) for z in range(shots)] for c in classes]])
    return SupportFeatures(**fields, mask=mask, closed_form=_stack_closed_forms(classes))


def _stack_closed_forms(classes: list[ClassFeatures]) -> Tensor | None:
    """Closed-form weights (1, K, w); what a class lacks is zero, which adds nothing."""
    known = [c.closed_form for c in classes if c.closed_form is not None]
    if not known:
        return None
    rows = np.zeros((1, len(classes), max(len(each) for each in known)), np.float32)
    for row, each in zip(rows[0], classes, strict=True):
        if each.closed_form is not None:
            row[: len(each.closed_form)] = each.closed_form
    return torch.from_numpy(rows)


def masked_mean(x: Tensor, mask: Tensor) -> Tensor:
    """Mean over the shots that are real: (…, Z, c) and (…, Z) → (…, c)."""
    weight = mask.to(x.dtype).unsqueeze(-1)
    return (x * weight).sum(-2) / weight.sum(-2).clamp(min=1)


def most_alike(phi: Tensor, classes: SupportFeatures) -> Tensor:
    """The shot that is most alike each region (E, K', P, 2d, S, S), by the cosine of average C5 features:
    (E, K, P)."""
    own = F.normalize(phi.mean((-1, -2)), dim=-1)
    shots = F.normalize(classes.phi.mean((-1, -2)), dim=-1)
    cosine = (own @ shots.mT).masked_fill(~classes.mask.unsqueeze(-2), -torch.inf)
    return cosine.argmax(-1)
