"""What comes back for a stream and for a folder: results that know which picture they belong to."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tenet.errors import TenetError
from tenet.runtime.protocol import Picture
from tenet.structures import Detections


@dataclass(frozen=True, eq=False)
class Frame:
    """One picture of a stream and what was found in it.

    number      its place in the source, from 0; a frame's number in its video
    path        its file, None for pictures in memory
    time        seconds from the start of the video, None for pictures
    picture     (H, W, 3) uint8 RGB, None where it could not be read
    detections  boxes xyxy in pixels of `picture`; empty where it could not be read
    error       why it could not be read, None where it was
    """

    number: int
    path: Path | None
    time: float | None
    picture: Picture | None
    detections: Detections
    error: TenetError | None = None


class FolderDetections(Mapping[Path, Detections]):
    """Path → Detections of a folder, in the order of the names; boxes xyxy in pixels of each picture.

    sizes   path → (width, height) of the picture
    failed  path → message of the files that could not be read
    """

    def __init__(
        self,
        found: Mapping[Path, Detections],
        sizes: Mapping[Path, tuple[int, int]],
        failed: Mapping[Path, str],
    ) -> None:
        self._found = dict(found)
        self.sizes = dict(sizes)
        self.failed = dict(failed)

    def __getitem__(self, path: Path | str) -> Detections:
        return self._found[Path(path)]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        boxes = sum(len(found) for found in self._found.values())
        return f"FolderDetections({len(self)} pictures, {boxes} detections, {len(self.failed)} failed)"
