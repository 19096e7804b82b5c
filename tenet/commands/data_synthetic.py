"""Make a set of drawn objects on backgrounds, with exact boxes, as COCO JSON with PNG pictures.

The classes are the same for every seed: a set of seed 0 can be trained on and one of seed 1 tested.

examples:
  tenet data synthetic demo --images 200 --classes 20
  tenet data synthetic small --images 20 --classes 5 --size 128x96 --seed 3
"""

import argparse
from pathlib import Path

from tenet.commands.console import at_least_one, progress, size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", type=Path, metavar="OUT", help="a new folder")
    parser.add_argument("--images", type=at_least_one, default=100, help="pictures (default 100)")
    parser.add_argument("--classes", type=at_least_one, default=20, help="classes, at most 1000 (default 20)")
    parser.add_argument("--size", type=size, default=(320, 240), metavar="WxH", help="default 320x240")
    parser.add_argument(
        "--objects", type=at_least_one, default=5, help="most objects in a picture (default 5)"
    )
    parser.add_argument("--seed", type=int, default=0, help="which set (default 0)")


def run(args: argparse.Namespace) -> int:
    from tenet.data.files import new_folder
    from tenet.data.synthetic import write_synthetic
    from tenet.errors import InputError

    if args.seed < 0:
        raise InputError(f"--seed: expected at least 0, got {args.seed}")
    new_folder(args.out)
    path = write_synthetic(args.out, args.images, args.classes, args.size, args.seed, args.objects, progress)
    print(f"{path}: {args.images} pictures of {args.size[0]} × {args.size[1]}, {args.classes} classes")
    return 0
