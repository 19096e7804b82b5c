"""Meta-train a detector by a recipe.

Checkpoints, every setting spelled out (recipe.toml) and metrics.jsonl go to --out. A run that was stopped
goes on with --resume, to the same parameters as if it had not been. Under torchrun, several processes
share each step; see docs/scaling.md.

examples:
  tenet train recipes/track_v1.toml --data-root data --workers 1
  tenet train recipes/track_v1.toml --dry-run
  tenet train recipes/track_v1.toml --out runs/short --set train.iterations=1000 --set train.lr=3e-4
  tenet train recipes/track_v1.toml --resume
  tenet train recipes/ablation_table4a_heads.toml --set "model.row=TA=8" --out runs/ta8
  torchrun --nproc-per-node 2 -m tenet.cli train recipes/track_v1.toml
"""

import argparse
from pathlib import Path

from tenet.commands.console import check_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_recipe_arguments(parser)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the run goes (default runs/NAME)")
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint in --out")
    parser.add_argument("--dry-run", action="store_true", help="print size, memory and a time estimate")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="processes that make episodes")
    add_cache_argument(parser)
    parser.add_argument("--tensorboard", action="store_true", help="also write for TensorBoard")


def add_recipe_arguments(parser: argparse.ArgumentParser) -> None:
    """A recipe, its overrides and its data: shared by the commands that take one."""
    parser.add_argument("recipe", type=Path, metavar="RECIPE", help="a TOML file, see recipes/")
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="A.B=VALUE", help="change a setting"
    )
    parser.add_argument(
        "--data-root", type=Path, metavar="FOLDER", help="where its paths start (TENET_DATA, or ./data)"
    )


def add_cache_argument(parser: argparse.ArgumentParser) -> None:
    """Where the feature cache is."""
    parser.add_argument(
        "--cache-dir",
        type=Path,
        default=Path("runs/cache"),
        metavar="FOLDER",
        help="feature cache (default runs/cache)",
    )


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from tenet.recipe import data_root, load_recipe

    recipe = load_recipe(args.recipe, args.overrides)

    from tenet.engine.distributed import world
    from tenet.engine.jobs import Options
    from tenet.engine.meta_train import meta_train, prepare

    out, root = args.out or Path("runs") / recipe.name, data_root(args.data_root)
    check_folder(out)
    with world() as here:
        options = Options(out, root, args.resume, args.workers, args.tensorboard, here, args.cache_dir)
        if args.dry_run:
            from tenet.engine.dry_run import STEPS, estimate

            # With the cache, only what these steps read is encoded.
            short = replace(recipe, train=replace(recipe.train, iterations=STEPS))
            print(f"recipe       {recipe.name}: {recipe.about}")
            print(*estimate(prepare(short, options)[0], recipe.train.iterations).lines(), sep="\n")
            return 0
        meta_train(recipe, options)
        if here.first:
            print(f"{out}: {recipe.train.iterations} iterations done, checkpoints in {out / 'checkpoints'}")
    return 0
