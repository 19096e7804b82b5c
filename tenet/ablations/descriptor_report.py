"""The table and the figure of what descriptors tell by themselves, from its record."""

from collections.abc import Mapping
from typing import Any

from tenet.ablations.report import POINT
from tenet.records.record import Figure, Record
from tenet.records.tables import markdown, shots_head

METRIC, RANGE = "accuracy", "within"
"""A row's share of crops named rightly, and the half-width of the 95 % interval."""


def descriptor_table(record: Record) -> str:
    """The page: what was done, then a row for each descriptor, percent."""
    config, first = record.config, record.figures[0]
    rows = [
        [f"**{name}**" if name == config["reference"] else name, *(_cell(f, name) for f in record.figures)]
        for name in first.groups
    ]
    channels = f"{config['channels']} channels of " if config["channels"] else ""
    told = (
        f"{first.pictures} boxes of {len(first.classes)} classes of {first.set}, named by the nearest mean "
        f"of the shots; {channels}{record.model['name']}, frozen. Percent, mean of {config['draws']} draws "
        "of shots ± the 95 % interval; the same draws for every row."
    )
    body = markdown(["descriptor", *(shots_head(figure.shots) for figure in record.figures)], rows)
    return f"# {config['table']} without learning\n\n{told}\n\n```\n{record.command}\n```\n\n{body}\n"


def _cell(figure: Figure, name: str) -> str:
    value = _percent(figure.groups[name])
    return f"{value[0]:.1f} ± {value[1]:.1f}"


def _percent(values: Mapping[str, float | None]) -> tuple[float, float]:
    return 100 * (values[METRIC] or 0.0), 100 * (values[RANGE] or 0.0)


def draw_descriptors(record: Record) -> Any:
    """Curves where rows are points of them, bars otherwise; the reference is a line across. Fewest shots."""
    from tenet.drawing.figures import one_panel

    figure, axes = one_panel()
    told = record.figures[0]
    reference = record.config["reference"]
    points = {name: POINT.fullmatch(name) for name in told.groups if name != reference}
    level = _percent(told.groups[reference])[0]
    if all(points.values()):
        series: dict[str, list[tuple[float, float, float]]] = {}
        for name, point in points.items():
            assert point is not None
            own = series.setdefault(point["series"] or "", [])
            own.append((float(point["value"]), *_percent(told.groups[name])))
            axes.set_xlabel(point["axis"])
        for name, own in series.items():
            x, y, within = zip(*own, strict=True)
            axes.errorbar(x, y, within, marker="o", capsize=3, label=name or None)
        axes.axhline(level, color="grey", linestyle="--", label=reference)
        axes.set_xticks(sorted({x for own in series.values() for x, *_ in own}))
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))
        axes.set_ylabel("crops named rightly, percent")
    else:
        values = [_percent(told.groups[name]) for name in points]
        axes.barh(range(len(values)), [v[0] for v in values], xerr=[v[1] for v in values], capsize=2)
        axes.set_yticks(range(len(values)), list(points))
        axes.invert_yaxis()
        axes.axvline(level, color="grey", linestyle="--", label=reference)
        axes.legend()
        axes.set_xlabel("crops named rightly, percent")
    axes.set_title(f"{record.config['table']} without learning: {told.set}, {shots_head(told.shots)}")
    return figure
