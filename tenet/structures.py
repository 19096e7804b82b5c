"""What travels between the rooms of the house: frozen dataclasses over numpy that check themselves.

Boxes are xyxy in pixels everywhere in Python; each docstring says of which picture.
Shape letters are those of the whole project: n detections, Z shots, d channels of the C4 map, 2d
channels of the C5 map, S the side of a region's map (N = S·S positions).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tenet.errors import InputError

FloatArray = NDArray[np.float32]


def _expect(value: NDArray[np.generic], name: str, shape: tuple[int | str, ...]) -> None:
    """Check `value` against `shape`; a letter stands for any size."""
    fits = value.ndim == len(shape) and all(
        isinstance(want, str) or got == want for got, want in zip(value.shape, shape, strict=True)
    )
    if not fits:
        wanted = ", ".join(str(size) for size in shape)
        raise InputError(f"{name}: expected an array of shape ({wanted}), got {value.shape}")


@dataclass(frozen=True, eq=False)
class Detections:
    """What was found in one picture, best first.

    boxes   (n, 4) float32, xyxy in pixels of the picture that was given
    scores  (n,)   float32 in [0, 1]
    labels  (n,)   int64, row of the class in the list of classes that was asked for
    shots   (n,)   int64, the shot of that class that matched best
    classes the names of the classes that were asked for, or () where nothing has a name
    """

    boxes: FloatArray
    scores: FloatArray
    labels: NDArray[np.int64]
    shots: NDArray[np.int64]
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _expect(self.boxes, "boxes", ("n", 4))
        n = len(self.boxes)
        for name in ("scores", "labels", "shots"):
            _expect(getattr(self, name), name, (n,))
        if self.classes and n and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise InputError(
                f"Detections: expected labels from 0 to {len(self.classes) - 1}, got {self.labels.tolist()}"
            )
        if not np.isfinite(self.boxes).all() or not np.isfinite(self.scores).all():
            raise InputError("Detections: expected finite boxes and scores, got NaN or infinity")

    def __len__(self) -> int:
        return len(self.boxes)

    @property
    def names(self) -> NDArray[np.str_]:
        """(n,) the name of each detection's class."""
        if not self.classes and len(self):
            raise InputError("Detections: these classes have no names; set them with `with_classes`")
        return np.array([self.classes[label] for label in self.labels.tolist()], np.str_)

    def with_classes(self, classes: Sequence[str]) -> "Detections":
        """The same, with the names of the classes that were asked for."""
        return replace(self, classes=tuple(classes))

    def select(self, rows: NDArray[np.generic]) -> "Detections":
        """The rows that a mask or an index array names, in its order."""
        return Detections(
            self.boxes[rows], self.scores[rows], self.labels[rows], self.shots[rows], self.classes
        )

    @staticmethod
    def empty(classes: Sequence[str] = ()) -> "Detections":
        """A picture in which nothing was found."""
        none = np.zeros(0, np.int64)
        return Detections(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), none, none, tuple(classes))


@dataclass(frozen=True, eq=False)
class Target:
    """What is annotated in one picture, whatever format it was read from.

    boxes      (n, 4) float32, xyxy in pixels of the upright picture, edges and not pixel numbers: a box
               that covers the whole of a W × H picture is (0, 0, W, H)
    labels     (n,)   int64, row of the class in the dataset's class list
    ignore     (n,)   bool, neither an object to find nor a mistake to find: VOC's `difficult`, COCO's
               `iscrowd`
    crowd      (n,)   bool, the part of `ignore` that is one box around a group (COCO's `iscrowd`)
    truncated  (n,)   bool, the object goes on outside its box (VOC's `truncated`)
    """

    boxes: FloatArray
    labels: NDArray[np.int64]
    ignore: NDArray[np.bool_]
    crowd: NDArray[np.bool_]
    truncated: NDArray[np.bool_]

    def __post_init__(self) -> None:
        _expect(self.boxes, "boxes", ("n", 4))
        n = len(self.boxes)
        for name in ("labels", "ignore", "crowd", "truncated"):
            _expect(getattr(self, name), name, (n,))
        if not np.isfinite(self.boxes).all():
            raise InputError("Target: expected finite boxes, got NaN or infinity")
        if n and not (self.boxes[:, 2:] > self.boxes[:, :2]).all():
            row = int(np.argmin((self.boxes[:, 2:] > self.boxes[:, :2]).all(axis=1)))
            raise InputError(
                f"Target: expected boxes (x1, y1, x2, y2) with x2 > x1 and y2 > y1, "
                f"got {self.boxes[row].tolist()} in row {row}"
            )
        if n and self.labels.min() < 0:
            raise InputError(f"Target: expected labels of at least 0, got {int(self.labels.min())}")
        if (self.crowd & ~self.ignore).any():
            raise InputError("Target: expected every crowd box to be ignored as well; set ignore there")

    def __len__(self) -> int:
        return len(self.boxes)

    @staticmethod
    def of(
        boxes: ArrayLike,
        labels: ArrayLike,
        ignore: ArrayLike | None = None,
        crowd: ArrayLike | None = None,
        truncated: ArrayLike | None = None,
    ) -> "Target":
        """A target from lists; flags that are not given are off. Boxes as in the class: xyxy, pixels."""
        box_rows = np.asarray(boxes, np.float32).reshape(-1, 4)
        off = np.zeros(len(box_rows), np.bool_)
        crowd_rows = off if crowd is None else np.asarray(crowd, np.bool_)
        return Target(
            boxes=box_rows,
            labels=np.asarray(labels, np.int64).reshape(-1),
            ignore=crowd_rows if ignore is None else np.asarray(ignore, np.bool_) | crowd_rows,
            crowd=crowd_rows,
            truncated=off if truncated is None else np.asarray(truncated, np.bool_),
        )

    def select(self, rows: NDArray[np.generic]) -> "Target":
        """The rows that a mask or an index array names, in its order."""
        return Target(
            *(getattr(self, name)[rows] for name in ("boxes", "labels", "ignore", "crowd", "truncated"))
        )


@dataclass(frozen=True, eq=False)
class ClassFeatures:
    """One class as the network knows it: its Z shots, encoded once (spec of the class bank).

    psi_rpn    (Z, d)        high-order descriptors that steer the TENET-RPN
    psi        (Z, d)        high-order descriptors that the relation head compares
    phi        (Z, 2d, S, S) spatial maps from C5
    raw        (Z, c)        mean of the frozen encoder's last map, for the cosine prior
    closed_form (w,) or None what the shots' pictures taught in closed form (`tenet.models.closed_form`)
    ranks      (Z,) or None  how well the detector sees each shot in its own picture: the rank, from 1, of the
                             first proposal that covers it; 0 none does, −1 the shot is a bare crop
    """

    psi_rpn: FloatArray
    psi: FloatArray
    phi: FloatArray
    raw: FloatArray
    closed_form: FloatArray | None = None
    ranks: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        _expect(self.phi, "phi", ("Z", "2d", "S", "S"))
        shots = len(self.phi)
        if shots == 0:
            raise InputError("ClassFeatures: expected at least one shot, got none; give a crop of the object")
        for name, width in (("psi_rpn", "d"), ("psi", "d"), ("raw", "c")):
            _expect(getattr(self, name), name, (shots, width))
        if self.closed_form is not None:
            _expect(self.closed_form, "closed_form", ("w",))
        if self.ranks is not None:
            _expect(self.ranks, "ranks", (shots,))

    def __len__(self) -> int:
        return len(self.phi)


@dataclass(frozen=True, eq=False)
class Shot:
    """One example of a class, as a runtime takes it.

    crop       (S, S, 3) uint8 RGB: the object with a little context, padded to a square
    box        (4,) float32, xyxy in pixels of `crop`: the object without context and padding
    scene      (H, W, 3) uint8 RGB: the picture that it was taken from, at the size at which things are
               looked for; None for a bare crop, whose surroundings nobody knows
    scene_box  (4,) float32, xyxy in pixels of `scene`; None for a bare crop
    """

    crop: NDArray[np.uint8]
    box: FloatArray
    scene: NDArray[np.uint8] | None = None
    scene_box: FloatArray | None = None

    def __post_init__(self) -> None:
        _expect(self.crop, "crop", ("H", "W", 3))
        _expect(self.box, "box", (4,))
        if (self.scene is None) != (self.scene_box is None):
            raise InputError("Shot: expected a scene with the object's box in it, got one without the other")
        if self.scene is not None and self.scene_box is not None:
            _expect(self.scene, "scene", ("H", "W", 3))
            _expect(self.scene_box, "scene_box", (4,))


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a box was found: what the network looks at in the region and in each shot.

    region   name → (S, S): attention over the region's positions, of "fo" (the first-order token), "ho" (the
             high-order token), "fo_ho" (their average) and "spatial" (positions among themselves, max-pooled)
    shots    for each shot the same maps
    cosines  (Z,) how alike the region and each shot are, −1 … 1
    pairs    (Z, N, N) cosine of each position of the region (rows) with each position of each shot (columns),
             N = S·S, row by row
    """

    region: dict[str, FloatArray]
    shots: tuple[dict[str, FloatArray], ...]
    cosines: FloatArray
    pairs: FloatArray
