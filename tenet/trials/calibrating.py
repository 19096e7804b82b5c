"""From trials to a calibration: how often a box of a score is right, and from which score it is shown.

The curve is the isotonic regression of right on score (the best rising curve; pool adjacent violators), made
of a few points; a box weighs one over the objects of its set, so that all right boxes of a set weigh at most
1, however large it is. The threshold is the highest probability at which the
mean F1 over the sets is nearly the best, among those with few false alarms: people mind most what is found
where there is nothing.

A curve that is shown on the boxes that made it flatters itself. `judge_calibration` judges every set, and so
its classes, by a curve that the other sets made; a single set is judged half by half of its pictures. What
ships is fitted on all; its threshold is chosen on what was judged.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenet.errors import InputError
from tenet.runtime.calibration import Calibration
from tenet.trials.trial import Trial

Floats = NDArray[np.float64]
LEAST_WEIGHT = 0.002
"""A point of the curve stands for at least this share of all right boxes' weight."""
MOST_ALARMS = 0.02
"""False alarms for each class that a picture does not show: one in fifty such looks."""
AS_GOOD = 0.025
"""A difference of F1 that is worth fewer wrong boxes: people mind those more than what was missed."""
BINS = np.linspace(0, 1, 11)


def fit_calibration(trials: Sequence[Trial]) -> Calibration:
    """The curve and the threshold that trials with raw scores give."""
    if not trials or not any(trial.right.any() for trial in trials):
        raise InputError("calibration: expected trials with at least one right box, got none")
    raw = np.concatenate([trial.confidence for trial in trials])
    right = np.concatenate([trial.right for trial in trials]).astype(np.float64)
    points, probabilities = isotonic(raw, right, _weights(trials))
    curve = Calibration(tuple(points.tolist()), tuple(probabilities.tolist()), 0.5)
    return Calibration(curve.raw, curve.probability, best_threshold(trials, curve))


def _weights(trials: Sequence[Trial]) -> Floats:
    """Of each box: one over the objects of its trial, so that many objects do not count more."""
    return np.concatenate([np.full(len(t.confidence), 1 / max(t.objects, 1)) for t in trials])


def isotonic(x: Floats, y: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Points (x, value) of the rising curve nearest to y in the mean of weighted squares; few of them."""
    order = np.argsort(x, kind="stable")
    x, y, weight = x[order], y[order], weight[order]
    least = LEAST_WEIGHT * float((weight * y).sum())
    # A block is (weight, sum of w·y, sum of w·x). Neighbours that fall, or stand for too little, become one.
    blocks: list[tuple[float, float, float]] = []
    for w, value, place in zip(weight.tolist(), (weight * y).tolist(), (weight * x).tolist(), strict=True):
        block = (w, value, place)
        while blocks and (
            blocks[-1][1] / blocks[-1][0] >= block[1] / block[0] or (blocks[1:] and blocks[-1][1] < least)
        ):
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    points = np.array([block[2] / block[0] for block in blocks])
    values = np.array([block[1] / block[0] for block in blocks])
    apart = np.concatenate([[True], np.diff(points) > 1e-9])
    return points[apart], np.maximum.accumulate(values)[apart]


def best_threshold(trials: Sequence[Trial], curve: Calibration) -> float:
    """The highest probability, in steps of 0.05, whose mean F1 over trials is within `AS_GOOD` of the best
    among those with at most `MOST_ALARMS`; the one with the fewest alarms where all have more."""
    levels = at_levels(calibrated(trials, curve))
    quiet = [level for level in levels if level.false_alarms <= MOST_ALARMS] or levels[-1:]
    best = max(level.f1 for level in quiet)
    return max(level.threshold for level in quiet if level.f1 >= best - AS_GOOD)


class Level(NamedTuple):
    """What a threshold gives: the mean F1 of trials, and false alarms for each look at a class that a
    picture does not show."""

    threshold: float
    f1: float
    false_alarms: float


def at_levels(trials: Sequence[Trial]) -> list[Level]:
    """Thresholds from 0.05 to 0.9 in steps of 0.05, lowest first."""
    return [
        Level(
            float(threshold),
            float(np.mean([f1(trial, trial.confidence >= threshold) for trial in trials])),
            false_alarms(trials, float(threshold)),
        )
        for threshold in np.round(np.arange(0.05, 0.95, 0.05), 2)
    ]


def calibrated(trials: Sequence[Trial], curve: Calibration) -> list[Trial]:
    """The same trials, their raw scores as probabilities."""
    return [
        replace(trial, confidence=curve(trial.confidence.astype(np.float32)).astype(np.float64))
        for trial in trials
    ]


@dataclass(frozen=True)
class Fold:
    """What a curve was judged on, without having been fitted on it: name of set → ids of pictures."""

    calibration: Calibration
    judged_on: dict[str, list[str]]


@dataclass(frozen=True)
class Held:
    """Every trial with scores from a curve that did not see it; `by`: set or picture was held back."""

    by: str
    folds: list[Fold]
    trials: list[Trial]


def judge_calibration(trials: Sequence[Trial]) -> Held:
    """Judge each set by a curve of the others, or a single set half by half, whatever the draws of shots."""
    sets = sorted({trial.set_name for trial in trials})
    if len(sets) > 1:
        pictures = {
            name: sorted({p for t in trials if t.set_name == name for p in t.tested}) for name in sets
        }
        parts = [{name: pictures[name]} for name in sets]
    else:
        parts = list(halves(trials))
    folds, judged = [], []
    for number, part in enumerate(parts):
        others = [other for place, other in enumerate(parts) if place != number]
        curve = fit_calibration([kept for other in others for kept in _within(trials, other)])
        folds.append(Fold(curve, part))
        judged += calibrated(_within(trials, part), curve)
    return Held("set" if len(sets) > 1 else "picture", folds, judged)


def _within(trials: Sequence[Trial], part: dict[str, list[str]]) -> list[Trial]:
    """What the trials found in these pictures of these sets."""
    return [t.of_pictures(frozenset(part[t.set_name])) for t in trials if t.set_name in part]


def halves(trials: Sequence[Trial]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Each set's test pictures in two halves, by a hash of their ids: name of set → ids."""
    tested: dict[str, set[str]] = {}
    for trial in trials:
        tested.setdefault(trial.set_name, set()).update(trial.tested)
    one, other = {}, {}
    for name, pictures in tested.items():
        if len(pictures) < 2:
            raise InputError(
                f"calibration: expected at least 2 test pictures of {name}, one to fit and one to judge; "
                f"got {len(pictures)}"
            )
        ranked = sorted(pictures, key=lambda picture: hashlib.blake2b(picture.encode()).digest())
        one[name], other[name] = sorted(ranked[::2]), sorted(ranked[1::2])
    return one, other


def f1(trial: Trial, shown: NDArray[np.bool_]) -> float:
    """Of the detections that are shown: the harmonic mean of precision and recall."""
    right = int((trial.right & shown).sum())
    return 2 * right / max(int(shown.sum()) + trial.objects, 1)


def false_alarms(trials: Sequence[Trial], threshold: float) -> float:
    """Detections shown for each look for a class in a picture that does not have it."""
    shown = sum(int((trial.absent & (trial.confidence >= threshold)).sum()) for trial in trials)
    return shown / max(sum(trial.looks for trial in trials), 1)


def false_alarms_in_a_picture(trials: Sequence[Trial], threshold: float) -> float:
    """The same detections for each test picture, over all classes that it does not show."""
    shown = sum(int((trial.absent & (trial.confidence >= threshold)).sum()) for trial in trials)
    return shown / max(sum(len(trial.tested) for trial in trials), 1)


def reliability(trials: Sequence[Trial]) -> list[tuple[float, float, int]]:
    """For each tenth of the scores: (mean score, share of right boxes, how many boxes); every set has the
    same weight, as in `fit_calibration`."""
    scores = np.concatenate([trial.confidence for trial in trials])
    right = np.concatenate([trial.right for trial in trials]).astype(np.float64)
    weight = _weights(trials)
    rows = []
    for low, high in pairwise(BINS.tolist()):
        inside = (scores >= low) & (scores < high if high < 1 else scores <= 1)
        if inside.any():
            mean, share = (float(np.average(x[inside], weights=weight[inside])) for x in (scores, right))
            rows.append((mean, share, int(inside.sum())))
    return rows


def draw_reliability(rows: Sequence[tuple[float, float, int]], title: str) -> object:
    """The reliability plot as a matplotlib figure: on the diagonal a score is worth what it says."""
    from tenet.drawing.figures import one_panel

    figure, axes = one_panel()
    axes.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=1)
    axes.plot([row[0] for row in rows], [row[1] for row in rows], marker="o")
    for score, share, count in rows:
        axes.annotate(f"{count:,}", (score, share), xytext=(4, -12), textcoords="offset points", fontsize=8)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="score", ylabel="share of right boxes (IoU ≥ 0.5)", title=title)
    return figure
