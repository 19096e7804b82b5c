"""Episodes (spec 9): a query picture, and K classes with Z shots each.

Shape letters: K ways (classes of the episode), Z shots, S the side of a support crop, G boxes of the
query. The ancestor's 2-way contrastive episode is K = 2: way 0 is a class of the query, way 1 a class
that is absent from it.

Episode number `index` of seed `seed` is a function of those two numbers and the set, never of what was
drawn before it: any process can make any episode.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenet.data.dataset import Dataset, Record
from tenet.data.episode_settings import EpisodeSettings
from tenet.data.queries import Query, cut_out, mosaic, ways_of
from tenet.data.shots import ShotList, ShotRef, candidates
from tenet.data.transforms import (
    flip,
    query_size,
    recolour,
    resize,
    stretched_size,
    support_crop,
    turn,
)
from tenet.errors import DataError, InputError


@dataclass(frozen=True, eq=False)
class Episode:
    """A query and its K-way Z-shot support.

    query       (H, W, 3) uint8 RGB
    boxes       (G, 4) float32, xyxy in pixels of `query`: every annotated object
    ways        (G,) int64, the way of each box, -1 for an object of a class that is no way
    ignore      (G,) bool, boxes that are neither to be found nor wrong to find
    crops       (K, Z, S, S, 3) uint8 RGB, zero where `shot_mask` is off
    crop_boxes  (K, Z, 4) float32, xyxy in pixels of the crop: the object without context and padding
    shot_mask   (K, Z) bool, which shots there are
    classes     K class names; way 0 is in the query
    query_id    the query picture's id
    shot_ids    for each way its shots, as (picture id, box id)
    """

    query: NDArray[np.uint8]
    boxes: NDArray[np.float32]
    ways: NDArray[np.int64]
    ignore: NDArray[np.bool_]
    crops: NDArray[np.uint8]
    crop_boxes: NDArray[np.float32]
    shot_mask: NDArray[np.bool_]
    classes: tuple[str, ...]
    query_id: str
    shot_ids: tuple[tuple[tuple[str, int], ...], ...]

    def __post_init__(self) -> None:
        k, z = self.shot_mask.shape
        side = self.crops.shape[2] if self.crops.ndim == 5 else -1
        expected = {
            "query": (*self.query.shape[:2], 3),
            "boxes": (len(self.boxes), 4),
            "ways": (len(self.boxes),),
            "ignore": (len(self.boxes),),
            "crops": (k, z, side, side, 3),
            "crop_boxes": (k, z, 4),
        }
        for name, shape in expected.items():
            if getattr(self, name).shape != shape:
                raise InputError(f"Episode.{name}: expected shape {shape}, got {getattr(self, name).shape}")
        if len(self.classes) != k or len(self.shot_ids) != k:
            raise InputError(f"Episode: expected {k} classes and lists of shots, got {len(self.classes)}")
        if not self.shot_mask.any(axis=1).all():
            raise InputError("Episode: expected at least one shot of each class, got a class without")
        if len(self.ways) and not -1 <= self.ways.min() <= self.ways.max() < k:
            raise InputError(f"Episode.ways: expected -1 to {k - 1}, got {self.ways.tolist()}")


class EpisodeSource:
    """Episodes of a set: `source[index]` for any index from 0. Picklable, so that workers can have it.

    dataset   queries; with only the classes that may be used (`Dataset.with_classes`)
    shots     where the shots come from: a `ShotList` (fine-tuning), or all boxes of `support`
    support   the set that holds the shots; the same as `dataset` by default. Only a picture that is the
              same file as the query is kept out of the shots.
    queries   how many pictures of each class may be queries, the same for every seed; 0 takes all
    """

    def __init__(
        self,
        dataset: Dataset,
        settings: EpisodeSettings | None = None,
        seed: int = 0,
        shots: ShotList | None = None,
        support: Dataset | None = None,
        queries: int = 0,
    ) -> None:
        self.dataset = dataset
        self.settings = settings or EpisodeSettings()
        self.seed = seed
        self.support = support or dataset
        self._record_of = {record.id: record for record in self.support.records}
        self._pool = self._shot_pool(shots)
        self._queries = self._query_rows(queries)
        self._present = [frozenset(record.target.labels.tolist()) for record in dataset.records]
        self._labels = np.array(sorted(self._queries), np.int64)
        if not len(self._labels):
            raise DataError(
                f"{dataset.name}: expected a class with a query and a shot in another picture, found none; "
                f"is min_shot_side ({self.settings.min_shot_side} px) too large?"
            )
        if self.settings.ways > len(self._pool):
            raise DataError(
                f"{dataset.name}: expected at least {self.settings.ways} classes with shots, "
                f"got {len(self._pool)}"
            )
        counts = np.array([len(self._queries[label]) for label in self._labels.tolist()], np.float64)
        self._weights = counts / counts.sum()

    def _shot_pool(self, shots: ShotList | None) -> dict[int, tuple[ShotRef, ...]]:
        """Shots of each class, by its row in the set's class list."""
        named: dict[str, tuple[ShotRef, ...]]
        if shots is not None:
            named = shots.classes
        else:
            found = candidates(self.support, self.settings.min_shot_side)
            named = {name: tuple(refs) for name, refs in found.items()}
        rows = {name: row for row, name in enumerate(self.dataset.classes)}
        for name in named:
            for ref in named[name]:
                if ref.picture not in self._record_of:
                    raise DataError(
                        f"shots of {name}: expected pictures of {self.support.name}, got {ref.picture}; "
                        "give the set that they were drawn from as `support`"
                    )
        return {rows[name]: refs for name, refs in named.items() if name in rows and refs}

    def _query_rows(self, most: int) -> dict[int, list[int]]:
        """For each class that has shots, the pictures that can be its query: those that show it and
        leave at least one shot in another picture; at most `most` of them, if that is not 0."""
        homes = {label: {self._home(ref.picture) for ref in refs} for label, refs in self._pool.items()}
        found: dict[int, list[int]] = {}
        for row, record in enumerate(self.dataset.records):
            shown = set(record.target.labels[~record.target.ignore].tolist())
            for label in sorted(shown & set(homes)):
                if homes[label] - {_identity(record)}:
                    found.setdefault(label, []).append(row)
        if most:
            rng = np.random.default_rng(0)
            found = {label: sorted(rng.permutation(rows)[:most].tolist()) for label, rows in found.items()}
        return found

    def query_rows(self) -> list[int]:
        """Rows of the set that can be a query, in order."""
        return sorted({row for rows in self._queries.values() for row in rows})

    def shot_refs(self) -> list[ShotRef]:
        """Every box that can be a shot, in order."""
        return sorted({ref for refs in self._pool.values() for ref in refs})

    def shot_record(self, picture: str) -> Record:
        """The record of a picture that holds shots."""
        return self._record_of[picture]

    def _home(self, picture: str) -> str:
        return _identity(self._record_of[picture])

    def __getitem__(self, index: int) -> Episode:
        """Episode number `index`."""
        if index < 0:
            raise InputError(f"episode index: expected at least 0, got {index}")
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, index])))
        row, labels = self.draw_classes(rng)
        record = self.dataset.records[row]
        query = self.draw_query(rng, record)
        shots = [self.draw_shots(rng, label, record) for label in labels]
        crops, crop_boxes, mask = self._crops(rng, shots)
        return Episode(
            query=query.picture,
            boxes=query.boxes,
            ways=ways_of(query.labels, labels),
            ignore=query.ignore,
            crops=crops,
            crop_boxes=crop_boxes,
            shot_mask=mask,
            classes=tuple(self.dataset.classes[label] for label in labels),
            query_id=record.id,
            shot_ids=tuple(tuple((ref.picture, ref.box_id) for ref in refs) for refs in shots),
        )

    def query(self, index: int) -> Query:
        """The query of episode number `index`, with the label of every object."""
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, index])))
        row, _ = self.draw_classes(rng)
        return self.draw_query(rng, self.dataset.records[row])

    def draw_classes(self, rng: np.random.Generator) -> tuple[int, list[int]]:
        """(row of the query, the ways' classes). A query that leaves too few absent classes is drawn
        again, which is still a function of seed and index alone."""
        balanced = self.settings.sampling == "balanced"
        for _ in range(100):
            label = int(rng.choice(self._labels, p=None if balanced else self._weights))
            row = int(rng.choice(self._queries[label]))
            home = _identity(self.dataset.records[row])
            shown = self._present[row] if self.settings.others == "absent" else frozenset({label})
            others = [
                other
                for other, refs in sorted(self._pool.items())
                if other not in shown and any(self._home(ref.picture) != home for ref in refs)
            ]
            if len(others) >= self.settings.ways - 1:
                drawn = rng.choice(len(others), self.settings.ways - 1, replace=False)
                return row, [label, *(others[number] for number in drawn.tolist())]
        raise DataError(
            f"{self.dataset.name}: expected pictures from which {self.settings.ways - 1} classes are absent, "
            "found none in 100 draws; ask for fewer ways or set others = any"
        )

    def draw_query(self, rng: np.random.Generator, record: Record) -> Query:
        """A picture as a query: itself, a cut-out, or with three others a mosaic, as the settings say."""
        members = self.draw_members(rng, record)
        if len(members) == 1:
            query = self._view(rng, record)
        else:
            views = [self._view(rng, member, 0.5) for member in members]
            query = mosaic([views[place] for place in rng.permutation(4).tolist()])
        return self._changed(rng, query)

    def draw_members(self, rng: np.random.Generator, record: Record) -> list[Record]:
        """The pictures that a query is made of, with itself in front: one, or four of a mosaic. The first
        thing that `draw_query` draws."""
        if not self.settings.mosaic or rng.random() >= self.settings.mosaic:
            return [record]
        others = rng.choice(len(self.dataset.records), 3)
        return [record, *(self.dataset.records[row] for row in others.tolist())]

    def _view(self, rng: np.random.Generator, record: Record, scale: float = 1.0) -> Query:
        settings = self.settings
        shorter = int(rng.choice(settings.query_sizes)) * scale
        target = record.target
        query = Query(record.picture(), target.boxes, target.labels, target.ignore.copy())
        if min(settings.zoom) < 1:
            query = cut_out(query, rng, _log_uniform(rng, settings.zoom))
        height, width = query.picture.shape[:2]
        wide, high = stretched_size(width, height, _log_uniform(rng, settings.aspect))
        longer = round(settings.query_longer * scale)
        size = query_size(max(1, round(wide)), max(1, round(high)), max(1, round(shorter)), longer)
        picture, boxes = resize(query.picture, query.boxes, *size)
        if rng.random() < settings.flip:
            picture, boxes = flip(picture, boxes)
        return query._replace(picture=picture, boxes=boxes)

    def _changed(self, rng: np.random.Generator, query: Query) -> Query:
        """Turned and recoloured as often as the settings say; a setting of 0 draws nothing."""
        picture, boxes = query.picture, query.boxes
        if self.settings.turn and rng.random() < self.settings.turn:
            picture, boxes = turn(picture, boxes, int(rng.integers(1, 4)))
        if self.settings.recolour and rng.random() < self.settings.recolour:
            picture = recolour(picture, rng)
        return query._replace(picture=picture, boxes=boxes)

    def draw_shots(self, rng: np.random.Generator, label: int, query: Record) -> list[ShotRef]:
        """Shots of a class (by its row in the class list), none of them from the query's picture (of a
        mosaic, its first)."""
        home = _identity(query)
        refs = [ref for ref in self._pool[label] if self._home(ref.picture) != home]
        most = min(self.settings.shots, len(refs))
        least = min(self.settings.min_shots or most, most)
        count = int(rng.integers(least, most + 1))
        return [refs[number] for number in rng.choice(len(refs), count, replace=False).tolist()]

    def _crops(
        self, rng: np.random.Generator, shots: list[list[ShotRef]]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32], NDArray[np.bool_]]:
        settings = self.settings
        k, z, side = len(shots), settings.shots, settings.support_size
        crops = np.zeros((k, z, side, side, 3), np.uint8)
        boxes = np.zeros((k, z, 4), np.float32)
        mask = np.zeros((k, z), np.bool_)
        for way, refs in enumerate(shots):
            for shot, ref in enumerate(refs):
                crops[way, shot], boxes[way, shot] = self.shot_view(rng, ref)
                mask[way, shot] = True
        return crops, boxes, mask

    def shot_view(
        self, rng: np.random.Generator, ref: ShotRef
    ) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """A view of a shot, its aspect and flip drawn from `rng`: crop and the object's box in it."""
        settings = self.settings
        record = self._record_of[ref.picture]
        picture, boxes = record.picture(), record.target.boxes[ref.box : ref.box + 1]
        aspect = _log_uniform(rng, settings.support_aspect)
        if aspect != 1:
            width, height = stretched_size(record.width, record.height, aspect)
            picture, boxes = resize(picture, boxes, max(1, round(width)), max(1, round(height)))
        crop, box = support_crop(picture, boxes[0], settings.support_size, settings.context)
        if rng.random() < settings.flip:
            crop, flipped = flip(crop, box[None])
            box = flipped[0]
        return crop, box


@dataclass(frozen=True, eq=False)
class QuerySource:
    """The queries of episodes alone, without cutting out their shots: `source[index]` is that of episode
    number `index`. For `load` where only boxes are learned."""

    episodes: EpisodeSource

    def __getitem__(self, index: int) -> Query:
        return self.episodes.query(index)


@dataclass(frozen=True, eq=False)
class PictureSource:
    """The pictures of a set, scaled as queries: `source[row]` is (H, W, 3) uint8 RGB of record `row`.

    For `load` at test time. A box in the scaled picture times `record.width / W` (across) and
    `record.height / H` (down) is in pixels of the record.
    """

    dataset: Dataset
    shorter: int = 600
    longer: int = 1000

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        record = self.dataset.records[index]
        size = query_size(record.width, record.height, self.shorter, self.longer)
        return resize(record.picture(), np.zeros((0, 4), np.float32), *size)[0]


def support_set(
    dataset: Dataset, shots: ShotList, size: int = 320, context: float = 16
) -> dict[str, tuple[NDArray[np.uint8], NDArray[np.float32]]]:
    """The shots of each class as the network takes them, without augmentation.

    For each class with shots: crops (Z, S, S, 3) uint8 and the objects' boxes in them, (Z, 4) float32 xyxy
    in pixels of the crop. Z is the class's own number of shots.
    """
    rows = {record.id: record for record in dataset.records}
    found = {}
    for name, refs in shots.classes.items():
        pairs = [
            support_crop(rows[ref.picture].picture(), rows[ref.picture].target.boxes[ref.box], size, context)
            for ref in refs
        ]
        if pairs:
            found[name] = (np.stack([crop for crop, _ in pairs]), np.stack([box for _, box in pairs]))
    return found


def _identity(record: Record) -> str:
    """What makes two records one picture: the file, or the id of a picture that is in memory only."""
    return record.id if record.pixels is not None else str(record.path)


def _log_uniform(rng: np.random.Generator, bounds: tuple[float, float]) -> float:
    # Drawn even where the bounds are one: then a setting does not shift the random numbers after it.
    share = float(rng.random())
    low, high = np.log(bounds[0]), np.log(bounds[1])
    return float(np.exp(low + (high - low) * share)) if high > low else bounds[0]
