"""The table and the figure of an ablation, from its records alone. Loads no torch."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenet.ablations.plan import decisive
from tenet.data.files import write_text
from tenet.errors import DataError
from tenet.presets import ABLATION_TABLES
from tenet.records.record import Record, find_records
from tenet.records.tables import markdown, mean_of, shots_head
from tenet.scoring.report import TITLES, Spread
from tenet.settings import Table, differences

POINT = re.compile(r"(?:(?P<series>.+) )?(?P<axis>[^ =]+)=(?P<value>\d+(?:\.\d+)?)")
"""A row that is a point of a curve: `sigma=0.5`, or `r=2,3 eta=7` on the curve `r=2,3`."""
Column = tuple[str, str, int]
"""Test set, group of classes, shots."""


@dataclass(frozen=True)
class Variant:
    """A row: its records by seed, and whether it is the base itself."""

    name: str
    reference: bool
    records: dict[int, Record]

    def draws(self, seed: int, column: Column, metric: str) -> dict[int, float | None]:
        """AP of one training in each of its draws."""
        return {
            figure.seed: figure.groups[column[1]].get("AP")
            for figure in self.records[seed].figures
            if (figure.set, figure.shots, figure.metric) == (column[0], column[2], metric)
            and column[1] in figure.groups
        }

    def value(self, seed: int, column: Column, metric: str) -> float | None:
        """The mean over the draws of one training."""
        mean = mean_of(self.draws(seed, column, metric).values())
        return mean.mean if mean.runs else None

    def spread(self, column: Column, metric: str) -> Spread:
        """Over the trainings."""
        return mean_of(self.value(seed, column, metric) for seed in self.records)


@dataclass(frozen=True)
class Outcome:
    """All that was measured of an ablation so far."""

    name: str
    variants: tuple[Variant, ...]

    @property
    def title(self) -> str:
        return f"{self.name}: {ABLATION_TABLES.get(self.name, 'an ablation of another version')}"

    @property
    def recipe(self) -> Table:
        found: Table = self._any().config["recipe"]
        return found

    @property
    def metric(self) -> str:
        return str(self.recipe["evaluate"]["metric"])

    @property
    def columns(self) -> list[Column]:
        """Novel classes before base ones, as the paper has them; fewer shots before more."""
        found = {
            (figure.set, group, figure.shots)
            for variant in self.variants
            for record in variant.records.values()
            for figure in record.figures
            for group in figure.groups
        }
        return sorted(found, key=lambda column: (column[0], column[1] != "novel", column[1], column[2]))

    @property
    def reference(self) -> Variant | None:
        return next((variant for variant in self.variants if variant.reference), None)

    def _any(self) -> Record:
        return next(iter(self.variants[0].records.values()))


def read_outcome(results: Path, name: str) -> Outcome:
    """The records of an ablation; such that do not belong in one table are a DataError."""
    folder = results / name
    records = {path: record for path, record in find_records(folder).items() if record.kind == "ablation"}
    if not records:
        raise DataError(f"{folder}: expected records of `tenet ablate {name}`, found none; run it first")
    _refuse_mixed(records)
    rows: dict[tuple[int, str], dict[int, Record]] = {}
    for record in records.values():
        own = rows.setdefault((record.config["place"], record.config["variant"]), {})
        own[record.config["seed"]] = record
    variants = [
        Variant(
            variant, any(record.config["reference"] for record in own.values()), dict(sorted(own.items()))
        )
        for (_, variant), own in sorted(rows.items())
    ]
    return Outcome(str(next(iter(records.values())).config["ablation"]), tuple(variants))


def _refuse_mixed(records: dict[Path, Record]) -> None:
    """All must have the same data, budget and evaluation: everything but the model and the seeds."""
    first, *others = records
    ground = _ground(records[first], first)
    for path in others:
        found = differences(ground, _ground(records[path], path))
        if found:
            raise DataError(
                f"{path}: expected the ground of {first}, but {found[0]}; keep them in different folders"
            )


def _ground(record: Record, path: Path) -> Table:
    try:
        table = decisive(record.config["recipe"])
        table["evaluate"]["draws"] = len(table["evaluate"].pop("seeds"))
        for name in ("place", "variant", "seed", "reference"):
            record.config[name]
        table["ablation"] = record.config["ablation"]
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: expected a record of `tenet ablate`, but {error} is not in it") from error
    return {key: value for key, value in table.items() if key not in ("model", "seed")}


def table(outcome: Outcome) -> str:
    """The page: what was equal for all, then a row for each variant, mean ± std over trainings."""
    columns, metric, reference = outcome.columns, outcome.metric, outcome.reference
    several = len({column[0] for column in columns}) > 1
    heads = [
        f"{group}, {shots_head(shots)}" + (f", {test}" if several else "") for test, group, shots in columns
    ]
    compared = [column for column in columns if reference is not None and column[1] == columns[0][1]]
    heads += [f"Δ {shots_head(shots)}" + (f", {test}" if several else "") for test, _, shots in compared]
    rows = []
    for variant in outcome.variants:
        cells = [str(variant.spread(column, metric)) for column in columns]
        cells += [_against(variant, reference, column, metric) for column in compared]
        name = f"**{variant.name}**" if variant.reference else variant.name
        rows.append([name, *cells, ", ".join(map(str, variant.records))])
    body = markdown(["variant", *heads, "seeds"], rows)
    return f"# {outcome.title}\n\n{_told(outcome)}\n\n{body}\n"


def _against(variant: Variant, reference: Variant | None, column: Column, metric: str) -> str:
    """The mean difference from the reference over all draws that both have, which share their episodes and
    their shots, ± the standard error of that mean."""
    if reference is None or variant.reference:
        return ""
    differences = []
    for seed in variant.records.keys() & reference.records.keys():
        mine, theirs = (one.draws(seed, column, metric) for one in (variant, reference))
        pairs = [(mine[draw], theirs[draw]) for draw in mine.keys() & theirs.keys()]
        differences += [None if a is None or b is None else a - b for a, b in pairs]
    found = mean_of(differences)
    if not found.runs:
        return "–"
    error = f" ± {100 * found.std / math.sqrt(found.runs):.1f}" if found.runs > 1 else ""
    return f"{100 * found.mean:+.1f}{error}"


def _told(outcome: Outcome) -> str:
    """The common budget, in words, and the commands."""
    recipe, records = outcome.recipe, [r for v in outcome.variants for r in v.records.values()]
    train, evaluate = recipe["train"], recipe["evaluate"]
    draws = len(evaluate["seeds"])
    pictures = " and ".join(
        f"{count} pictures of {name}"
        for name, count in sorted({(f.set, f.pictures) for record in records for f in record.figures})
    )
    commits = sorted({_commit(record) for record in records})
    commands = sorted({record.command for record in records})
    lines = [
        f"{TITLES[outcome.metric]}, {pictures}, meta-test. Every variant: {train['iterations']} steps of "
        f"{train['batch']} episodes on {', '.join(recipe['data']['train'])}"
        + (f", base classes of {recipe['data']['split']}" if recipe["data"]["split"] else "")
        + f"; each training tested with {draws} draw{'s' if draws > 1 else ''} of shots; "
        "mean ± std over seeds of training. The base is bold; Δ is the difference from it, draw by draw, ± "
        "the standard error of its mean.",
        f"Commit{'s' if len(commits) > 1 else ''} {', '.join(commits)}.",
        "\n".join(["```", *commands, "```"]),
    ]
    return "\n\n".join(lines)


def _commit(record: Record) -> str:
    made: Any = record.made_by
    if not made.get("commit"):
        return f"unknown (tenet {made.get('tenet', '?')})"
    return str(made["commit"])[:12] + (" with changes" if made.get("changed") else "")


def draw(outcome: Outcome) -> Any:
    """The figure: curves where every row is a point of one, bars otherwise. First group of classes, first
    test set."""
    from tenet.drawing.figures import one_panel

    first = outcome.columns[0]
    columns = [column for column in outcome.columns if column[:2] == first[:2]]
    figure, axes = one_panel()
    points = [POINT.fullmatch(variant.name) for variant in outcome.variants]
    if all(points):
        _curves(axes, outcome, [point for point in points if point is not None], columns)
    else:
        _bars(axes, outcome, columns)
    axes.set_title(outcome.title)
    return figure


def _curves(axes: Any, outcome: Outcome, points: Sequence[re.Match[str]], columns: list[Column]) -> None:
    series: dict[str, list[tuple[float, Variant]]] = {}
    for point, variant in zip(points, outcome.variants, strict=True):
        series.setdefault(point["series"] or "", []).append((float(point["value"]), variant))
    # One curve: a line for each number of shots. Several: the most shots alone, as in the paper.
    shown = columns if len(series) == 1 else columns[-1:]
    for name, own in series.items():
        own.sort(key=lambda pair: pair[0])
        for column in shown:
            spreads = [variant.spread(column, outcome.metric) for _, variant in own]
            label = name if len(series) > 1 else shots_head(column[2])
            axes.errorbar(
                [x for x, _ in own],
                [100 * s.mean for s in spreads],
                [100 * s.std if s.runs > 1 else math.nan for s in spreads],
                marker="o",
                capsize=3,
                label=label,
            )
    values = sorted({x for own in series.values() for x, _ in own})
    if values[-1] >= 16 * values[0]:
        axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    _, group, shots = shown[-1]
    where = f"{group} classes" + (f", {shots_head(shots)}" if len(shown) == 1 else "")
    axes.set(xlabel=points[0]["axis"], ylabel=f"AP of {where}, percent")
    axes.legend()


def _bars(axes: Any, outcome: Outcome, columns: list[Column]) -> None:
    height = 0.8 / len(columns)
    for number, column in enumerate(columns):
        spreads = [variant.spread(column, outcome.metric) for variant in outcome.variants]
        axes.barh(
            [row + number * height for row in range(len(spreads))],
            [100 * s.mean for s in spreads],
            height,
            xerr=[100 * s.std if s.runs > 1 else math.nan for s in spreads],
            capsize=2,
            label=shots_head(column[2]),
        )
    middle = height * (len(columns) - 1) / 2
    axes.set_yticks(
        [row + middle for row in range(len(outcome.variants))], [variant.name for variant in outcome.variants]
    )
    axes.invert_yaxis()
    axes.set(xlabel=f"AP of {columns[0][1]} classes, percent")
    axes.legend()


def write_report(results: Path, name: str) -> list[Path]:
    """Write table.md and, where matplotlib is there, figure.png beside the records; returns their paths."""
    from tenet.drawing.figures import save_figure
    from tenet.errors import MissingExtraError

    outcome = read_outcome(results, name)
    paths = [results / name / "table.md", results / name / "figure.png"]
    write_text(paths[0], table(outcome))
    try:
        save_figure(draw(outcome), paths[1])
    except MissingExtraError:
        return paths[:1]
    return paths
