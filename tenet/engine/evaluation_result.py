"""From the detections of an evaluation to its numbers: files that `tenet score` reads, scores of each
draw, mean and standard deviation over seeds. Loads no torch.
"""

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.data.coco import coco_document
from tenet.data.files import write_json
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.evaluation_store import Store
from tenet.engine.protocols import Draw, Plan
from tenet.scoring.coco import score_coco
from tenet.scoring.detections import GroundTruth, Results, ground_truth
from tenet.scoring.report import ClassScore, Scores, Summary, shots_table, summarise
from tenet.scoring.voc import score_voc
from tenet.version import __version__

RESULT_FORMAT = "tenet-evaluation-1"
GRID = np.linspace(0, 1, 101)
"""Recalls at which the curves of a draw are kept."""


@dataclass(frozen=True, eq=False)
class Example:
    """The draw that the report shows pictures of: the one with most shots, of the first seed."""

    draw: Draw
    truth: GroundTruth
    found: Results


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Every number of an evaluation.

    summaries  metric → number of shots → summary over seeds, whose `runs` are in the order of the seeds
    tested     name of draw → test pictures in it
    seconds    of this call; what was found by an earlier one that was stopped is not counted
    objectness whether closed-form objectness was fitted from the shots
    """

    model: str
    weights: str
    settings: EvaluationSettings
    plan: Plan
    summaries: dict[str, dict[int, Summary]]
    tested: dict[str, int]
    example: Example
    seconds: float
    objectness: bool = False

    def headline(self) -> str:
        """One line that says what was measured."""
        settings, test = self.settings, self.plan.test
        sides = ", ".join(f"{len(names)} {side}" for side, names in settings.groups.items())
        return (
            f"{self.model} on {test.name}: {len(test)} pictures, {sides} classes, "
            f"{settings.protocol}, {settings.track} track, shots from {self.plan.shots_from.name}, "
            f"{len(settings.seeds)} seed{'s' if len(settings.seeds) > 1 else ''}"
        )

    def table(self) -> str:
        """The text table: a block for each metric, a column for each number of shots."""
        blocks = [shots_table(by_shots) for by_shots in self.summaries.values()]
        return "\n\n".join([self.headline(), *blocks])

    def to_json(self) -> dict[str, Any]:
        """Everything, for results.json and `--json`."""
        settings, plan = self.settings, self.plan
        return {
            "format": RESULT_FORMAT,
            "model": self.model,
            "weights": self.weights,
            "protocol": settings.protocol,
            "track": settings.track,
            "objectness": self.objectness,
            "settings": settings.to_json(),
            "data": {
                "test": plan.test.name,
                "pictures": len(plan.test),
                "objects": plan.test.class_counts(),
                "shots_from": plan.shots_from.name,
                "tested": self.tested,
            },
            "versions": versions(),
            "seconds": round(self.seconds, 2),
            "results": [
                {"shots": shots, **_summary_json(summary, settings)}
                for by_shots in self.summaries.values()
                for shots, summary in by_shots.items()
            ],
        }


def _summary_json(summary: Summary, settings: EvaluationSettings) -> dict[str, Any]:
    seeds = {
        str(seed): {
            **_numbers(run.values),
            "groups": {side: _numbers(run.group(names)) for side, names in settings.groups.items()},
            "classes": {score.name: _numbers(score.values) for score in run.classes},
        }
        for seed, run in zip(settings.seeds, summary.runs, strict=True)
    }
    document = {key: value for key, value in summary.to_json().items() if key != "runs"}
    return {**document, "seeds": seeds}


def _numbers(values: Mapping[str, float]) -> dict[str, float | None]:
    """JSON has no NaN: what is not defined is null."""
    return {key: None if math.isnan(value) else value for key, value in values.items()}


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    found = {"tenet": __version__, "python": platform.python_version()}
    for package in ("torch", "numpy", "pillow", "hotcoco"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def score_draws(
    plan: Plan,
    settings: EvaluationSettings,
    store: Store,
    shards: Mapping[str, tuple[int, range]],
    coco_files: bool = False,
) -> tuple[dict[str, dict[int, Summary]], dict[str, int], Example]:
    """Score the detections of each draw by its ground truth.

    shards      name of draw → (group, numbers of its shards)
    coco_files  write both, as `tenet score` reads them
    One draw is in memory at a time. Returns summaries, tested pictures and the example.
    """
    document = coco_document(plan.test)
    ids = [image["id"] for image in document["images"]]
    runs: dict[tuple[str, int], list[Scores]] = {}
    tested: dict[str, int] = {}
    shown = next(d for d in plan.draws if (d.shots, d.seed) == (max(settings.shots), settings.seeds[0]))
    for draw in plan.draws:
        own = _without(document, plan, draw)
        truth = ground_truth(own)
        found = stored_results(store, draw.name, shards[draw.name], _places(ids, truth))
        if coco_files:
            write_json(store.folder / "truth" / f"{draw.name}.json", own)
            write_json(store.folder / "detections" / f"{draw.name}.json", results_list(found, truth))
        tested[draw.name] = len(truth.image_ids)
        if draw is shown:
            example = Example(draw, truth, found)
        for metric in settings.metrics:
            runs.setdefault((metric, draw.shots), []).append(score(truth, found, metric, settings.iou))
    summaries: dict[str, dict[int, Summary]] = {metric: {} for metric in settings.metrics}
    for metric in settings.metrics:
        for shots in settings.shots:
            summaries[metric][shots] = summarise(runs[metric, shots], settings.groups)
    return summaries, tested, example


def score(truth: GroundTruth, found: Results, metric: str, iou: float) -> Scores:
    """One draw by one metric, its curves at a hundred and one recalls."""
    full = score_coco(truth, found) if metric == "coco" else score_voc(truth, found, metric, iou=iou)
    return replace(full, classes=tuple(_thin(own) for own in full.classes))


def _thin(own: ClassScore) -> ClassScore:
    """The best precision from each recall of `GRID` on."""
    best = np.maximum.accumulate(own.precision[::-1])[::-1] if len(own.precision) else own.precision
    place = np.searchsorted(own.recall, GRID - 1e-12)
    precision = np.append(best, 0.0)[place]
    return replace(own, recall=GRID, precision=precision)


def _without(document: dict[str, Any], plan: Plan, draw: Draw) -> dict[str, Any]:
    """The ground truth of a draw: without the pictures that hold its shots."""
    gone = {
        image["id"]
        for image, record in zip(document["images"], plan.test.records, strict=True)
        if record.id in draw.left_out
    }
    return {
        **document,
        "images": [image for image in document["images"] if image["id"] not in gone],
        "annotations": [box for box in document["annotations"] if box["image_id"] not in gone],
    }


def _places(ids: list[int], truth: GroundTruth) -> NDArray[np.int64]:
    """Row in the test set → row among the pictures of a draw, -1 for those that it leaves out."""
    row_of = {identity: row for row, identity in enumerate(truth.image_ids)}
    return np.array([row_of.get(identity, -1) for identity in ids], np.int64)


def stored_results(store: Store, name: str, shards: tuple[int, range], places: NDArray[np.int64]) -> Results:
    """The detections of a draw; `places` lead from the store's rows to those of the ground truth. Scores to
    eight places, as a results list has them; empty boxes go."""
    parts = list(store.read(name, *shards))
    rows, boxes, raw, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
    scores = raw.astype(np.float64).round(8)
    sound = (boxes[:, 2:] > boxes[:, :2]).all(1)
    return Results(
        places[rows[sound]],
        labels[sound],
        boxes[sound].astype(np.float64),
        scores[sound],
    )


def results_list(found: Results, truth: GroundTruth) -> list[dict[str, Any]]:
    """The COCO results list of detections: boxes as [x, y, width, height] in pixels of their pictures."""
    ids = {row: identity for identity, row in truth.category_rows.items()}
    bbox = np.concatenate([found.boxes[:, :2], found.boxes[:, 2:] - found.boxes[:, :2]], 1)
    return [
        {"image_id": truth.image_ids[row], "category_id": ids[label], "bbox": box, "score": value}
        for row, label, box, value in zip(
            found.images.tolist(), found.labels.tolist(), bbox.tolist(), found.scores.tolist(), strict=True
        )
    ]
