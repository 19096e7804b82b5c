"""Scores as numbers: per class, grouped into base and novel, mean ± standard deviation over seeds; as JSON
and as a text table. Values are shares, 0 to 1; the table shows percent.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.errors import InputError

TITLES = {
    "coco": "COCO, percent",
    "voc07": "VOC 11-point AP, percent",
    "voc12": "VOC every-point AP, percent",
}


@dataclass(frozen=True, eq=False)
class ClassScore:
    """One class: its metrics (NaN where it has no object), objects to find, and curve."""

    name: str
    values: dict[str, float]
    positives: int
    recall: NDArray[np.float64] = field(repr=False)
    precision: NDArray[np.float64] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Scores:
    """One set of detections: metrics over all classes, and of each class."""

    metric: str
    iou: float | None
    values: dict[str, float]
    classes: tuple[ClassScore, ...]

    def group(self, names: Iterable[str]) -> dict[str, float]:
        """Means over the named classes that have objects."""
        wanted = set(names)
        rows = [score for score in self.classes if score.name in wanted]
        return {key: _mean(score.values[key] for score in rows) for key in self.values}


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (of a sample, n − 1) over runs."""

    mean: float
    std: float
    runs: int

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "–"
        return f"{100 * self.mean:.1f}" + (f" ± {100 * self.std:.1f}" if self.runs > 1 else "")


def spread(values: Sequence[float]) -> Spread:
    """Mean and standard deviation of the values that are numbers."""
    defined = [value for value in values if not math.isnan(value)]
    if not defined:
        return Spread(float("nan"), float("nan"), 0)
    std = float(np.std(defined, ddof=1)) if len(defined) > 1 else 0.0
    return Spread(float(np.mean(defined)), std, len(defined))


@dataclass(frozen=True, eq=False)
class Summary:
    """Several runs of one metric, one for each seed: every number with its spread."""

    metric: str
    iou: float | None
    runs: tuple[Scores, ...]
    overall: dict[str, Spread]
    classes: dict[str, dict[str, Spread]]
    groups: dict[str, dict[str, Spread]]

    def to_json(self) -> dict[str, Any]:
        """For `--json`: the means at the top under the metrics' own names, spreads and runs below."""
        document: dict[str, Any] = {"metric": self.metric, "iou": self.iou}
        document |= {key: _number(value.mean) for key, value in self.overall.items()}
        positives = {score.name: score.positives for score in self.runs[0].classes}
        document["classes"] = {
            name: {**{key: _number(value.mean) for key, value in row.items()}, "positives": positives[name]}
            for name, row in self.classes.items()
        }
        document["groups"] = {
            name: {key: _number(value.mean) for key, value in row.items()}
            for name, row in self.groups.items()
        }
        if len(self.runs) > 1:
            document["std"] = {key: _number(value.std) for key, value in self.overall.items()}
            document["class_std"] = {name: _stds(row) for name, row in self.classes.items()}
            document["group_std"] = {name: _stds(row) for name, row in self.groups.items()}
            document["runs"] = [{key: _number(v) for key, v in run.values.items()} for run in self.runs]
        return document


def summarise(runs: Sequence[Scores], groups: Mapping[str, Iterable[str]] | None = None) -> Summary:
    """Runs that differ in their seed alone, brought together.

    groups  names of groups and their classes, such as {"base": …, "novel": …}; a group of which no
            class was scored is left out
    """
    if not runs:
        raise InputError("summarise: expected at least one run, got none")
    first = runs[0]
    names = [score.name for score in first.classes]
    for run in runs[1:]:
        if (run.metric, run.iou, [score.name for score in run.classes]) != (first.metric, first.iou, names):
            raise InputError("summarise: expected runs of one metric, threshold and class list, got others")
    keys = list(first.values)
    classes = {
        name: {key: spread([run.classes[row].values[key] for run in runs]) for key in keys}
        for row, name in enumerate(names)
    }
    grouped = {
        group: {key: spread([run.group(members)[key] for run in runs]) for key in keys}
        for group, members in ((group, set(members)) for group, members in (groups or {}).items())
        if members & set(names)
    }
    overall = {key: spread([run.values[key] for run in runs]) for key in keys}
    return Summary(first.metric, first.iou, tuple(runs), overall, classes, grouped)


def table(summary: Summary) -> str:
    """A text table: the metrics over all classes, then groups and classes by AP."""
    seeds = f", {len(summary.runs)} runs, mean ± std" if len(summary.runs) > 1 else ""
    at = f", IoU {summary.iou:g}" if summary.iou is not None else ""
    lines = [f"{TITLES[summary.metric]}{at}{seeds}"]
    lines += [f"  {key:<8}{value!s:>14}" for key, value in summary.overall.items()]
    shown = [key for key in summary.overall if key in ("AP", "AP50", "AP75") or key.startswith("AP@")]
    width = max([len(name) for name in (*summary.classes, *summary.groups)], default=5) + 2
    lines.append("  " + "class".ljust(width) + "".join(key.rjust(14) for key in shown) + "objects".rjust(10))
    positives = {score.name: score.positives for score in summary.runs[0].classes}
    for name, row in (*summary.groups.items(), *summary.classes.items()):
        cells = "".join(str(row[key]).rjust(14) for key in shown)
        count = str(positives[name]) if name in positives else ""
        lines.append(f"  {name.ljust(width)}{cells}{count.rjust(10)}".rstrip())
    return "\n".join(lines)


def shots_table(by_shots: Mapping[int, Summary]) -> str:
    """A text table of one metric with a column for each number of shots: groups, classes, then the other
    metrics over all classes."""
    first = next(iter(by_shots.values()))
    keys = list(first.overall)
    seeds = f", {len(first.runs)} seeds, mean ± std" if len(first.runs) > 1 else ""
    at = f", IoU {first.iou:g}" if first.iou is not None else ""
    named = (*first.groups, *first.classes, "all classes", *keys)
    width = max(len(name) for name in named) + 2
    heads = "".join(f"{shots} shot{'s' if shots > 1 else ''}".rjust(14) for shots in by_shots)
    lines = [f"{TITLES[first.metric]}{at}{seeds}", "  " + keys[0].ljust(width) + heads]

    def row(name: str, cells: Iterable[Spread]) -> None:
        lines.append(f"  {name.ljust(width)}" + "".join(str(cell).rjust(14) for cell in cells))

    if len(first.groups) != 1:  # one group is all classes
        row("all classes", (summary.overall[keys[0]] for summary in by_shots.values()))
    for group in first.groups:
        row(group, (summary.groups[group][keys[0]] for summary in by_shots.values()))
    for name in first.classes:
        row(name, (summary.classes[name][keys[0]] for summary in by_shots.values()))
    for key in keys[1:]:
        row(key, (summary.overall[key] for summary in by_shots.values()))
    return "\n".join(lines)


def _mean(values: Iterable[float]) -> float:
    defined = [value for value in values if not math.isnan(value)]
    return float(np.mean(defined)) if defined else float("nan")


def _number(value: float) -> float | None:
    """JSON has no NaN: what is not defined is null."""
    return None if math.isnan(value) else value


def _stds(row: dict[str, Spread]) -> dict[str, float | None]:
    return {key: _number(value.std) for key, value in row.items()}
