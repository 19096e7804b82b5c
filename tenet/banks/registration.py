"""What registering a class answers at once: does the detector see the shots in their own pictures?

It costs nothing, because the pictures are encoded anyway. Where even there the first box that covers a shot
comes late, little is found elsewhere. Where it comes early, that alone promises nothing: among other pictures
the class may still be missed or confused, which only `tenet trial` measures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tenet.looks.sizes import SeenSize, working_size

TOP = 100
"""A shot is seen if one of this many best boxes of its own picture covers it."""
GOOD_SHARE, GOOD_RANK = 0.8, 0.25
"""From both of these on it is good: share of the shots seen, and mean reciprocal rank."""
POOR_SHARE, POOR_RANK = 0.5, 0.11
"""Below this share, or up to this rank, it is poor."""
SMALL_THING = 16.0
"""A thing with a smaller side, in pixels of the working picture, is a dot to the network."""
SMALL_CROP = 24.0
"""A thing with a smaller side, in pixels of the user's picture, hardly shows what it is."""

BARE, NOT_COVERED = -1, 0
"""Ranks of `ClassFeatures` that are no place: a bare crop, and a shot that no box covers."""

ADVICE = {
    "good": "",
    "doubtful": " Larger pictures, tighter boxes or more shots help; if not, fine-tune: `tenet finetune`.",
    "poor": " Expect it to miss most: give larger pictures or tighter boxes, or fine-tune: `tenet finetune`.",
}


@dataclass(frozen=True)
class Registration:
    """How well a class is known.

    name                  of the class
    shots                 how many it has now
    added                 how many of them are new; 0 where nothing was registered, only asked
    in_pictures           how many of them came with their pictures
    covered               share of those that the detector sees: among the best 100 boxes of their own
                          pictures one covers them; None where all are bare crops, or the model does not
                          measure it (`rpn.closed_form` is off)
    mean_reciprocal_rank  of the first box that covers them, 0 for those not seen; None as above
    verdict               "good", "doubtful", "poor", or "unknown" where nothing was measured
    notes                 what the user can do better, one sentence each
    """

    name: str
    shots: int
    added: int
    in_pictures: int
    covered: float | None
    mean_reciprocal_rank: float | None
    verdict: str
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [self.sentence(), *(f"  note: {note}" for note in self.notes)]
        return "\n".join(lines)

    def sentence(self) -> str:
        """The verdict in words, and what to do."""
        count = "1 shot" if self.shots == 1 else f"{self.shots} shots"
        if self.in_pictures == 0:
            return (
                f"{self.name}: {count}, crops only, so whether the detector sees it cannot be checked. Whole "
                "pictures with a box work much better."
            )
        if self.covered is None or self.mean_reciprocal_rank is None:
            return f"{self.name}: {count}. This model does not measure whether it sees them."
        seen = round(self.covered * self.in_pictures)
        return (
            f"{self.name}: {count}, {self.verdict}. The detector sees {seen} of {self.in_pictures} in their "
            f"own pictures (mean reciprocal rank {self.mean_reciprocal_rank:.2f}).{ADVICE[self.verdict]}"
        )

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        return {**vars(self), "notes": list(self.notes)}


def judge(
    name: str,
    ranks: Sequence[int] | None,
    seen: Sequence[SeenSize],
    added: int = 0,
    notes: Sequence[str] = (),
) -> Registration:
    """The verdict on a class from its shots' ranks (`ClassFeatures.ranks`) and sizes."""
    places = [rank for rank in ranks or () if rank != BARE]
    notes = (*notes, *size_notes(seen))
    if not places:
        in_pictures = sum(one.picture != (0, 0) for one in seen)
        return Registration(name, len(seen), added, in_pictures, None, None, "unknown", notes)
    covering = [rank for rank in places if NOT_COVERED < rank <= TOP]
    share = len(covering) / len(places)
    reciprocal = sum(1 / rank for rank in covering) / len(places)
    verdict = _verdict(share, reciprocal)
    return Registration(name, len(seen), added, len(places), share, reciprocal, verdict, notes)


def _verdict(share: float, reciprocal: float) -> str:
    if share >= GOOD_SHARE and reciprocal >= GOOD_RANK:
        return "good"
    return "poor" if share < POOR_SHARE or reciprocal <= POOR_RANK else "doubtful"


def size_notes(seen: Sequence[SeenSize]) -> list[str]:
    """Shots that are too small to be seen, or to be told apart."""
    notes = []
    for row, one in enumerate(seen):
        width, height = one.thing
        if min(width, height) < SMALL_CROP:
            notes.append(
                f"shot {row} has only {width:.0f} × {height:.0f} px; a sharper or larger one is better"
            )
        if one.picture != (0, 0):
            working = working_size(one.picture, seen)
            side = (width * height) ** 0.5 * max(working) / max(one.picture)
            if side < SMALL_THING:
                notes.append(
                    f"shot {row} is very small in its picture ({side:.0f} px where it is looked for); "
                    "cut out a part of the picture around it"
                )
    return notes
