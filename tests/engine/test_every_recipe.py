"""Every recipe takes a step, with a tiny encoder and a small set in the place of its own."""

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_runs import TINY, train

from tenet.recipe import Recipe, load_recipe

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))


def small(recipe: Recipe) -> Recipe:
    """The same experiment on a small set: its model's parts, optimiser and episodes stay."""
    own = recipe.model
    encoder = replace(TINY.encoder, regions=own.encoder.regions, frozen=own.encoder.frozen)
    episodes = replace(
        recipe.episodes, query_sizes=(48,), query_longer=80, support_size=32, min_shot_side=4, shots=2
    )
    return replace(
        recipe,
        model=replace(
            own,
            encoder=encoder,
            rpn=replace(own.rpn, pre_nms=(60, 60), post_nms=(12, 12), batch=16),
            head=replace(own.head, rois=6),
            query_size=(48, 80),
            support_size=32,
        ),
        data=replace(recipe.data, train=("annotations.json",), split="", image_set="", leave_out_novel=False),
        episodes=replace(episodes, min_shots=min(episodes.min_shots, 2), ways=2),
        train=replace(recipe.train, iterations=1, batch=1, micro_batch=1, shot_pool=3, start=""),
    )


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipe_takes_a_step(path: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train(small(load_recipe(path)), root, tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints" / "step_00000001.json").is_file()
