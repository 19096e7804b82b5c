"""Pictures and runtimes for the tests of banks."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from fake_runtime import FakeRuntime
from numpy.typing import NDArray

from tenet.bank import ClassBank
from tenet.structures import ClassFeatures, Shot

COLOURS = {"red": (200, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 200)}


def picture(colour: str = "red", width: int = 160, height: int = 120, seed: int = 0) -> NDArray[np.uint8]:
    """Grey noise with a coloured thing at (40, 30, 100, 90)."""
    noise = np.random.default_rng(seed).integers(90, 160, (height, width, 1), np.uint8)
    made = np.repeat(noise, 3, 2)
    made[30:90, 40:100] = COLOURS[colour]
    return made


THING = (40, 30, 100, 90)
"""Where the thing is in `picture`, xyxy in pixels."""


class RecordingRuntime(FakeRuntime):
    """A fake that remembers the shots of every call, tells the ranks it is given and has an objectness."""

    def __init__(self, fingerprint: str = "fake-1", ranks: Sequence[int] | None = None) -> None:
        super().__init__(fingerprint)
        self.calls: list[list[Shot]] = []
        self.told = ranks

    def encode_shots(self, shots: Sequence[Shot]) -> ClassFeatures:
        self.calls.append(list(shots))
        features = super().encode_shots(shots)
        scenes = [shot.scene.shape for shot in shots if shot.scene is not None]
        objectness = np.array(scenes, np.float32).sum(0) if scenes else None
        ranks = features.ranks if self.told is None else np.array(self.told)
        return replace(features, closed_form=objectness, ranks=ranks)


def same_features(one: ClassFeatures, other: ClassFeatures) -> bool:
    fields = ("psi_rpn", "psi", "phi", "raw", "closed_form", "ranks")
    pairs = [(getattr(one, field), getattr(other, field)) for field in fields]
    return all(
        (a is None) == (b is None) and (a is None or (a.dtype == b.dtype and np.array_equal(a, b)))
        for a, b in pairs
    )


def same_banks(one: ClassBank, other: ClassBank) -> bool:
    """Equal in everything that can be asked."""
    return (
        one.names == other.names
        and (one.model_name, one.fingerprint) == (other.model_name, other.fingerprint)
        and all(same_features(one.features(name), other.features(name)) for name in one)
        and all(one.shots(name) == other.shots(name) for name in one)
        and all(one.seen(name) == other.seen(name) for name in one)
        and all(one.registration(name) == other.registration(name) for name in one)
    )


def colour_bank(runtime: FakeRuntime | None = None) -> ClassBank:
    """Three classes with 1, 2 and 3 shots: bare crops and shots with their pictures."""
    bank = ClassBank(runtime or RecordingRuntime())
    bank.register("red", [picture("red")])
    bank.register("green", [(picture("green"), THING), picture("green", seed=1)])
    bank.register("blue", [(picture("blue", seed=seed), THING) for seed in range(3)])
    return bank
