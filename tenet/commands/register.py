"""Show the detector a class: a few pictures of it, under a name, into a bank file.

A shot is IMAGE, cut out tightly around the thing (or a folder of such crops), or IMAGE:x,y,w,h, a picture and
where the thing is in it (left, top, width, height in pixels). The second tells more: how large the thing is,
what is around it, and whether the detector sees it there, which is printed. BANK is made where there is none;
a class that it has gets further shots, and those it has already are left out. If one shot is bad, nothing is
registered.

With --from every class of an annotated set (COCO, FSOD, VOC, YOLO) gets its shots, drawn by seed.

examples:
  tenet register forest.bank pinecone crop1.jpg crop2.jpg
  tenet register forest.bank pinecone crops/
  tenet register forest.bank pinecone path.jpg:412,96,60,84 yard.jpg:20,31,118,140
  tenet register forest.bank pinecone better.jpg:5,8,90,90 --replace
  tenet register parts.bank --from annotations.json --shots 5 --seed 0 --min-side 24
  tenet register parts.bank --from VOCdevkit --set trainval --shots 3 --classes bird,sofa --json -
"""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.commands.banks import (
    Box,
    add_model_argument,
    changing,
    check_inside,
    load_maker,
    load_model,
    parse_shot,
)
from tenet.commands.console import add_set_arguments, at_least_one, emit_json, names, progress
from tenet.errors import InputError, TenetError

if TYPE_CHECKING:
    from tenet.bank import ClassBank
    from tenet.banks.registration import Registration
    from tenet.data.dataset import Record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "tenet register BANK NAME IMAGE[:x,y,w,h] … [--replace] [--model NAME] [--json FILE]\n"
        "       tenet register BANK --from SET --shots N [--seed S] [--classes A,B] [--min-side PX] …"
    )
    parser.add_argument("bank", type=Path, metavar="BANK", help="the bank's file")
    parser.add_argument("name", nargs="?", metavar="NAME", help="what the class is called")
    parser.add_argument("shots_given", nargs="*", metavar="IMAGE", help="IMAGE, IMAGE:x,y,w,h or a folder")
    parser.add_argument("--replace", action="store_true", help="forget the shots that the class has")
    add_model_argument(parser)
    parser.add_argument("--json", metavar="FILE", help="the answer as JSON; - is stdout")
    parser.add_argument("--from", dest="source", type=Path, metavar="SET", help="every class of this set")
    parser.add_argument("--shots", type=at_least_one, metavar="N", help="--from: shots of each class")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="--from: which draw (default 0)")
    parser.add_argument("--classes", type=names, metavar="A,B", help="--from: only these classes")
    parser.add_argument(
        "--min-side", type=float, default=0, metavar="PX", help="--from: least side of a shot"
    )
    add_set_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if args.source is not None:
        return _register_set(args)
    from tenet.banks.class_names import check_name

    if args.name is None or not args.shots_given:
        raise InputError("expected NAME and at least one IMAGE after BANK, or --from SET --shots N")
    if args.shots is not None or args.classes is not None:
        raise InputError("--shots and --classes: expected with --from SET alone")
    check_name(args.name)
    # Before the model is loaded, which takes seconds: what can be said at once.
    shots = [shot for text in args.shots_given for shot in _existing(text, *parse_shot(text))]
    with changing(args.bank):
        bank = _bank(args)
        answer = bank.register(args.name, shots, replace=args.replace)
        bank.save(args.bank)
    _tell(args, {args.name: answer})
    return 0


def _existing(text: str, path: Path, box: Box | None) -> list[object]:
    """The shots that a word of the command names: one, or all crops of a folder."""
    if os.path.isdir(path) and box is None:
        from tenet.looks.sources import pictures_in

        return list(pictures_in(path))
    if not os.path.isfile(path):  # and not path.is_file(), which raises for a name that is too long
        before = text.rpartition(":")[0]
        if os.path.isfile(before):
            raise InputError(f"{text}: expected IMAGE:x,y,w,h, four numbers in pixels, after {before}")
        raise InputError(f"{path}: expected a picture, but there is no such file")
    if box is None:
        return [path]
    from tenet.data.images import picture_size

    check_inside(text, picture_size(path), box)
    return [(path, box)]


def _bank(args: argparse.Namespace) -> "ClassBank":
    from tenet.bank import ClassBank

    if not os.path.exists(args.bank):
        return ClassBank(load_model(args.model))
    opened = ClassBank.open(args.bank)  # a file that is no bank is refused before the model is loaded
    return ClassBank.load(args.bank, load_maker(args.bank, opened, args.model))


def _register_set(args: argparse.Namespace) -> int:
    from tenet.data.formats import read_dataset
    from tenet.data.shots import draw_shots

    if args.name is not None:
        raise InputError(f"--from: expected no NAME and no IMAGE beside it, got {args.name}")
    if args.shots is None:
        raise InputError("--from: expected --shots N with it, how many shots each class gets")
    dataset = read_dataset(args.source, args.format, args.images, args.image_set)
    drawn = draw_shots(dataset, args.shots, args.seed, args.classes, args.min_side)
    for name, count in drawn.short().items():
        print(f"note: {name} has {count} of {args.shots} shots", file=sys.stderr)
    wanted = {name: refs for name, refs in drawn.classes.items() if refs}
    if not wanted:
        raise InputError(f"{args.source}: expected boxes to draw shots from, found none; try --min-side 0")
    called = _called(list(wanted))
    records = {record.id: record for record in dataset.records}
    answers, failed = {}, []
    with changing(args.bank):
        bank = _bank(args)
        for name, refs in progress(wanted.items(), len(wanted)):
            try:
                shots = [_shot(records[ref.picture], ref.box) for ref in refs]
                answers[called[name]] = bank.register(called[name], shots, replace=args.replace)
            except TenetError as error:
                failed.append(f"{name}: not registered: {error}")
        if answers:
            bank.save(args.bank)
    for line in failed:
        print(line, file=sys.stderr)
    _tell(args, answers)
    return 1 if failed else 0


def _shot(record: "Record", box: int) -> object:
    """A drawn box as (picture, (x1, y1, x2, y2)), in pixels of the upright picture."""
    return record.picture(), tuple(float(value) for value in record.target.boxes[box])


def _called(classes: list[str]) -> dict[str, str]:
    """What each class of a set is called in a bank: `Cabinet/shelf` has a slash that a bank cannot have."""
    called = {name: name.strip().replace("/", "-").replace("\\", "-") for name in classes}
    count = Counter(called.values())
    twice = [name for name in classes if count[called[name]] > 1]
    if twice:
        raise InputError(f"classes: expected names that differ without slashes, got {', '.join(twice)}")
    return called


def _tell(args: argparse.Namespace, answers: dict[str, "Registration"]) -> None:
    if args.json != "-":
        for answer in answers.values():
            print(answer)
    if args.json:
        classes = {name: answer.to_json() for name, answer in answers.items()}
        emit_json({"bank": str(args.bank), "classes": classes}, args.json)
