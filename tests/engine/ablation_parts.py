"""An ablation small enough for tests: two sets of drawn objects under VOC's names, and a tiny recipe."""

import json
from dataclasses import replace
from pathlib import Path

from tiny_runs import tiny_recipe

from tenet.data.synthetic import write_synthetic
from tenet.recipe import Recipe

NAMES = ("aeroplane", "bicycle", "boat", "bird", "bus", "cow")
"""Three base and three novel classes of split voc1."""


def write_sets(folder: Path) -> Path:
    """A data root with train/ and test/."""
    for seed, name in enumerate(("train", "test")):
        path = write_synthetic(folder / name, 24, len(NAMES), (80, 60), seed=seed)
        document = json.loads(path.read_text())
        for category, spelling in zip(document["categories"], NAMES, strict=True):
            category["name"] = spelling
        path.write_text(json.dumps(document))
    return folder


def ground_recipe() -> Recipe:
    """Trained on base classes, tested on novel ones of another set."""
    recipe = tiny_recipe(iterations=4, cache=True, cache_views=1, shot_views=1)
    return replace(
        recipe,
        data=replace(recipe.data, train=("train/annotations.json",), split="voc1"),
        evaluate=replace(
            recipe.evaluate,
            shots=(1, 2),
            test=("test/annotations.json",),
            support=("train/annotations.json",),
            limit=6,
        ),
    )
