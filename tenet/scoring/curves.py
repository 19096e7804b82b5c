"""A picture of precision–recall curves."""

from pathlib import Path

import numpy as np

from tenet.figures import one_panel, save_figure, twenty_colours
from tenet.scoring.report import Scores

MOST_CURVES = 20


def draw_curves(scores: Scores, path: Path) -> None:
    """Draw the curve of each class (of the twenty with most objects) and their mean into a PNG file."""
    defined = [score for score in scores.classes if score.positives]
    shown = sorted(defined, key=lambda score: -score.positives)[:MOST_CURVES]
    figure, axes = one_panel()
    axes.set_prop_cycle(color=twenty_colours())
    grid = np.linspace(0, 1, 101)
    levels = []
    for score in defined:
        best = np.array([score.precision[score.recall >= level].max(initial=0) for level in grid])
        levels.append(best)
        if score in shown:
            label = f"{score.name} {100 * score.values['AP']:.1f}"
            axes.plot(grid, best, linewidth=1, alpha=0.75, label=label)
    if levels:
        axes.plot(grid, np.mean(levels, axis=0), color="black", linewidth=2.5, label="mean")
        axes.legend(fontsize=6, ncols=2, loc="upper right")
    left_out = f", {len(shown)} of {len(defined)} classes" if len(shown) < len(defined) else ""
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    axes.set_title(f"{scores.metric} at IoU {scores.iou if scores.iou is not None else 0.5:g}{left_out}")
    save_figure(figure, path)
