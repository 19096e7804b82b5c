"""Write a set in another format, into a new folder. Pictures are hard-linked where that can be.

What the other format cannot hold is named: YOLO knows no ignored, crowd or truncated boxes, VOC no crowds.

examples:
  tenet data convert VOCdevkit/VOC2007 voc_as_coco --to coco --set trainval
  tenet data convert coco/val.json as_yolo --to yolo
"""

import argparse
from pathlib import Path

from tenet.commands.console import add_set_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", type=Path, metavar="PATH", help="a JSON file or a folder")
    parser.add_argument("out", type=Path, metavar="OUT", help="a new folder")
    parser.add_argument("--to", required=True, choices=("coco", "fsod", "voc", "yolo"), help="the new format")
    add_set_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from tenet.data.convert import convert
    from tenet.data.formats import scan_path

    scan = scan_path(args.source, args.format, args.images, args.image_set)
    dataset, notes = convert(scan, args.to, args.out)
    boxes = sum(len(record.target) for record in dataset.records)
    print(f"{args.out}: {args.to}, {len(dataset)} pictures, {len(dataset.classes)} classes, {boxes} boxes")
    for note in notes:
        print(f"  note: {note}")
    return 0
