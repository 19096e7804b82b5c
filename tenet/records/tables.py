"""Tables in Markdown from records: mean ± standard deviation over seeds, percent."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tenet.errors import DataError
from tenet.records.record import Figure, Record
from tenet.scoring.report import TITLES, Spread, spread

PROTOCOLS = (
    "meta-test",
    "fine-tuned",
    "trial",
    "trial, bare crops",
    "trial, fine-tuned on the shots",
    "trial, fine-tuned on the shots' pictures",
    "episodes",
)
ALONE = ("shots", "seeds", "protocol", "adaptation", "metrics", "bare", "finetune")
"""Settings in which records of one table may differ."""


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, a line for each row; a bar in a cell is escaped."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def shots_head(shots: int) -> str:
    return f"{shots} shot{'s' if shots > 1 else ''}"


def mean_of(values: Iterable[float | None]) -> Spread:
    """Mean ± std of the values that are defined."""
    return spread([math.nan if value is None else float(value) for value in values])


def tables(records: Mapping[Path, Record]) -> str:
    """A section for each model, set and metric: protocols by numbers of shots, with the number of seeds."""
    sections: dict[tuple[str, ...], list[tuple[Path, Record, Figure]]] = {}
    for path, record in records.items():
        for figure in record.figures:
            sections.setdefault(_section(record, figure), []).append((path, record, figure))
    return "\n\n".join(_table(rows) for _, rows in sorted(sections.items()))


def _section(record: Record, figure: Figure) -> tuple[str, ...]:
    """What must be equal for two figures to be in one table."""
    settings = record.config.get("settings", {})
    rest = {key: value for key, value in settings.items() if key not in ALONE}
    name, weights = str(record.model["name"]), str(record.model.get("weights", ""))
    return (name, weights, figure.set, str(figure.pictures), figure.metric, json.dumps(rest, sort_keys=True))


def _table(rows: list[tuple[Path, Record, Figure]]) -> str:
    _, record, first = rows[0]
    draws = _draws(rows)
    shots = sorted({figure.shots for figure in draws.values()})
    lines = []
    for protocol in sorted({key[0] for key in draws}, key=_place):
        own = [figure for key, figure in draws.items() if key[0] == protocol]
        for group in dict.fromkeys(name for figure in own for name in figure.groups):
            for value in dict.fromkeys(name for figure in own for name in figure.groups.get(group, {})):
                cells = [
                    mean_of(f.groups[group].get(value) for f in own if f.shots == count and group in f.groups)
                    for count in shots
                ]
                lines.append([protocol, group, value, *map(str, cells), _seeds(own)])
    title = f"### {record.model['name']} on {first.set}: {TITLES.get(first.metric, first.metric)}"
    weights = str(record.model.get("weights", ""))[:8]
    note = f"{first.pictures} pictures" + (f", weights {weights}" if weights else "")
    heads = ["protocol", "classes", "", *map(shots_head, shots), "seeds"]
    return f"{title}\n\n{note}\n\n{markdown(heads, lines)}"


def _draws(rows: list[tuple[Path, Record, Figure]]) -> dict[tuple[str, int, int], Figure]:
    """Figures by protocol, shots and seed; a draw that was measured twice must have given the same."""
    found: dict[tuple[str, int, int], tuple[Path, Figure]] = {}
    for path, _, figure in rows:
        key = (figure.protocol, figure.shots, figure.seed)
        if key in found and found[key][1] != figure:
            raise DataError(
                f"{path}: expected the figures of {found[key][0]} for {figure.protocol}, "
                f"{shots_head(figure.shots)}, seed {figure.seed}, got others; keep one of the two records"
            )
        found[key] = (path, figure)
    return {key: figure for key, (_, figure) in found.items()}


def _seeds(figures: list[Figure]) -> str:
    return ", ".join(map(str, sorted({figure.seed for figure in figures})))


def _place(protocol: str) -> int:
    return PROTOCOLS.index(protocol) if protocol in PROTOCOLS else len(PROTOCOLS)
