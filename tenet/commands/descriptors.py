"""Few-shot classification of a set's boxes with fixed descriptors, without any learning.

The rows of an ablation's table that differ in HOP (orders, splits, η, η') and the plain mean, on the last
map of a frozen encoder: how much better are classes told apart, before anything is trained? OUT/NAME has
descriptors.json, table.md and figure.png.

examples:
  tenet descriptors fig3a_eta --data data/voc/voc2007_test.json
  tenet descriptors fig3a_eta --data data/voc/voc2007_test.json --channels 160
  tenet descriptors table3a --data data/coco/val.json --shots 1,5 --encoder lite0
  tenet descriptors supplement_eta_prime --data my_set --per-class 20 --out results/my_set
"""

import argparse
import time
from pathlib import Path

from tenet.commands.console import at_least_one, progress, whole_numbers

ENCODERS = {"lite0": 0, "lite1": 1, "lite2": 2}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", help="an ablation's table: table3a, fig3a_eta, supplement_eta_prime"
    )
    parser.add_argument("--data", type=Path, required=True, metavar="SET", help="annotated pictures")
    parser.add_argument("--encoder", choices=ENCODERS, default="lite2", help="default lite2")
    parser.add_argument("--shots", type=whole_numbers, default=[1, 5], help="default 1,5")
    parser.add_argument(
        "--per-class", type=at_least_one, default=40, metavar="N", help="boxes of each class (default 40)"
    )
    parser.add_argument(
        "--min-side",
        type=float,
        default=32,
        metavar="PX",
        help="boxes with a shorter side are left out (default 32)",
    )
    parser.add_argument(
        "--channels", type=at_least_one, default=0, metavar="D", help="only so many, drawn (default: all)"
    )
    parser.add_argument("--draws", type=at_least_one, default=200, help="draws of shots (default 200)")
    parser.add_argument("--out", type=Path, default=Path("results/descriptors"), metavar="DIR")


def run(args: argparse.Namespace) -> int:
    from tenet.ablations.descriptor_report import METRIC, RANGE, descriptor_table, draw_descriptors
    from tenet.ablations.descriptors import MEAN, descriptor_rows, encode_crops, measure_descriptors
    from tenet.data.files import write_text
    from tenet.data.formats import read_dataset
    from tenet.drawing.figures import save_figure
    from tenet.errors import MissingExtraError
    from tenet.records.record import Figure, Record, made_by, write_record

    made_by()  # the commit that runs, not that of hours later
    begun = time.monotonic()
    rows = descriptor_rows(args.name)
    dataset = read_dataset(args.data)
    settings = {name: getattr(args, name) for name in ("per_class", "min_side", "channels", "draws")}
    crops = encode_crops(
        dataset,
        ENCODERS[args.encoder],
        args.per_class,
        max(args.shots) + 1,
        min_side=args.min_side,
        progress=progress,
    )
    found = measure_descriptors(crops, rows, args.shots, args.draws, args.channels, progress)
    figures = tuple(
        Figure(
            dataset.name,
            len(crops.labels),
            "crops",
            METRIC,
            shots,
            0,
            {name: {METRIC: one.mean, RANGE: one.within} for name, one in own.items()},
            {name: {} for name in crops.classes},
        )
        for shots, own in found.items()
    )
    record = Record(
        kind="descriptors",
        command=args.command_line,
        model={"name": f"EfficientNet-{args.encoder.capitalize()}"},
        config={"table": args.name, "reference": MEAN, "encoder": args.encoder, **settings},
        figures=figures,
        seconds=round(time.monotonic() - begun, 1),
    )
    folder = args.out / args.name
    write_record(folder / "descriptors.json", record)
    text = descriptor_table(record)
    write_text(folder / "table.md", text)
    print(text)
    try:
        save_figure(draw_descriptors(record), folder / "figure.png")
    except MissingExtraError as error:
        print(error)
    print(folder)
    return 0
