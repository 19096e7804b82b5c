"""Pictures in, boxes out: `Tenet`.

    model = Tenet.load()
    found = model.detect("forest.jpg", bank, threshold=0.4)

Each picture is decoded once and looked at as `tenet.looks.views` plans it, mostly once for all classes, and
again where its things are of another size (`tenet.looks.second_look`); shots are never encoded here.
Pictures are (H, W, 3) uint8 RGB; boxes that come out are xyxy in pixels of the user's picture, clipped to it.
"""

import math
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tenet.errors import InputError
from tenet.looks.frames import FolderDetections, Frame
from tenet.looks.merging import MOST
from tenet.looks.request import Bank, Request, whole_number
from tenet.looks.second_look import Looks
from tenet.looks.sources import Loaded, is_folder, is_one_picture, load_all, pictures_in
from tenet.looks.views import Size, View, combine
from tenet.runtime.protocol import Picture, Runtime
from tenet.structures import Detections

CLASSES_AT_ONCE = 64
"""Classes in one call of `match`: memory grows with them. No more than these meet in one picture."""
BLOCK_PIXELS = 32_000_000
"""Decoded pixels that wait together for the network."""
WORKING_PIXELS = 6_000_000
"""Pixels of working pictures that the network is given together: their maps take thirty bytes for each."""


class Tenet:
    """A detector: a network behind the calls of `tenet.runtime.protocol`, pictures of any kind before it."""

    def __init__(self, runtime: Runtime) -> None:
        if not hasattr(runtime, "encode_images"):
            raise InputError(
                f"Tenet: expected a network, got {runtime!r}; a model by its name or file is Tenet.load(name)"
            )
        self.runtime = runtime

    @staticmethod
    def load(name: str | Path | None = None) -> "Tenet":
        """A model by its name or file; without one, the model that comes with the package. No network is
        needed."""
        from tenet.runtime.loading import load_runtime

        return Tenet(load_runtime(name))

    @property
    def name(self) -> str:
        """What people call the model, such as tenet_lite0."""
        return self.runtime.name

    def __repr__(self) -> str:
        return f"Tenet({self.name!r})"

    @overload
    def detect(
        self,
        source: bytes | Image.Image | NDArray[Any],
        bank: Bank,
        threshold: float | None = None,
        *,
        classes: str | Iterable[str] | None = None,
        size: Size = "auto",
        tiles: bool = True,
        limit: int = MOST,
        batch: int = 8,
        progress: bool | None = None,
    ) -> Detections: ...

    @overload
    def detect(
        self,
        source: list[Any] | tuple[Any, ...],
        bank: Bank,
        threshold: float | None = None,
        *,
        classes: str | Iterable[str] | None = None,
        size: Size = "auto",
        tiles: bool = True,
        limit: int = MOST,
        batch: int = 8,
        progress: bool | None = None,
    ) -> list[Detections]: ...

    # A path is a picture or a folder: only the disk knows which.
    @overload
    def detect(
        self,
        source: str | Path,
        bank: Bank,
        threshold: float | None = None,
        *,
        classes: str | Iterable[str] | None = None,
        size: Size = "auto",
        tiles: bool = True,
        limit: int = MOST,
        batch: int = 8,
        progress: bool | None = None,
    ) -> Any: ...

    def detect(
        self,
        source: Any,
        bank: Bank,
        threshold: float | None = None,
        *,
        classes: str | Iterable[str] | None = None,
        size: Size = "auto",
        tiles: bool = True,
        limit: int = MOST,
        batch: int = 8,
        progress: bool | None = None,
    ) -> Any:
        """Look for the classes of a bank in pictures.

        source     a picture (path, bytes, PIL picture, array) → Detections
                   a list or tuple of pictures → list of Detections, in its order
                   a folder → FolderDetections, a mapping path → Detections with `.failed` beside it
        threshold  least score of what is returned; the model's own by default
        classes    only these of the bank; labels are their rows, in this order
        size       auto: from the sizes of the shots, and again where things are of another size; once:
                   without the latter; thorough: everything twice, also as in a mirror, and what both
                   agree on is told; a number: the longer side; original: as it is
        tiles      whether a large picture with small things may be cut into tiles
        limit      detections kept in a picture, the best
        batch      pictures that are given to the network together
        progress   a bar on stderr; by default for folders, where that is a terminal
        Boxes are xyxy in pixels of the given picture.
        """
        request = Request(self.runtime, bank, threshold, classes, size, tiles, limit)
        batch = whole_number("batch", batch)
        if is_one_picture(source):
            return _must_read(self._frames(load_all(source), request, batch))[0]
        if isinstance(source, (list, tuple)):
            frames = self._frames(load_all(source), request, batch)
            return _must_read(_bar(frames, len(source), bool(progress)))
        if is_folder(source):
            paths = pictures_in(Path(source))
            show = sys.stderr.isatty() if progress is None else progress
            return _folder(_bar(self._frames(load_all(paths), request, batch), len(paths), show))
        came = source if isinstance(source, (str, Path)) else type(source).__name__
        raise InputError(
            f"source: expected a picture, a list of pictures or a folder, got {came}; "
            "a video or a generator goes to `stream`"
        )

    def stream(
        self,
        source: Any,
        bank: Bank,
        threshold: float | None = None,
        *,
        classes: str | Iterable[str] | None = None,
        size: Size = "auto",
        tiles: bool = True,
        limit: int = MOST,
        batch: int = 1,
        every: int = 1,
        keep_going: bool | None = None,
    ) -> Generator[Frame, None, None]:
        """The same, one picture after another in bounded memory: a `Frame` each, with picture and result.

        source      a video file, a folder, or anything that can be iterated for pictures, such as a camera
        batch       1 gives each result as soon as its picture is there
        every       look at every n-th picture only; `Frame.number` counts all
        keep_going  a picture that cannot be read becomes a frame with `error` set instead of an error; by
                    default for folders
        The rest is as in `detect`.
        """
        request = Request(self.runtime, bank, threshold, classes, size, tiles, limit)
        loaded = load_all(source, whole_number("every", every))
        frames = self._frames(loaded, request, whole_number("batch", batch))
        keeps = is_folder(source) if keep_going is None else keep_going
        return (frame if keeps else _readable(frame) for frame in frames)

    def _frames(self, loaded: Iterable[Loaded], request: Request, batch: int) -> Iterator[Frame]:
        for block in _blocks(loaded, batch):
            found = self._find([one.picture for one in block], request, batch)
            for one, detections in zip(block, found, strict=True):
                yield Frame(one.number, one.path, one.time, one.picture, detections, one.error)

    def _find(self, pictures: Sequence[Picture | None], request: Request, batch: int) -> list[Detections]:
        """What is in each picture: of two opinions, what both agree on."""
        if request.members:
            one, two = (self._find(pictures, own, batch) for own in request.members)
            return [request.agreed(*found) for found in zip(one, two, strict=True)]
        return [
            combine(
                looks.views,
                looks.found,
                request.classes,
                request.threshold,
                request.limit,
                partial(request.judge, looks.picture),
            )
            for looks in self._see(pictures, request, batch)
        ]

    def _see(self, pictures: Sequence[Picture | None], request: Request, batch: int) -> list[Looks]:
        """Every picture as it is planned, and again where what was found calls for another size."""
        seen = [_unseen(picture, request) for picture in pictures]
        wanted = [looks.plan for looks in seen]
        while any(wanted):
            jobs = [
                _Job(place, view, picture)
                for place, (picture, views) in enumerate(zip(pictures, wanted, strict=True))
                if picture is not None
                for view in views
            ]
            for job, found in zip(jobs, self._look(jobs, request, batch), strict=True):
                seen[job.place].add(job.view, found)
            wanted = [
                request.again(looks) if views else [] for looks, views in zip(seen, wanted, strict=True)
            ]
        return seen

    def _look(self, jobs: Sequence["_Job"], request: Request, batch: int) -> list[Detections]:
        """What each view shows, in its own pixels; views of the same classes go to the network together."""
        found: dict[int, Detections] = {}
        order = sorted(range(len(jobs)), key=lambda row: jobs[row].view.matched)
        for labels, same in groupby(order, key=lambda row: jobs[row].view.matched):
            for some in _batches(list(same), [job.view.size for job in jobs], batch):
                pixels = [jobs[row].view.pixels(jobs[row].picture) for row in some]
                images = request.runtime.encode_images(pixels)
                found.update(zip(some, self._match(images, labels, request), strict=True))
        return [found[row] for row in range(len(jobs))]

    def _match(self, images: Sequence[Any], labels: Sequence[int], request: Request) -> list[Detections]:
        """Classes in heats of a few at a time; labels that come out are rows of `labels`.

        Classes compete, and only those that meet: so the best of a picture's heats meet in a final, and a
        score does not depend on a class's place in the bank.
        """
        heats = [
            request.runtime.match(images, request.features(labels[start : start + CLASSES_AT_ONCE]))
            for start in range(0, len(labels), CLASSES_AT_ONCE)
        ]
        if len(heats) == 1:
            return heats[0]
        finals = []
        for image, *found in zip(images, *heats, strict=True):
            rows = _finalists(found)
            if not rows:
                finals.append(Detections.empty())
                continue
            [one] = request.runtime.match([image], request.features([labels[row] for row in rows]))
            finals.append(replace(one, labels=np.array(rows, np.int64)[one.labels]))
        return finals


def _finalists(heats: Sequence[Detections]) -> list[int]:
    """Rows of the classes with the best boxes of all heats, in their order."""
    best = np.zeros(len(heats) * CLASSES_AT_ONCE)
    for number, found in enumerate(heats):
        np.maximum.at(best, found.labels + number * CLASSES_AT_ONCE, found.scores)
    winners = np.argsort(-best, kind="stable")[:CLASSES_AT_ONCE]
    return sorted(row for row in winners.tolist() if best[row] > 0)


def _batches(rows: list[int], sizes: list[tuple[int, int]], batch: int) -> Iterator[list[int]]:
    """Up to `batch` rows at a time, fewer where their working pictures (width, height) are large."""
    some: list[int] = []
    for row in rows:
        if some and sum(math.prod(sizes[one]) for one in (*some, row)) > WORKING_PIXELS:
            yield some
            some = []
        some.append(row)
        if len(some) == batch:
            yield some
            some = []
    if some:
        yield some


class _Job(NamedTuple):
    """A view that is to be looked at: of the picture at `place` in its block."""

    place: int
    view: View
    picture: Picture


def _unseen(picture: Picture | None, request: Request) -> Looks:
    if picture is None:
        return Looks((0, 0), [])
    height, width = picture.shape[:2]
    return Looks((width, height), request.views(width, height))


def _blocks(loaded: Iterable[Loaded], batch: int) -> Iterator[list[Loaded]]:
    """Up to `batch` pictures at a time, fewer where they are large."""
    block: list[Loaded] = []
    pixels = 0
    for one in loaded:
        block.append(one)
        pixels += 0 if one.picture is None else one.picture.shape[0] * one.picture.shape[1]
        if len(block) == batch or pixels >= BLOCK_PIXELS:
            yield block
            block, pixels = [], 0
    if block:
        yield block


def _readable(frame: Frame) -> Frame:
    if frame.error is not None:
        raise frame.error
    return frame


def _must_read(frames: Iterable[Frame]) -> list[Detections]:
    return [_readable(frame).detections for frame in frames]


def _folder(frames: Iterable[Frame]) -> FolderDetections:
    found: dict[Path, Detections] = {}
    sizes: dict[Path, tuple[int, int]] = {}
    failed: dict[Path, str] = {}
    for frame in frames:
        if frame.path is not None and frame.picture is not None:
            found[frame.path] = frame.detections
            sizes[frame.path] = (frame.picture.shape[1], frame.picture.shape[0])
        elif frame.path is not None:
            failed[frame.path] = str(frame.error)
    return FolderDetections(found, sizes, failed)


def _bar(frames: Iterator[Frame], total: int, show: bool) -> Iterable[Frame]:
    if not show:
        return frames
    from tqdm import tqdm

    return iter(tqdm(frames, total=total, file=sys.stderr, unit="picture", leave=False))
