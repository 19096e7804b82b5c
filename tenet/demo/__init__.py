"""The demonstration's scenes: a few things to show the detector, a picture to find others in, and the truth.

The truth is for the table alone; the detector never sees it. Where the pictures come from: SOURCES.md.
Boxes are (x1, y1, x2, y2) in pixels of the file beside them, drawn by hand; those of the collage follow from
how it is put together (`tenet.demo.collage`).
"""

from dataclasses import dataclass
from pathlib import Path

from tenet.demo.collage import things as _in_collage

Box = tuple[float, float, float, float]
FOLDER = Path(__file__).parent

CAT: Box = (0, 0, 400, 300)
"""In chelsea.jpg."""
CUP: Box = (77, 17, 478, 388)
"""In coffee.jpg, with its saucer."""


@dataclass(frozen=True)
class Example:
    """A thing of class `name`; its box is xyxy in pixels of the picture `file`."""

    name: str
    file: str
    box: Box

    @property
    def path(self) -> Path:
        """Where the picture is."""
        return FOLDER / self.file


@dataclass(frozen=True)
class Scene:
    """Shots to show, a picture to look in, and what is there to find besides the shots themselves."""

    name: str
    about: str
    file: str
    shots: tuple[Example, ...]
    truth: tuple[Example, ...]

    @property
    def path(self) -> Path:
        """Where the picture is."""
        return FOLDER / self.file

    @property
    def classes(self) -> tuple[str, ...]:
        """What is looked for."""
        return tuple(dict.fromkeys(shot.name for shot in self.shots))


def _coins(boxes: tuple[Box, ...]) -> tuple[Example, ...]:
    return tuple(Example("coin", "coins.png", box) for box in boxes)


_SHOWN: tuple[Box, ...] = ((22, 35, 67, 74), (255, 34, 297, 72), (186, 105, 227, 145))
_OTHERS: tuple[Box, ...] = (
    (81, 39, 120, 74), (132, 29, 179, 74), (192, 30, 240, 73), (305, 16, 365, 72), (25, 104, 67, 145),
    (84, 107, 122, 145), (134, 110, 174, 145), (245, 96, 296, 144), (317, 105, 356, 145),
    (315, 156, 380, 218), (18, 233, 75, 288), (25, 178, 63, 217), (80, 175, 124, 217), (135, 179, 174, 217),
    (143, 236, 201, 288), (189, 170, 237, 217), (220, 240, 269, 288), (251, 172, 297, 217),
    (275, 239, 326, 288), (92, 245, 136, 287), (336, 248, 381, 289),
)  # fmt: skip
_CAT_AND_CUP = (Example("cat", "chelsea.jpg", CAT), Example("cup", "coffee.jpg", CUP))

SCENES: tuple[Scene, ...] = (
    Scene("coins", "three coins are shown, the others are to be found", "coins.png",
          _coins(_SHOWN), _coins(_OTHERS)),
    Scene("collage", "a cat and a cup, once each, to be found mirrored, smaller, darker and in grey",
          "collage.jpg", _CAT_AND_CUP,
          tuple(Example(name, "collage.jpg", box) for name, box in _in_collage({"cat": CAT, "cup": CUP}))),
    Scene("star", "one star is shown, another is to be found among galaxies", "hubble_south.jpg",
          (Example("star", "hubble_north.jpg", (97, 117, 133, 153)),),
          (Example("star", "hubble_south.jpg", (154, 137, 194, 177)),)),
    Scene("absent", "the cat and the cup again, in a picture that has neither", "astronaut.jpg",
          _CAT_AND_CUP, ()),
)  # fmt: skip
