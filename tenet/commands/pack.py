"""Make a run's checkpoint into a small model file: half precision, without the optimiser's state.

Writes OUT.safetensors and OUT.json, which every command takes as a model. With the training data at hand,
the model also learns what surrounds things, for shots that are bare crops.

examples:
  tenet pack runs/track_a --out my_model --data-root data
  tenet pack runs/track_a --out my_model --data-root data --set model.head.objectness_power=0.25
  tenet pack runs/encoder --out my_model --share 0.6 --no-data
  tenet detect my.bank pictures --model my_model.json
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_folder", metavar="RUN", type=Path, help="a run's folder, or one of its checkpoints"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the model, without a suffix")
    parser.add_argument("--data-root", type=Path, metavar="DIR", help="where the recipe's training data are")
    parser.add_argument(
        "--set",
        dest="overrides",
        action="append",
        default=[],
        metavar="A.B=VALUE",
        help="change a setting of the model that has no parameters",
    )
    parser.add_argument(
        "--share",
        type=float,
        default=1.0,
        metavar="S",
        help="the share of what was learned in a mean with the run's start (default 1: it alone)",
    )
    parser.add_argument("--no-data", action="store_true", help="do without the training data")


def run(args: argparse.Namespace) -> int:
    from tenet.engine.checkpoint import find, load
    from tenet.engine.meta_train import episode_source
    from tenet.engine.pack import mean_with_start, pack, with_settings
    from tenet.errors import DataError
    from tenet.recipe import data_root

    checkpoint = load(find(args.run_folder))
    if args.share != 1:
        checkpoint = mean_with_start(checkpoint, args.share)
    checkpoint = with_settings(checkpoint, args.overrides)
    try:
        source = None if args.no_data else episode_source(checkpoint.recipe, data_root(args.data_root))[0]
    except DataError as error:
        raise DataError(f"{error}; or --no-data, which leaves what surrounds things as it is") from error
    path = pack(checkpoint, args.out, source)
    size = path.with_suffix(".safetensors").stat().st_size
    print(f"{path}: {checkpoint.step} steps of {checkpoint.recipe.name}, {size / 1e6:.1f} MB of weights")
    return 0
