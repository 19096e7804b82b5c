"""A picture of precision–recall curves."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenet.drawing.figures import one_panel, save_figure, twenty_colours
from tenet.scoring.report import ClassScore, Scores

MOST_CURVES = 20
GRID = np.linspace(0, 1, 101)


def draw_curves(runs: Sequence[Scores], path: Path) -> None:
    """Draw the curve of each class (of the twenty with most objects) and their mean into a PNG file.

    Several runs are averaged at each recall; the mean over the classes has a band of ± their deviation.
    """
    first = runs[0]
    rows = [row for row, score in enumerate(first.classes) if score.positives]
    shown = sorted(rows, key=lambda row: -first.classes[row].positives)[:MOST_CURVES]
    levels = np.array([[_envelope(run.classes[row]) for row in rows] for run in runs])  # (runs, classes, 101)
    figure, axes = one_panel()
    axes.set_prop_cycle(color=twenty_colours())
    for row in shown:
        mean_ap = float(np.mean([run.classes[row].values["AP"] for run in runs]))
        label = f"{first.classes[row].name} {100 * mean_ap:.1f}"
        axes.plot(GRID, levels[:, rows.index(row)].mean(0), linewidth=1, alpha=0.75, label=label)
    if rows:
        means = levels.mean(1)  # over the classes
        if len(runs) > 1:
            low, high = means.mean(0) - means.std(0, ddof=1), means.mean(0) + means.std(0, ddof=1)
            axes.fill_between(GRID, low, high, color="black", alpha=0.15, linewidth=0)
        axes.plot(GRID, means.mean(0), color="black", linewidth=2.5, label="mean")
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
    left_out = f", {len(shown)} of {len(rows)} classes" if len(shown) < len(rows) else ""
    seeds = f", {len(runs)} runs" if len(runs) > 1 else ""
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    axes.set_title(f"{first.metric} at IoU {first.iou if first.iou is not None else 0.5:g}{left_out}{seeds}")
    save_figure(figure, path)


def _envelope(score: ClassScore) -> NDArray[np.float64]:
    """The best precision from each recall on."""
    return np.array([score.precision[score.recall >= level].max(initial=0) for level in GRID])
