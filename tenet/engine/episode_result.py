"""From the detections of episodes to their numbers: mean and confidence interval over episodes. No torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenet.data.coco import coco_document
from tenet.data.dataset import Dataset
from tenet.engine.episode_plan import EpisodeDraw, EpisodePlan
from tenet.engine.evaluation_result import stored_results, versions
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.evaluation_store import Store
from tenet.scoring.coco import score_coco
from tenet.scoring.detections import ground_truth
from tenet.scoring.report import Scores

EPISODES_FORMAT = "tenet-episodes-1"
METRICS = ("AP50", "AP", "AP75")
NORMAL_95 = 1.96
"""Standard errors of a mean on either side of it, for 95 % confidence."""


@dataclass(frozen=True)
class Interval:
    """The mean over `count` episodes, and half the width of its 95 % confidence interval: 1.96 standard
    errors. Not a number for one episode, which says nothing about its spread."""

    mean: float
    half: float
    count: int

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f}" + (f" ± {100 * self.half:.1f}" if self.count > 1 else "")

    def to_json(self) -> dict[str, float | int | None]:
        half = None if math.isnan(self.half) else self.half
        return {"mean": self.mean, "half_width_95": half, "episodes": self.count}


def interval(values: Sequence[float]) -> Interval:
    half = NORMAL_95 * float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Interval(float(np.mean(values)), half, len(values))


@dataclass(frozen=True, eq=False)
class EpisodeEvaluation:
    """Every number of an evaluation by episodes.

    scores   number of shots → the scores of each of its episodes
    seconds  of this call; what an earlier one found that was stopped is not counted
    """

    model: str
    weights: str
    settings: EvaluationSettings
    plan: EpisodePlan
    scores: dict[int, tuple[Scores, ...]]
    seconds: float
    objectness: bool = False

    def value(self, shots: int, metric: str) -> Interval:
        """`AP50`, `AP` or `AP75` over the episodes of a number of shots."""
        return interval([scores.values[metric] for scores in self.scores[shots]])

    def of_class(self, shots: int, metric: str) -> dict[str, Interval]:
        """The same for each class, over the episodes that it is a way of."""
        found: dict[str, list[float]] = {}
        for scores in self.scores[shots]:
            for own in scores.classes:
                found.setdefault(own.name, []).append(own.values[metric])
        return {name: interval(found[name]) for name in self.settings.classes if name in found}

    def headline(self) -> str:
        """One line that says what was measured."""
        settings, test = self.settings, self.plan.test
        return (
            f"{self.model} on {test.name}: {len(test)} pictures, {len(settings.classes)} classes, "
            f"{settings.episodes} {settings.ways}-way episodes, {settings.queries} queries of each way, "
            f"{settings.track} track, seed {settings.seeds[0]}"
        )

    def table(self) -> str:
        """The text table: a column for each number of shots."""
        heads = "".join(f"{shots} shot{'s' if shots > 1 else ''}".rjust(14) for shots in self.scores)
        lines = [f"COCO, percent, mean over {self.settings.episodes} episodes ± 95 % confidence"]
        lines.append(" " * 8 + heads)
        for metric in METRICS:
            cells = "".join(str(self.value(shots, metric)).rjust(14) for shots in self.scores)
            lines.append(f"  {metric.ljust(6)}{cells}")
        return "\n\n".join([self.headline(), "\n".join(lines)])

    def to_json(self) -> dict[str, Any]:
        """Everything, for results.json and `--json`."""
        return {
            "format": EPISODES_FORMAT,
            "model": self.model,
            "weights": self.weights,
            "protocol": self.settings.protocol,
            "track": self.settings.track,
            "objectness": self.objectness,
            "settings": self.settings.to_json(),
            "data": {"test": self.plan.test.name, "pictures": len(self.plan.test)},
            "versions": versions(),
            "seconds": round(self.seconds, 2),
            "results": [self._result(shots) for shots in self.scores],
        }

    def _result(self, shots: int) -> dict[str, Any]:
        episodes = [
            {
                "number": draw.number,
                "classes": {own.name: own.values["AP"] for own in scores.classes},
                "pictures": [self.plan.test.records[row].id for row in draw.queries],
                **{metric: scores.values[metric] for metric in METRICS},
            }
            for draw, scores in zip(self.plan.episodes[shots], self.scores[shots], strict=True)
        ]
        return {
            "shots": shots,
            **{metric: self.value(shots, metric).to_json() for metric in METRICS},
            "classes": {name: own.to_json() for name, own in self.of_class(shots, "AP").items()},
            "episodes": episodes,
        }


def score_episode(plan: EpisodePlan, draw: EpisodeDraw, store: Store, group: int) -> Scores:
    """One episode by COCO's metrics: its ways, over its own pictures."""
    pictures = tuple(plan.test.records[row] for row in draw.queries)
    document = coco_document(Dataset("episode", plan.test.classes, pictures).with_classes(draw.classes))
    shard = range(draw.number, draw.number + 1)
    found = stored_results(store, "episode", (group, shard), np.arange(len(pictures)))
    return score_coco(ground_truth(document), found)
