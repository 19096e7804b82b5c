"""What a class's shots teach in closed form, in their own pictures: one vector, in three parts.

    objectness  (q + 1,)     what counts as this thing           tenet.models.objectness
    box fit     (c + 1, 5)   how boxes sit on it                 tenet.models.box_fit
    in place    (R + 1, c)   how it looks among its surroundings tenet.models.rivals

A bank keeps the vector; a look takes it apart. A class that came as bare crops has none: zeros stand in its
place, which add nothing.
"""

from typing import NamedTuple

from torch import Tensor

from tenet.models.box_fit import OUTPUTS
from tenet.models.rivals import ROWS


class Parts(NamedTuple):
    """Of K classes: objectness (E or 1, K, q + 1), box fit (…, c + 1, 5), in place (…, R + 1, c); None for
    what the detector does not have or no class has learned."""

    objectness: Tensor | None = None
    box_fit: Tensor | None = None
    in_place: Tensor | None = None


class Layout(NamedTuple):
    """Lengths of the parts; 0 for one that the detector does not have."""

    objectness: int
    box_fit: int
    in_place: int

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths that a vector may have: an older one lacks the last parts."""
        return self[0], self[0] + self[1], sum(self)

    def take_apart(self, vectors: Tensor | None) -> Parts:
        """Vectors (E or 1, K, w) → their parts."""
        if vectors is None:
            return Parts()
        objectness, box_fit, in_place = (
            vectors[..., end - length : end] if length and vectors.shape[-1] >= end else None
            for length, end in zip(self, self.lengths, strict=True)
        )
        return Parts(
            objectness,
            None if box_fit is None else box_fit.unflatten(-1, (-1, OUTPUTS)),
            None if in_place is None else in_place.unflatten(-1, (ROWS + 1, -1)),
        )
