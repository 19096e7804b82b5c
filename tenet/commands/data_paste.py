"""Make a set of things that nobody annotated, pasted on the pictures of another set, with exact boxes.

A class is an outline filled with a piece of a photograph or with a pattern; its objects lie alone or in
crowds. A detector that also learns from them does not take only whole things of known kinds for objects. The
set's own objects stay annotated. Written as COCO JSON with PNG pictures.

examples:
  tenet data paste coco/train.json things --pictures 2400 --classes 60
  tenet data paste VOCdevkit/VOC2007 things --set trainval --pictures 500 --seed 3
  tenet data paste voc/voc2007_trainval.json things --without bird,bus,cow,motorbike,sofa
  tenet data check things/annotations.json
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.commands.console import add_set_arguments, at_least_one, names, progress

if TYPE_CHECKING:
    from tenet.data.dataset import Dataset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="PATH", help="a set: a JSON file or a folder")
    parser.add_argument("out", type=Path, metavar="OUT", help="a new folder")
    add_set_arguments(parser)
    parser.add_argument("--pictures", type=at_least_one, default=1000, help="how many (default 1000)")
    parser.add_argument("--classes", type=at_least_one, default=60, help="classes of things (default 60)")
    parser.add_argument("--seed", type=int, default=0, help="which set (default 0)")
    parser.add_argument(
        "--without",
        type=names,
        default=[],
        metavar="A,B",
        help="take no picture that shows these: novel classes, whose pixels would be learned as things",
    )


def run(args: argparse.Namespace) -> int:
    from tenet.data.files import new_folder
    from tenet.data.formats import read_dataset
    from tenet.data.pasted import write_pasted
    from tenet.errors import InputError

    if args.seed < 0:
        raise InputError(f"--seed: expected at least 0, got {args.seed}")
    dataset = read_dataset(args.source, args.format, args.images, args.image_set)
    dataset = _without(dataset, args.without)
    new_folder(args.out)
    path = write_pasted(args.out, dataset, args.pictures, args.classes, args.seed, progress)
    print(f"{path}: {args.pictures} pictures, {args.classes} classes of things")
    return 0


def _without(dataset: "Dataset", classes: list[str]) -> "Dataset":
    """The pictures that show none of these classes."""
    from tenet.errors import InputError

    unknown = [name for name in classes if name not in dataset.classes]
    if unknown:
        raise InputError(
            f"--without: expected classes of {dataset.name}, such as {', '.join(dataset.classes[:5])}; "
            f"got {unknown[0]!r}"
        )
    rows = {dataset.classes.index(name) for name in classes}
    kept = [record.id for record in dataset.records if rows.isdisjoint(record.target.labels.tolist())]
    if not kept:
        raise InputError(f"--without: expected pictures without {', '.join(classes)}, found none")
    return dataset.subset(kept)
