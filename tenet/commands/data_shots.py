"""Draw the shots that teach each class: by seed, or from a public list.

A seed gives the same shots on every machine, and the 1-shot list is the beginning of the 5-shot list. With
--list, seed 0 is the list `kang` and others are the seeds of `tfa`.

examples:
  tenet data shots voc2007_trainval.json --shots 5 --seed 0 --min-side 32 --out shots.json
  tenet data shots voc2007_trainval.json --shots 3 --seed 1 --classes bird,bus,cow,motorbike,sofa
  tenet data shots VOCdevkit --shots 10 --seed 0 --list voc_shots.json --missing skip
"""

import argparse
from pathlib import Path

from tenet.commands.console import add_set_arguments, at_least_one, emit_json, names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, nargs="+", metavar="PATH", help="JSON files or folders")
    add_set_arguments(parser)
    parser.add_argument("--shots", type=at_least_one, required=True, help="shots of each class")
    parser.add_argument("--seed", type=int, default=0, help="which draw (default 0)")
    parser.add_argument("--classes", type=names, metavar="A,B", help="only these classes")
    parser.add_argument("--min-side", type=float, default=0, help="least side of a drawn box, in pixels")
    parser.add_argument("--list", type=Path, metavar="FILE", help="take a public list instead of drawing")
    parser.add_argument(
        "--missing", choices=("error", "skip"), default="error", help="list pictures not here"
    )
    parser.add_argument(
        "--out", default="-", metavar="FILE", help="where the list goes; - (default) is stdout"
    )


def run(args: argparse.Namespace) -> int:
    import sys

    from tenet.data.dataset import merge
    from tenet.data.formats import read_dataset
    from tenet.data.shots import draw_shots, public_shots

    sets = [read_dataset(path, args.format, args.images, args.image_set) for path in args.source]
    dataset = sets[0] if len(sets) == 1 else merge(sets)
    if args.list is not None:
        drawn = public_shots(args.list, dataset, args.shots, args.seed, args.classes, args.missing)
    else:
        drawn = draw_shots(dataset, args.shots, args.seed, args.classes, args.min_side)
    emit_json(drawn.to_json(dataset), args.out)
    for name, count in drawn.short().items():
        print(f"note: {name} has {count} of {args.shots} shots", file=sys.stderr)
    return 0
