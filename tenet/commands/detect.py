"""Find the classes of a bank in pictures.

BANK is what `tenet register` wrote. IMAGES are picture files, folders, patterns such as 'photos/*.jpg', and
video files, of which every 10th frame is looked at (--every). A file that cannot be read is named, and the
others are done.

  --out     a folder for pictures with boxes drawn in, results.json (COCO), a contact sheet and report.html
  --format  results in this format as well: yolo, voc, csv
  --json    all detections, boxes [x, y, width, height] in pixels; - is stdout, without the table

exit codes: 0 all done, 1 nothing done, 2 wrong use, 3 some files failed and the others are done

examples:
  tenet detect things.bank forest.jpg
  tenet detect things.bank photos --out found --threshold 0.5
  tenet detect things.bank 'photos/*.jpg' --classes pinecone,acorn --json - | jq '.pictures[].detections'
  tenet detect things.bank walk.mp4 --every 30 --out found --format csv
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenet.commands.banks import load_to_look
from tenet.commands.console import at_least_one, check_json, emit_json, names, progress, working_size

if TYPE_CHECKING:
    from tenet.looks.frames import Frame
    from tenet.predictor import Tenet
    from tenet.results.pictures import PictureResult

LOW = 0.1
"""A threshold for those who want to see what nearly was found."""
SOME_FAILED = 3
"""Exit code: some files could not be read, the others are done."""
TOGETHER = 8
"""Pictures that are given to the network together."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bank", type=Path, metavar="BANK")
    parser.add_argument("images", nargs="+", metavar="IMAGES", help="pictures, folders, patterns, videos")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for annotated pictures and results")
    parser.add_argument("--json", metavar="FILE", help="all detections as JSON; - is stdout")
    parser.add_argument(
        "--threshold", type=float, metavar="T", help="least score shown (default: the model's)"
    )
    parser.add_argument("--classes", type=names, metavar="A,B", help="only these classes of the bank")
    parser.add_argument(
        "--size",
        type=working_size,
        default="auto",
        metavar="auto|thorough|once|N|original",
        help="longer side, in pixels",
    )
    parser.add_argument("--no-tiles", action="store_true", help="never cut a large picture into tiles")
    parser.add_argument(
        "--format", choices=("coco", "yolo", "voc", "csv"), default="coco", help="default coco"
    )
    parser.add_argument(
        "--every", type=at_least_one, default=10, metavar="N", help="every N-th frame of videos (default 10)"
    )
    parser.add_argument("--model", metavar="NAME", help="a model by name or file (default: that of the bank)")


def run(args: argparse.Namespace) -> int:
    from tenet.commands.detect_output import Output
    from tenet.commands.detect_sources import find_sources
    from tenet.errors import DataError, InputError
    from tenet.results.pictures import PictureResult, frame_name, plain

    check_json(args.json)
    if args.format != "coco" and args.out is None:
        raise InputError(f"--format {args.format}: expected --out DIR with it, where the files go")
    pictures, videos, failed, left_out = find_sources(args.images, leave_out=args.out)
    found: list[PictureResult] = []
    entries: list[dict[str, Any]] = []
    if pictures or videos:
        model, bank = load_to_look(args.bank, args.model)
        output = None if args.out is None else Output(args.out, args.format)
        for frame in progress(_frames(model, bank, args, pictures, videos, failed), len(pictures)):
            if frame.picture is None:
                failed[str(frame.path)] = str(frame.error)
                continue
            height, width = frame.picture.shape[:2]
            found.append(PictureResult(frame_name(frame), width, height, frame.detections))
            entries.append(_entry(found[-1], frame))
            try:
                if output is not None:
                    output.add(found[-1], frame.picture)
            except DataError as error:  # a full disk costs the drawing, not what was found
                failed[frame_name(frame)] = str(error)
    failed = {plain(name): plain(message) for name, message in failed.items()}
    for line in (*failed.values(), *map(plain, left_out)):
        print(f"tenet detect: {line}", file=sys.stderr)
    if not found:
        return 1
    if args.json != "-":
        print(_table(found))
        print(_summary(found, failed, model.runtime.threshold if args.threshold is None else args.threshold))
    try:
        written = [] if output is None else output.finish(found)
        if written and args.json != "-":
            print("\n".join(written))
    finally:  # a folder that cannot be written costs nobody the JSON
        if args.json:
            threshold = model.runtime.threshold if args.threshold is None else args.threshold
            emit_json(_document(model.name, threshold, found, entries, failed), args.json)
    return SOME_FAILED if failed else 0


def _document(
    model: str,
    threshold: float,
    found: list["PictureResult"],
    entries: list[dict[str, Any]],
    failed: dict[str, str],
) -> dict[str, Any]:
    """What `--json` gives."""
    return {
        "model": model,
        "threshold": threshold,
        "classes": list(found[0].detections.classes),
        "pictures": entries,
        "failed": [{"picture": name, "error": message} for name, message in failed.items()],
    }


def _frames(
    model: "Tenet",
    bank: Any,
    args: argparse.Namespace,
    pictures: list[Path],
    videos: list[Path],
    failed: dict[str, str],
) -> Iterator["Frame"]:
    """Pictures first, then the frames of each video; a video that breaks off is one of `failed`."""
    from tenet.errors import TenetError

    options = {"classes": args.classes, "size": args.size, "tiles": not args.no_tiles}
    if pictures:
        yield from model.stream(pictures, bank, args.threshold, batch=TOGETHER, keep_going=True, **options)
    for video in videos:
        frames = model.stream(video, bank, args.threshold, every=args.every, **options)
        try:
            yield from frames
        except TenetError as error:  # also that no package reads videos: the pictures are done
            failed[str(video)] = str(error) if str(video) in str(error) else f"{video}: {error}"


def _xywh(box: list[float]) -> list[float]:
    """[x, y, width, height] of xyxy, as annotation tools print it."""
    x1, y1, x2, y2 = box
    return [round(value, 2) for value in (x1, y1, x2 - x1, y2 - y1)]


def _rows(one: "PictureResult") -> Iterator[tuple[str, float, list[float], int]]:
    """(class, score, xywh in pixels of the picture, shot) of each detection."""
    found = one.detections
    rows = zip(
        found.names.tolist(), found.scores.tolist(), found.boxes.tolist(), found.shots.tolist(), strict=True
    )
    for name, score, box, shot in rows:
        yield name, round(score, 4), _xywh(box), shot


def _entry(one: "PictureResult", frame: "Frame") -> dict[str, Any]:
    entry: dict[str, Any] = {"picture": one.file_name, "width": one.width, "height": one.height}
    if frame.time is not None:
        entry.update(video=one.file_name.rpartition("_")[0], frame=frame.number, time=round(frame.time, 4))
    fields = ("class", "score", "box", "shot")
    return {**entry, "detections": [dict(zip(fields, row, strict=True)) for row in _rows(one)]}


def _table(found: list["PictureResult"]) -> str:
    widest = max([len("picture"), *(len(one.file_name) for one in found)])
    longest = max(
        [len("class"), *(len(name) for one in found for name in set(one.detections.names.tolist()))]
    )
    lines = [f"{'picture':<{widest}}  {'class':<{longest}}  score {'x':>6} {'y':>6} {'w':>6} {'h':>6}"]
    for one in found:
        if not len(one.detections):
            lines.append(f"{one.file_name:<{widest}}  –")
        for name, score, box, _ in _rows(one):
            sides = " ".join(f"{value:6.0f}" for value in box)
            lines.append(f"{one.file_name:<{widest}}  {name:<{longest}}  {score:5.2f} {sides}")
    return "\n".join(lines)


def _summary(found: list["PictureResult"], failed: dict[str, str], threshold: float) -> str:
    boxes = sum(len(one.detections) for one in found)
    empty = sum(1 for one in found if not len(one.detections))
    text = f"\n{boxes} found in {len(found)} picture{'s' * (len(found) != 1)} ({empty} without)"
    if failed:
        text += f"; {len(failed)} failed"
    if not boxes and threshold > LOW:
        text += f"\nnothing has a score of {threshold:.2f}; --threshold {LOW} shows what is less sure"
    return text
