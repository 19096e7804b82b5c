"""Compute the maps of a recipe's frozen encoder once, so that training reads them instead.

`tenet train` does the same by itself where the recipe says train.cache = true; this command does it ahead of
time. Maps are fp16 files in --cache-dir; a stale or broken one is found and computed anew. An interrupted
run goes on where it stopped.

examples:
  tenet cache recipes/track_v1.toml --data-root data
  tenet cache recipes/track_v1.toml --set train.cache_views=1 --set train.shot_pool=50
"""

import argparse

from tenet.commands.train import add_cache_argument, add_recipe_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recipe_arguments(parser)
    add_cache_argument(parser)


def run(args: argparse.Namespace) -> int:
    from tenet.recipe import data_root, load_recipe

    recipe = load_recipe(args.recipe, args.overrides)

    from tenet.engine.feature_cache import FeatureCache, shards_with_bar
    from tenet.engine.meta_train import episode_source, new_detector
    from tenet.engine.view_episodes import ViewEpisodes

    root = data_root(args.data_root)
    source, _ = episode_source(recipe, root)
    queries = recipe.train.cache_views if recipe.train.cache_queries else 0
    views = ViewEpisodes(source, queries, recipe.train.shot_views)
    cache = FeatureCache(args.cache_dir, new_detector(recipe, root).eval(), views)
    episodes = recipe.train.iterations * recipe.train.batch
    wanted = views.views_of(episodes, with_shots=recipe.train.learn != "boxes")
    new = cache.fill(wanted, shards_with_bar)
    print(f"{cache.folder}: {len(wanted)} views, {new} of them computed now, {cache.bytes() / 2**20:,.0f} MB")
    return 0
