"""Episodes over a fixed number of views of each picture and shot: what a feature cache can hold.

A view is a scale, an aspect, a flip, a cut-out or a mosaic, drawn once from the picture and the view's
number: runs with other seeds have the same views. `EpisodeSource` draws them anew in every episode; here
an episode draws among the views. Everything is still a function of seed and number, and episodes can be
made from pixels or from cached maps.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tenet.data.dataset import Record
from tenet.data.episodes import Episode, EpisodeSource
from tenet.data.queries import Query, ways_of
from tenet.data.shots import ShotRef


@dataclass(frozen=True)
class View:
    """A view of a query (`box` is −1) or of a shot: the picture's id, the box's row, the view's number."""

    picture: str
    box: int
    number: int


@dataclass(frozen=True)
class Plan:
    """An episode by name: row of the query in the set, its view (None where it is drawn anew), the ways'
    labels and the shots' views."""

    row: int
    query: View | None
    labels: list[int]
    shots: list[list[View]]


class ViewEpisodes:
    """Episodes of `source` over `views` of each query and `shot_views` of each shot.

    With 0 views queries are drawn anew for every episode, as `EpisodeSource` does, and only shots are views.
    """

    def __init__(self, source: EpisodeSource, views: int, shot_views: int) -> None:
        self.source, self.views, self.shot_views = source, views, shot_views
        self._records = {record.id: record for record in source.dataset.records}

    def plan(self, index: int) -> Plan:
        """What episode number `index` is made of."""
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.source.seed, index])))
        row, labels = self.source.draw_classes(rng)
        record = self.source.dataset.records[row]
        query = View(record.id, -1, int(rng.integers(self.views))) if self.views else None
        shots = [
            [
                View(ref.picture, ref.box, int(rng.integers(self.shot_views)))
                for ref in self.source.draw_shots(rng, label, record)
            ]
            for label in labels
        ]
        return Plan(row, query, labels, shots)

    def look(self, view: View) -> Query:
        """A view in pixels: the query with all its objects, or the crop with the shot's box alone."""
        rng = _rng(view)
        if view.box < 0:
            return self.source.draw_query(rng, self._records[view.picture])
        crop, box = self.source.shot_view(rng, ShotRef(view.picture, view.box, -1))
        label = self.source.shot_record(view.picture).target.labels[view.box]
        return Query(crop, box[None], np.array([label]), np.zeros(1, np.bool_))

    def records(self, view: View) -> list[Record]:
        """The records of the pictures that a view is made of."""
        if view.box < 0:
            return self.source.draw_members(_rng(view), self._records[view.picture])
        return [self.source.shot_record(view.picture)]

    def all_views(self) -> list[View]:
        """Every view that an episode can ask for, queries first."""
        queries = [
            View(self.source.dataset.records[row].id, -1, number)
            for row in (self.source.query_rows() if self.views else [])
            for number in range(self.views)
        ]
        shots = [
            View(ref.picture, ref.box, number)
            for ref in self.source.shot_refs()
            for number in range(self.shot_views)
        ]
        return queries + shots

    def views_of(self, episodes: int, with_shots: bool = True) -> list[View]:
        """The views that the first `episodes` episodes ask for: of a short run few, of a long one all."""
        asked = self._asked(episodes)
        return asked if with_shots else [view for view in asked if view.box < 0]

    def _asked(self, episodes: int) -> list[View]:
        everything = self.all_views()
        queries = sum(view.box < 0 for view in everything)
        drawn = episodes * self.source.settings.ways * self.source.settings.shots
        if episodes >= 2 * queries and drawn >= 2 * (len(everything) - queries):
            return everything
        asked: dict[View, None] = {}
        for index in range(episodes):
            plan = self.plan(index)
            query = [plan.query] if plan.query is not None else []
            asked.update(dict.fromkeys([*query, *(view for shots in plan.shots for view in shots)]))
        return list(asked)

    def __getitem__(self, index: int) -> Episode:
        """Episode number `index` from pixels."""
        plan = self.plan(index)
        record = self.source.dataset.records[plan.row]
        query = self.query(index, plan)
        settings = self.source.settings
        mask = self.mask(plan)
        crops = np.zeros((*mask.shape, settings.support_size, settings.support_size, 3), np.uint8)
        crop_boxes = np.zeros((*mask.shape, 4), np.float32)
        for way, views in enumerate(plan.shots):
            for shot, view in enumerate(views):
                look = self.look(view)
                crops[way, shot], crop_boxes[way, shot] = look.picture, look.boxes[0]
        return Episode(
            query=query.picture,
            boxes=query.boxes,
            ways=ways_of(query.labels, plan.labels),
            ignore=query.ignore,
            crops=crops,
            crop_boxes=crop_boxes,
            shot_mask=mask,
            classes=tuple(self.source.dataset.classes[label] for label in plan.labels),
            query_id=record.id,
            shot_ids=tuple(tuple((view.picture, view.box) for view in views) for views in plan.shots),
        )

    def query(self, index: int, plan: Plan) -> Query:
        """The query of episode number `index` in pixels."""
        record = self.source.dataset.records[plan.row]
        if plan.query is None:
            seeds = np.random.SeedSequence([self.source.seed, index, 1])
            return self.source.draw_query(np.random.Generator(np.random.Philox(seeds)), record)
        return self.look(plan.query)

    def mask(self, plan: Plan) -> NDArray[np.bool_]:
        """(K, Z): which shots there are."""
        counts = np.array([len(views) for views in plan.shots])
        mask: NDArray[np.bool_] = np.arange(self.source.settings.shots) < counts[:, None]
        return mask


def _rng(view: View) -> np.random.Generator:
    text = f"{view.picture}\x00{view.box}\x00{view.number}"
    seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")
    return np.random.Generator(np.random.Philox(seed))
