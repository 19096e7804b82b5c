"""Scores that mean something: the share of right boxes at score s is about s.

A detector's raw score ranks boxes; how often a box of that score is right is measured on classes that it
was not trained on (`tenet trial --calibrate`), and kept as a few points of a rising curve.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tenet.errors import WeightsError


@dataclass(frozen=True)
class Calibration:
    """Points of the curve, raw score → probability, both rising; and the probability from which a detection
    is shown. Without points scores stay as they are."""

    raw: tuple[float, ...] = ()
    probability: tuple[float, ...] = ()
    threshold: float = 0.3

    def __post_init__(self) -> None:
        rising = all(np.diff(self.raw) > 0) and all(np.diff(self.probability) >= 0)
        inside = all(0 <= value <= 1 for value in (*self.raw, *self.probability, self.threshold))
        if len(self.raw) != len(self.probability) or not rising or not inside:
            raise WeightsError("calibration: expected rising points in 0…1, raw and probability, got others")

    def __call__(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Raw scores (n,) → probabilities (n,). Strictly rising, so that the order of scores is kept."""
        if not self.raw:
            return scores
        curve = np.interp(scores, self.raw, self.probability)
        # A share of the raw score keeps apart what the curve makes equal.
        return np.clip(0.999 * curve + 0.001 * scores, 0, 1).astype(np.float32)

    def to_json(self) -> dict[str, Any]:
        return {
            "raw": list(self.raw),
            "probability": list(self.probability),
            "threshold": self.threshold,
        }

    @staticmethod
    def from_json(document: dict[str, Any] | None) -> "Calibration":
        """What `to_json` gave, or nothing."""
        if not document:
            return Calibration()
        return Calibration(
            tuple(float(value) for value in document["raw"]),
            tuple(float(value) for value in document["probability"]),
            float(document["threshold"]),
        )
