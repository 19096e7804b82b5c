"""Two networks that look at the same picture, as one runtime.

Networks that learned the same things err differently: a box that both give is likelier right than one that
only one of them gives (`tenet.looks.merging.agree`). It costs the time of both. Each looks at a picture for
itself, with views and second looks of its own, and what they found is put together at the end: put together
view by view, blood cells, which take several views, are found less well. A class's features stand side by
side, the first network's in front, so that banks, stores and the service keep them as those of one.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenet.errors import InputError, WeightsError
from tenet.looks.merging import agree
from tenet.runtime.calibration import Calibration
from tenet.runtime.protocol import Picture
from tenet.structures import ClassFeatures, Detections, Explanation, FloatArray, Shot

if TYPE_CHECKING:
    from tenet.models.encoder import EncodedImage
    from tenet.runtime.torch_runtime import TorchRuntime, Widths

Seen = tuple["EncodedImage", "EncodedImage"]
"""A picture as each of the two has encoded it."""
UNSEEN = 1 << 40
"""Stands for rank 0, which is no rank: no proposal covers the shot."""


class PairRuntime:
    """A pair behind the `tenet.runtime.protocol.Runtime` calls."""

    def __init__(
        self, one: "TorchRuntime", two: "TorchRuntime", name: str, calibration: Calibration | None = None
    ) -> None:
        sizes = [(runtime.support_size, runtime.widths.region) for runtime in (one, two)]
        if sizes[0] != sizes[1]:
            raise WeightsError(
                f"{name}: expected two models with crops and regions of the same sides, got {sizes[0]} of "
                f"{one.name} and {sizes[1]} of {two.name}"
            )
        self.one, self.two, self.name = one.uncalibrated(), two.uncalibrated(), name
        self.calibration = calibration or Calibration()
        both = f"{one.fingerprint} {two.fingerprint}"
        self.fingerprint = hashlib.blake2b(both.encode(), digest_size=12).hexdigest()

    def described(self) -> dict[str, Any]:
        """The configurations of both, by their names."""
        return {member.name: member.described() for member in self.members}

    def uncalibrated(self) -> "PairRuntime":
        """The same pair with its raw scores."""
        return PairRuntime(self.one, self.two, self.name)

    @property
    def members(self) -> "tuple[TorchRuntime, TorchRuntime]":
        return self.one, self.two

    @property
    def support_size(self) -> int:
        return self.one.support_size

    @property
    def threshold(self) -> float:
        return self.calibration.threshold

    def encode_images(self, pictures: Sequence[Picture]) -> list[Seen]:
        return list(zip(self.one.encode_images(pictures), self.two.encode_images(pictures), strict=True))

    def encode_shots(self, shots: Sequence[Shot]) -> ClassFeatures:
        widths = self.one.widths, self.two.widths
        return side_by_side((self.one.encode_shots(shots), self.two.encode_shots(shots)), widths)

    def match(self, images: Sequence[Seen], classes: Sequence[ClassFeatures]) -> list[Detections]:
        one, two = (
            member.match([image[row] for image in images], [self.of_member(own, row) for own in classes])
            for row, member in enumerate(self.members)
        )
        return [agree(*found) for found in zip(one, two, strict=True)]

    def of_member(self, features: ClassFeatures, number: int) -> ClassFeatures:
        return take_apart(features, (self.one.widths, self.two.widths))[number]

    def calibrate(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        return self.calibration(scores)

    def explain(self, image: Seen, features: ClassFeatures, boxes: NDArray[np.float32]) -> list[Explanation]:
        """As the second network sees it: an attention map of two would be nobody's."""
        return self.two.explain(image[1], self.of_member(features, 1), boxes)


class Apart(NamedTuple):
    """A class as each of the two knows it."""

    one: ClassFeatures
    two: ClassFeatures


def side_by_side(
    features: tuple[ClassFeatures, ClassFeatures], widths: "tuple[Widths, Widths]"
) -> ClassFeatures:
    """Features (Z, c, …) of two networks → (Z, c₁ + c₂, …), and what each learned in closed form, one after
    the other; as many parts of zeros for what only one has learned."""
    psi_rpn, psi, phi, raw = (
        np.concatenate([getattr(own, name) for own in features], 1)
        for name in ("psi_rpn", "psi", "phi", "raw")
    )
    learned = None
    pairs = [(own.closed_form, width.learned) for own, width in zip(features, widths, strict=True)]
    if any(own is not None for own, _ in pairs):
        parts = next(lengths.index(len(own)) for own, lengths in pairs if own is not None)
        learned = np.concatenate(
            [np.zeros(lengths[parts], np.float32) if own is None else own for own, lengths in pairs]
        )
    return ClassFeatures(psi_rpn, psi, phi, raw, learned, _better_ranks(features[0].ranks, features[1].ranks))


def take_apart(features: ClassFeatures, widths: "tuple[Widths, Widths]") -> Apart:
    """What `side_by_side` put together; both have the ranks of the pair."""
    first, second = widths
    if features.psi.shape[1] != first.d + second.d or features.raw.shape[1] != first.raw + second.raw:
        raise InputError(
            f"classes: expected features of a pair, {first.d} and {second.d} channels, got "
            f"{features.psi.shape[1]}; they were made by another model, register the class anew"
        )
    learned: tuple[FloatArray | None, FloatArray | None] = (None, None)
    if features.closed_form is not None:
        end = _end_of_first(len(features.closed_form), widths)
        learned = features.closed_form[:end], features.closed_form[end:]
    d, raw = first.d, first.raw
    return Apart(
        ClassFeatures(
            features.psi_rpn[:, :d],
            features.psi[:, :d],
            features.phi[:, : 2 * d],
            features.raw[:, :raw],
            learned[0],
            features.ranks,
        ),
        ClassFeatures(
            features.psi_rpn[:, d:],
            features.psi[:, d:],
            features.phi[:, 2 * d :],
            features.raw[:, raw:],
            learned[1],
            features.ranks,
        ),
    )


def _end_of_first(length: int, widths: "tuple[Widths, Widths]") -> int:
    """Both have learned equally many parts: where the first one's end."""
    for one, two in zip(*(width.learned for width in widths), strict=True):
        if one + two == length:
            return one
    raise InputError(
        f"classes: expected closed-form weights of a pair, got {length} numbers; register the class anew"
    )


def _better_ranks(one: NDArray[np.int64] | None, two: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """The better rank of each shot: what one of them proposes, the pair has."""
    if one is None or two is None:
        return one if two is None else two
    best = np.minimum(*(np.where(ranks == 0, UNSEEN, ranks) for ranks in (one, two)))
    return np.asarray(np.where(best == UNSEEN, 0, best), np.int64)
