"""Score detections against ground truth.

Ground truth is a COCO JSON file. Detections are a COCO results list, or an object that holds one; several
files are several seeds, and every number becomes mean ± standard deviation. Malformed detections are
refused with the line at fault.

  coco   AP over IoU 0.5 to 0.95, AP50, AP75, by size, AR; --iou adds AP at that threshold
  voc07  VOC2007's 11-point AP at --iou (0.5), `difficult` objects left out
  voc12  VOC2010's and later every-point AP, otherwise the same

examples:
  tenet score val.json detections.json --metric coco
  tenet score voc_test.json seed0.json seed1.json seed2.json --metric voc07 --split voc1
  tenet score my.json detections.json --novel mug,spoon --curves curves.png
  tenet score voc_test.json detections.json --metric voc12 --iou 0.75 --classes bird,bus --json -
"""

import argparse
from pathlib import Path

from tenet.commands.console import emit_json, names
from tenet.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("truth", type=Path, metavar="GROUND_TRUTH.json")
    parser.add_argument("detections", type=Path, nargs="+", metavar="DETECTIONS.json")
    parser.add_argument("--metric", choices=("coco", "voc07", "voc12"), default="coco", help="default coco")
    parser.add_argument("--iou", type=float, help="overlap from which a box is right (voc: 0.5)")
    parser.add_argument("--classes", type=names, nargs="+", metavar="A,B", help="only these classes")
    parser.add_argument("--split", choices=("voc1", "voc2", "voc3", "coco"), help="group into base and novel")
    parser.add_argument("--novel", type=names, metavar="A,B", help="these are novel, the others base")
    parser.add_argument("--json", metavar="FILE", help="all numbers as JSON, as shares of 1; - is stdout")
    parser.add_argument("--curves", type=Path, metavar="FILE.png", help="draw precision–recall curves")


def run(args: argparse.Namespace) -> int:
    from tenet.scoring.coco import score_coco
    from tenet.scoring.detections import read_ground_truth, read_results
    from tenet.scoring.report import summarise, table
    from tenet.scoring.voc import score_voc

    truth = read_ground_truth(args.truth)
    classes = [name for group in args.classes for name in group] if args.classes else None
    runs = []
    for path in args.detections:
        found = read_results(path, truth)
        if args.metric == "coco":
            runs.append(score_coco(truth, found, classes, args.iou))
        else:
            iou = 0.5 if args.iou is None else args.iou
            runs.append(score_voc(truth, found, args.metric, classes, iou))
    summary = summarise(runs, _groups(args.split, args.novel, truth.classes))
    if args.json != "-":
        print(table(summary))
    if args.json:
        emit_json(summary.to_json(), args.json)
    if args.curves:
        from tenet.scoring.curves import draw_curves

        draw_curves(runs, args.curves)
    return 0


def _groups(split: str | None, novel: list[str] | None, classes: tuple[str, ...]) -> dict[str, list[str]]:
    """Base and novel classes, by name or of a split, as the ground truth spells them."""
    if novel is not None:
        unknown = [name for name in novel if name not in classes]
        if unknown or split is not None:
            came = f"{unknown[0]!r}" if unknown else "--split as well"
            raise InputError(f"--novel: expected classes of the ground truth and no --split, got {came}")
        return {"base": [name for name in classes if name not in novel], "novel": novel}
    if split is None:
        return {}
    from tenet.data.splits import SPLITS, VOC_TO_COCO, one_name

    sides = {"base": one_name(SPLITS[split].base), "novel": one_name(SPLITS[split].novel)}
    return {
        side: [name for name in classes if VOC_TO_COCO.get(name, name) in members]
        for side, members in sides.items()
    }
