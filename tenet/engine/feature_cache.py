"""The feature cache: maps of a frozen encoder, computed once, fp16, memory-mapped.

    FOLDER/KEY/00000.bin …   maps of a few hundred views each, one after the other, raw float16
    FOLDER/KEY/00000.json …  offset, shapes, size, objects, CRC and the digest of its pictures, for each view

KEY is a hash of the encoder's weights and of everything that turns a picture into the encoder's input, so
another encoder or transform has another folder. A view is used only if its pictures' bytes have the
digest in the index and its maps have their CRC; otherwise it is computed anew. A shard's JSON is written
after its maps, so that an interrupted run goes on where it stopped. Several processes may fill one folder.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tenet.data.dataset import Record
from tenet.data.files import read_json, write_bytes, write_json
from tenet.engine.view_episodes import View, ViewEpisodes
from tenet.errors import ConfigError, DataError
from tenet.models.backbones import Stages
from tenet.models.detector import TENET

SHARD = 200
"""Views in a file."""
VERSION = 2


@dataclass(frozen=True)
class Entry:
    """Where a view's maps are: `shapes` of c3, c4, c5 ([] for one that is not kept), `size` (H, W) in pixels
    of the view, `boxes` in them with their `labels` and `ignore`, `picture` the digest of the bytes of the
    pictures that it is made of."""

    shard: str
    offset: int
    shapes: list[list[int]]
    size: list[int]
    boxes: list[list[float]]
    labels: list[int]
    ignore: list[bool]
    picture: str
    crc: int


@dataclass(frozen=True)
class CachedView:
    """A view's maps as float32, (1, channels, h, w) each, its (height, width), boxes (G, 4) in pixels,
    labels (G,) and ignore (G,)."""

    stages: Stages
    size: tuple[int, int]
    boxes: NDArray[np.float32]
    labels: NDArray[np.int64]
    ignore: NDArray[np.bool_]


class FeatureCache:
    """The cache of one detector's encoder for one set of views."""

    def __init__(self, folder: Path, detector: TENET, views: ViewEpisodes) -> None:
        if not detector.config.encoder.frozen:
            raise ConfigError(
                "cache: expected an encoder that does not learn; set model.encoder.frozen = true"
            )
        self.detector, self.views = detector, views
        self.folder = folder / cache_key(detector, views)
        self._index = self._read_index()
        self._maps: dict[str, NDArray[np.float16]] = {}
        self._digests: dict[str, str] = {}

    def missing(self, wanted: Iterable[View]) -> list[View]:
        """Views that are absent or stale (the bytes of their pictures have changed)."""
        return [view for view in wanted if not self._fresh(view)]

    def fill(
        self,
        wanted: Iterable[View] | None = None,
        progress: Callable[[list[list[View]]], Iterable[list[View]]] | None = None,
        part: tuple[int, int] = (0, 1),
    ) -> int:
        """Compute what is missing of `wanted` (all views by default); returns how many views that was.
        `progress` may wrap the shards; with `part` (r, n) only every n-th view from r on is computed."""
        missing = self.missing(self.views.all_views() if wanted is None else wanted)[part[0] :: part[1]]
        shards = [missing[start : start + SHARD] for start in range(0, len(missing), SHARD)]
        for shard in progress(shards) if progress is not None else shards:
            self._write_shard(shard)
        return len(missing)

    def __getitem__(self, view: View) -> CachedView:
        """A view's maps; broken or absent ones are computed anew and written."""
        if view not in self._index:
            self._write_shard([view])
        found = self._read(self._index[view])
        if found is None:  # its file is gone, short, or its bytes have changed
            self._write_shard([view])
            found = self._read(self._index[view])
        if found is None:
            raise DataError(
                f"{self.folder}: expected to read back what was written, but it differs; check the disk"
            )
        return found

    def bytes(self) -> int:
        """Size on disk."""
        return sum(path.stat().st_size for path in self.folder.glob("*")) if self.folder.is_dir() else 0

    def _fresh(self, view: View) -> bool:
        entry = self._index.get(view)
        return entry is not None and entry.picture == self._digest(view) and self._has_bytes(entry)

    def _has_bytes(self, entry: Entry) -> bool:
        path = self.folder / f"{entry.shard}.bin"
        return path.is_file() and path.stat().st_size >= entry.offset + 2 * _count(entry.shapes)

    def _read(self, entry: Entry) -> CachedView | None:
        if not self._has_bytes(entry):
            return None
        if entry.shard not in self._maps:
            self._maps[entry.shard] = np.memmap(self.folder / f"{entry.shard}.bin", np.float16, "r")
        start = entry.offset // 2
        flat = np.array(self._maps[entry.shard][start : start + _count(entry.shapes)])
        if zlib.crc32(flat.tobytes()) != entry.crc:
            return None
        parts: list[Tensor | None] = []
        at = 0
        for shape in entry.shapes:
            size = int(np.prod(shape)) if shape else 0
            parts.append(
                torch.from_numpy(flat[at : at + size].astype(np.float32)).view(shape) if shape else None
            )
            at += size
        c3, c4, c5 = parts
        assert c4 is not None
        stages = Stages(c4[:, :0] if c3 is None else c3, c4, c5)
        return CachedView(
            stages,
            (entry.size[0], entry.size[1]),
            np.array(entry.boxes, np.float32).reshape(-1, 4),
            np.array(entry.labels, np.int64),
            np.array(entry.ignore, np.bool_),
        )

    def _write_shard(self, views: list[View]) -> None:
        name = self._free_name()
        entries: dict[View, Entry] = {}
        content = bytearray()
        for view in views:
            look = self.views.look(view)
            maps = self._encode(view, look.picture)
            raw = b"".join(part.tobytes() for part in maps if part is not None)
            shapes = [[] if part is None else list(part.shape) for part in maps]
            entries[view] = Entry(
                name,
                len(content),
                shapes,
                list(look.picture.shape[:2]),
                look.boxes.tolist(),
                look.labels.tolist(),
                look.ignore.tolist(),
                self._digest(view),
                zlib.crc32(raw),
            )
            content += raw
        write_bytes(self.folder / f"{name}.bin", bytes(content))
        write_json(self.folder / f"{name}.json", [[asdict(view), asdict(e)] for view, e in entries.items()])
        self._index |= entries

    def _encode(self, view: View, pixels: NDArray[np.uint8]) -> list[NDArray[np.float16] | None]:
        """The backbone's own maps; c3 only where the detector reads it: queries, with a neck."""
        device = next(self.detector.parameters()).device
        picture = torch.from_numpy(pixels).to(device).permute(2, 0, 1).float()[None]
        with torch.no_grad():
            c3, c4, c5 = self.detector.encoder.stages(picture)
        keep3 = self.detector.config.neck and view.box < 0
        kept = (c3 if keep3 else None, c4, c5)
        return [None if part is None else part.half().cpu().numpy() for part in kept]

    def _free_name(self) -> str:
        """A name that no other process takes: its empty file is there from now on."""
        self.folder.mkdir(parents=True, exist_ok=True)
        while True:
            taken = [int(path.stem) for path in self.folder.glob("*.bin") if path.stem.isdecimal()]
            name = f"{max(taken, default=-1) + 1:05d}"
            try:
                (self.folder / f"{name}.bin").touch(exist_ok=False)
            except FileExistsError:
                continue
            return name

    def _read_index(self) -> dict[View, Entry]:
        """All shards' indices; one that does not parse counts as absent, a later shard wins."""
        found: dict[View, Entry] = {}
        for path in sorted(self.folder.glob("*.json")):
            try:
                found |= {View(**view): Entry(**entry) for view, entry in read_json(path)}
            except (DataError, TypeError, ValueError):
                continue
        return found

    def _digest(self, view: View) -> str:
        """BLAKE2 of the bytes of a view's pictures, each picture read once."""
        found = []
        for record in self.views.records(view):
            if record.id not in self._digests:
                self._digests[record.id] = _picture_digest(record)
            found.append(self._digests[record.id])
        return " ".join(found)


def cache_key(detector: TENET, views: ViewEpisodes) -> str:
    """A hash of the encoder's weights and of what turns pictures into its input."""
    digest = hashlib.blake2b(digest_size=12)
    settings, config = views.source.settings, detector.config
    transform = {
        "version": VERSION,
        "query": _query_transform(views) if views.views else [],
        "shot": [settings.support_size, settings.context, settings.support_aspect],
        "flip": settings.flip,
        # What is kept, not what it is used for: variants of one encoder share their maps.
        "encoder": [config.encoder.name, config.encoder.regions, config.neck, detector.encoder.whole_c5],
        "mean": detector.encoder.backbone.mean,
        "std": detector.encoder.backbone.std,
    }
    digest.update(json.dumps(transform, sort_keys=True).encode())
    for name, tensor in detector.encoder.backbone.state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _query_transform(views: ViewEpisodes) -> list[Any]:
    """What a query's view depends on beside its picture: a mosaic also on the set."""
    settings, dataset = views.source.settings, views.source.dataset
    sizes = [settings.query_sizes, settings.query_longer, settings.aspect, settings.zoom, settings.mosaic]
    if settings.turn or settings.recolour:
        sizes += [settings.turn, settings.recolour]
    pictures = [record.id for record in dataset.records] if settings.mosaic else []
    return [sizes, dataset.classes, pictures]


def _picture_digest(record: Record) -> str:
    content = record.path.read_bytes() if record.pixels is None else record.pixels.tobytes()
    # Objects are part of a view: an annotation that changed makes it stale as well.
    target = record.target
    objects = target.boxes.tobytes() + target.labels.tobytes() + target.ignore.tobytes()
    return hashlib.blake2b(content + objects, digest_size=12).hexdigest()


def _count(shapes: list[list[int]]) -> int:
    return sum(int(np.prod(shape)) for shape in shapes if shape)


def shards_with_bar(shards: list[list[View]]) -> Iterator[Any]:
    """The shards under a progress bar, where stderr is a terminal."""
    from tqdm import tqdm

    return iter(tqdm(shards, desc="encoding", unit="shard", disable=None))
