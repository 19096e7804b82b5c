"""Charts and marked pictures as inline SVG, written by hand: they need no package, no outside host, and
take their colours from the page, so that they follow its dark and its light look. Loads no torch.
"""

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from tenet.drawing.html_parts import data_uri
from tenet.engine.evaluation_examples import MISSED, Mark
from tenet.scoring.report import Scores, Spread

HUES = (211, 28, 140, 340, 265, 52, 180, 0, 95, 310)
"""Of the curves, in turn."""
MOST_TAGS = 4
"""Boxes of a kind that carry their class and score in a picture: the surest, so that they stay legible."""


def curves(runs: Sequence[Scores], width: int = 560, height: int = 360) -> str:
    """Precision over recall, mean over runs: a line for each class with objects, and their mean."""
    left, top, right, bottom = 44, 12, width - 12, height - 40

    def points(recall: NDArray[np.float64], precision: NDArray[np.float64]) -> str:
        x, y = left + recall * (right - left), bottom - precision * (bottom - top)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))

    parts = [f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" aria-label="precision–recall">']
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x, y = left + tick * (right - left), bottom - tick * (bottom - top)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}M{x:.1f} {top}V{bottom}"/>')
        parts.append(_text(f"{tick:g}", left - 6, y + 4, "end"))
        parts.append(_text(f"{tick:g}", x, bottom + 16, "middle"))
    parts.append(_text("recall", (left + right) / 2, height - 6, "middle"))
    parts.append(
        f'<g transform="rotate(-90 12 {height / 2})">{_text("precision", 12, height / 2, "middle")}</g>'
    )
    known = [row for row, score in enumerate(runs[0].classes) if score.positives]
    lines = [np.mean([run.classes[row].precision for run in runs], axis=0) for row in known]
    grid = runs[0].classes[0].recall
    for hue, row, line in zip(HUES, known, lines, strict=False):
        name = f"<title>{escape(runs[0].classes[row].name)}</title>"
        shape = f'points="{points(grid, line)}"'
        parts.append(f'<polyline class="line" style="--h:{hue}" {shape}>{name}</polyline>')
    if lines:
        parts.append(f'<polyline class="line mean" points="{points(grid, np.mean(lines, axis=0))}"/>')
    names = [escape(runs[0].classes[row].name) for row in known]
    legend = [f'<span style="--h:{hue}"><i></i>{name}</span>' for hue, name in zip(HUES, names, strict=False)]
    legend.append('<span class="mean"><i></i>mean</span>')
    if len(known) > len(HUES):
        legend.append(f"<span>and {len(known) - len(HUES)} more in the mean</span>")
    return "".join(parts) + f'</svg><p class="legend">{"".join(legend)}</p>'


def _text(text: str, x: float, y: float, anchor: str = "start", kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def bars(rows: Sequence[tuple[str, Sequence[tuple[str, Spread]]]]) -> str:
    """(class, (label, value) of each number of shots): horizontal bars with their standard deviation."""
    label, width, thick, gap = 190, 560, 13, 9
    tops = [value.mean + value.std for _, cells in rows for _, value in cells if value.runs]
    scale = (width - label - 84) / max([*tops, 0.01])
    parts, y = [], 4.0
    for name, cells in rows:
        parts.append(_text(_short(name, 28), label - 8, y + thick * len(cells) / 2 + 4, "end", "name"))
        for number, (shots, value) in enumerate(cells):
            if value.runs:
                low, end, high = (
                    label + max(value.mean + step * value.std, 0) * scale for step in (-1, 0, 1)
                )
                opacity = 0.35 + 0.65 * (number + 1) / len(cells)
                parts.append(
                    f'<rect class="bar" x="{label}" y="{y + 1:.1f}" width="{max(end - label, 1):.1f}" '
                    f'height="{thick - 2}" rx="2" style="opacity:{opacity:.2f}">'
                    f"<title>{escape(name)}, {escape(shots)}: {value}</title></rect>"
                )
                if value.runs > 1:
                    parts.append(f'<path class="whisker" d="M{low:.1f} {y + thick / 2:.1f}H{high:.1f}"/>')
                parts.append(_text(str(value), high + 6, y + thick / 2 + 4))
            y += thick
        y += gap
    head = f'<svg class="chart" viewBox="0 0 {width} {y:.0f}" role="img" aria-label="AP of each class">'
    return head + "".join(parts) + "</svg>"


def picture(pixels: NDArray[np.uint8], marks: Sequence[Mark], longest: int = 460) -> str:
    """A picture (H, W, 3) with its marks, in its own pixels; missed ones under right ones under wrong."""
    height, width = pixels.shape[:2]
    unit = max(width, height) / 100
    parts = [
        f'<svg class="scene" viewBox="0 0 {width} {height}" role="img">'
        f'<image width="{width}" height="{height}" href="{data_uri(pixels, longest)}"/>'
    ]
    order = {MISSED: 0, "right": 1, "wrong": 2}
    named: dict[str, int] = dict.fromkeys(order, 0)
    for mark in sorted(marks, key=lambda mark: (order[mark.kind], -mark.score)):
        x1, y1, x2, y2 = mark.box
        text = _short(mark.name, 18) + ("" if mark.kind == MISSED else f" {mark.score:.2f}")
        size = 3.2 * unit
        wide, tall = (len(text) * 0.58 + 0.7) * size, 1.35 * size
        left = min(max(x1, 0), max(width - wide, 0))
        above = y1 - tall if y1 - tall >= 0 else min(y1, height - tall)
        parts.append(
            f'<g class="{mark.kind}"><rect class="box" x="{x1:.1f}" y="{y1:.1f}" width="{x2 - x1:.1f}" '
            f'height="{y2 - y1:.1f}" style="stroke-width:{0.6 * unit:.2f}"/>'
        )
        named[mark.kind] += 1
        if named[mark.kind] <= MOST_TAGS:
            parts.append(
                f'<rect class="tag" x="{left:.1f}" y="{above:.1f}" width="{wide:.1f}" height="{tall:.1f}"/>'
                f'<text x="{left + 0.35 * size:.1f}" y="{above + 1.02 * size:.1f}" font-size="{size:.1f}">'
                f"{escape(text)}</text>"
            )
        parts.append("</g>")
    return "".join(parts) + "</svg>"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
