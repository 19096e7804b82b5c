"""Write the base or the novel side of a set, as COCO JSON in a new folder.

voc1, voc2, voc3 are the paper's VOC splits (15 base, 5 novel classes), coco is its COCO split (60, 20).
Pictures that also show classes of the other side stay, with those boxes taken out.

examples:
  tenet data split --list
  tenet data split voc2007_trainval.json base1 --split voc1 --side base
"""

import argparse
from pathlib import Path

from tenet.commands.console import add_set_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, nargs="?", metavar="PATH", help="a JSON file or a folder")
    parser.add_argument("out", type=Path, nargs="?", metavar="OUT", help="a new folder")
    add_set_arguments(parser)
    parser.add_argument("--split", choices=("voc1", "voc2", "voc3", "coco"), help="which split")
    parser.add_argument("--side", choices=("base", "novel"), help="which side of it")
    parser.add_argument("--list", action="store_true", help="show the splits and stop")


def run(args: argparse.Namespace) -> int:
    from tenet.data.coco import write_coco
    from tenet.data.files import new_folder
    from tenet.data.formats import read_dataset
    from tenet.data.splits import SPLITS, base_side, novel_side
    from tenet.errors import InputError

    if args.list:
        for split in SPLITS.values():
            print(f"{split.name}: {len(split.base)} base, {len(split.novel)} novel: {', '.join(split.novel)}")
        return 0
    if not (args.source and args.out and args.split and args.side):
        raise InputError(
            "expected PATH OUT --split NAME --side base|novel, or --list; see `tenet data split -h`"
        )
    dataset = read_dataset(args.source, args.format, args.images, args.image_set)
    side = base_side if args.side == "base" else novel_side
    part = side(dataset, SPLITS[args.split])
    if not part.classes:
        raise InputError(
            f"{args.source}: expected {args.side} classes of {args.split}, found none; its "
            f"classes are {', '.join(dataset.classes[:5])}{', …' if len(dataset.classes) > 5 else ''}"
        )
    write_coco(part, new_folder(args.out) / "annotations.json")
    boxes = sum(len(record.target) for record in part.records)
    what = f"{args.side} side of {args.split}"
    print(f"{args.out}: {what}, {len(part)} pictures, {len(part.classes)} classes, {boxes} boxes")
    return 0
