"""What is in a set, and everything that is wrong with it.

Reports classes, boxes and sizes, and each defect: missing or unreadable pictures, boxes outside or empty,
unknown classes, duplicate ids, sizes that do not fit, names that lead out of the image folder. The exit
code is 1 where there is any. --fix writes a repaired copy to a new folder and names all it leaves out.

examples:
  tenet data check coco/val.json
  tenet data check VOCdevkit/VOC2007 --set trainval --histogram sizes.png
  tenet data check yolo_folder --json - --no-pixels
  tenet data check broken.json --fix repaired/
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.commands.console import add_set_arguments, emit_json, progress

if TYPE_CHECKING:
    from tenet.data.check import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="JSON files or folders")
    add_set_arguments(parser)
    parser.add_argument("--no-pixels", action="store_true", help="look whether pictures are there, open none")
    parser.add_argument("--json", metavar="FILE", help="the whole report as JSON; - is stdout")
    parser.add_argument("--histogram", type=Path, metavar="FILE.png", help="draw classes and box sizes")
    parser.add_argument("--fix", type=Path, metavar="FOLDER", help="write a repaired copy to this new folder")
    parser.add_argument("--limit", type=int, default=20, help="defects to spell out in the text (default 20)")


def run(args: argparse.Namespace) -> int:
    from tenet.data.check import check_scan, histogram, report_text
    from tenet.data.formats import scan_path
    from tenet.errors import InputError

    if len(args.paths) > 1 and (args.fix or args.histogram):
        raise InputError(
            "--fix and --histogram: expected one PATH with them, got several; check one at a time"
        )
    reports = []
    for path in args.paths:
        scan = scan_path(path, args.format, args.images, args.image_set)
        reports.append(check_scan(scan, not args.no_pixels, progress))
        if args.json != "-":
            print(report_text(reports[-1], args.limit))
    if args.json:
        documents = [report.to_json() for report in reports]
        emit_json(documents[0] if len(documents) == 1 else documents, args.json)
    if args.histogram:
        histogram(reports[0], args.histogram)
    defects = sum(len(report.defects) for report in reports)
    if args.fix:
        defects = _fix(args, reports[0])
    return 1 if defects else 0


def _fix(args: argparse.Namespace, report: "Report") -> int:
    """Write the repaired copy, say what was done, and check it again; the defects that are left."""
    from tenet.data.check import check_scan, report_text
    from tenet.data.formats import scan_path
    from tenet.data.repair import repair, repaired_path

    out = sys.stderr if args.json == "-" else sys.stdout
    for line in repair(report.scan, report.defects, args.fix):
        print(line, file=out)
    path = repaired_path(report.scan, args.fix)
    again = check_scan(scan_path(path, report.scan.layout), not args.no_pixels, progress)
    print(report_text(again, args.limit), file=out)
    return len(again.defects)
