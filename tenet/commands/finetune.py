"""Fine-tune a detector on your own annotated pictures, or on K shots of the novel classes of a recipe.

Takes a shipped model, a checkpoint (its file, or the folder of a run) or a recipe, which then starts from its
encoder alone. --data is a COCO or FSOD JSON file, a VOC devkit or a YOLO folder; of a folder,
FOLDER:PART is one part, such as my_yolo:train, and without it all are taken. --bank takes the shots of a
bank that came with their pictures. In these pictures every thing of the classes should have its box, because
what has none is learned as background. Boxes with a side below evaluate.min_shot_side (of the shipped models
24 px) are no shots. The run's folder gets a checkpoint, metrics.jsonl, and shots.json with the shots; it is a
model like any other.

examples:
  tenet finetune tenet_lite0 --data my.json --out runs/mine
  tenet register my.bank --from my.json --shots 5 --model runs/mine
  tenet finetune tenet_lite0 --bank forest.bank --out runs/forest
  tenet classes forest.bank --rebuild --model runs/forest
  tenet finetune tenet_lite2 --data my_yolo:train --classes cat,dog --set finetune.iterations=200
  tenet finetune runs/track_v1 --data my.json --shots 5 --known shots
  tenet finetune runs/track_v1 --shots 10 --seed 1 --data-root data
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenet.commands.console import at_least_one, check_folder, names

if TYPE_CHECKING:
    from tenet.data.dataset import Dataset
    from tenet.data.shots import ShotList
    from tenet.models.detector import TENET
    from tenet.recipe import Recipe


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("start", metavar="MODEL|RECIPE", help="a shipped model, checkpoint, run or recipe")
    parser.add_argument(
        "--data", type=Path, metavar="PATH", help="your own set or FOLDER:PART; default: the recipe's"
    )
    parser.add_argument("--bank", type=Path, metavar="BANK", help="the shots of a bank, in place of --data")
    parser.add_argument(
        "--format", choices=("coco", "fsod", "voc", "yolo"), help="its format, if not detected"
    )
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="where its pictures are, if elsewhere")
    parser.add_argument("--classes", type=names, metavar="A,B", help="only these of its classes")
    parser.add_argument(
        "--shots",
        type=at_least_one,
        metavar="K",
        help="shots of each class (default: what there is, up to 100; of a recipe finetune.shots)",
    )
    parser.add_argument(
        "--known",
        choices=("pictures", "shots"),
        help="of --data: all boxes of the shots' pictures (default), or the shots alone, as in the papers",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="which shots (default: the recipe's seed)")
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="A.B=VALUE", help="change a setting"
    )
    parser.add_argument("--data-root", type=Path, metavar="FOLDER", help="where a recipe's paths start")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the run goes")
    parser.add_argument("--tensorboard", action="store_true", help="also write for TensorBoard")


def run(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from tenet.engine.distributed import world
    from tenet.engine.finetune import finetune_run
    from tenet.engine.jobs import Options
    from tenet.recipe import data_root

    if args.out is not None:
        check_folder(args.out)
    root = data_root(args.data_root)
    detector, recipe, found = _start(args.start, args.overrides, root)
    if args.shots is not None:
        recipe = replace(recipe, finetune=replace(recipe.finetune, shots=args.shots))
    if args.seed is not None:
        recipe = replace(recipe, seed=args.seed)
    dataset, shots = _shots(args, recipe, root)
    out = args.out or Path("runs") / _run_name(args, recipe)
    complete = args.bank is not None or (args.data is not None and args.known != "shots")
    for name in (name for name, refs in shots.classes.items() if not refs):
        print(f"tenet finetune: {name} has no box that is large enough, and is not learned", file=sys.stderr)
    with world() as here:
        options = Options(out, root, world=here, tensorboard=args.tensorboard)
        recipe = replace(recipe, name=out.name)
        finetune_run(detector, recipe, dataset, shots, options, complete=complete, **found)
        if here.first:
            told = ", ".join(f"{len(refs)} of {name}" for name, refs in shots.classes.items())
            pictures = len(shots.pictures())
            where = f"{pictures} picture{'s' if pictures > 1 else ''}"
            print(f"{out}: fine-tuned with {told} as shots, in {where}")
    return 0


def _shots(args: argparse.Namespace, recipe: "Recipe", root: Path) -> "tuple[Dataset, ShotList]":
    """What is learned: of a bank, of a set, or of the recipe's novel classes."""
    from tenet.bank import ClassBank
    from tenet.banks.as_dataset import dataset_of
    from tenet.data.formats import read_dataset
    from tenet.engine.finetune import shots_of_recipe, shots_of_user
    from tenet.errors import InputError
    from tenet.runtime.shipped import shipped_models

    if args.bank is not None and args.data is not None:
        raise InputError("--bank stands in place of --data; give one of them")
    if args.known and args.data is None:
        raise InputError(
            "--known is for --data; of a bank and of a recipe's classes the shots are all there is"
        )
    if args.bank is not None:
        dataset = dataset_of(ClassBank.open(args.bank), args.bank.stem)
        return dataset, shots_of_user(dataset, args.classes, args.shots, recipe, min_side=0)
    if args.data is not None:
        dataset = read_dataset(args.data, args.format, args.images)
        return dataset, shots_of_user(dataset, args.classes, args.shots, recipe)
    if args.classes:
        raise InputError("--classes names classes of --data or --bank; give one of them too")
    if args.start in shipped_models():
        raise InputError(
            f"{args.start}: expected what it is to learn: --data SET with your annotated pictures, or --bank "
            "BANK with shots that came with their pictures"
        )
    return shots_of_recipe(recipe, root)


def _run_name(args: argparse.Namespace, recipe: "Recipe") -> str:
    own = args.data or args.bank
    if own is not None and args.shots is None:
        return f"{own.stem}_finetuned".replace(":", "_")  # of a part of a set
    return f"{recipe.name}_{recipe.finetune.shots}shots_seed{recipe.seed}"


def _start(name: str, overrides: list[str], root: Path) -> "tuple[TENET, Recipe, dict[str, Any]]":
    """The detector and recipe to start from, a model's or a recipe's own, and what else a model tells: the
    classes that it was trained on, and its calibration."""
    from dataclasses import replace

    from tenet.engine import checkpoint
    from tenet.engine.meta_train import new_detector
    from tenet.errors import ConfigError
    from tenet.recipe import Recipe, load_recipe
    from tenet.runtime.loading import model_file
    from tenet.settings import differences, override

    if name.endswith(".toml"):
        recipe = load_recipe(Path(name), overrides)
        # Heads that know nothing yet are no part of a mean, and want all steps.
        recipe = replace(recipe, finetune=replace(recipe.finetune, average=1.0, per_picture=0))
        return new_detector(recipe, root), recipe, {}
    found = checkpoint.load(model_file(name))
    table = found.recipe.to_dict()
    for assignment in overrides:
        table = override(table, assignment)
    recipe = Recipe.from_dict(table)
    changed = differences(found.recipe.to_dict()["model"], recipe.to_dict()["model"])
    if changed:
        raise ConfigError(
            f"--set: expected the checkpoint's own model, but model.{changed[0]}; leave it as it is"
        )
    told = {
        "base": found.split.get("base", []),
        "learned": found.split.get("learned", []),
        "calibration": found.calibration,
    }
    return checkpoint.restore_detector(found), recipe, told
