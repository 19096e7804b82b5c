"""List the classes of a bank, and put a bank in order.

Listing, removing, renaming and exporting need no model and are quick. A change is written back to BANK in
one step. Shots count from 0, as in the answers of the detector.

  sees     of the shots that came with their pictures, how many the detector sees there
  verdict  good, doubtful, poor; unknown where all shots are bare crops

examples:
  tenet classes forest.bank
  tenet classes forest.bank --json - | jq '.classes[].name'
  tenet classes forest.bank --remove pinecone
  tenet classes forest.bank --remove pinecone --shot 2
  tenet classes forest.bank --rename pinecone "pine cone"
  tenet classes forest.bank --merge garden.bank
  tenet classes forest.bank --export-shots shots
  tenet classes forest.bank --rebuild
"""

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenet.commands.banks import add_model_argument, changing, load_maker, load_model
from tenet.commands.console import emit_json, progress
from tenet.errors import InputError

if TYPE_CHECKING:
    from tenet.bank import ClassBank


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bank", type=Path, metavar="BANK", help="the bank's file")
    parser.add_argument("--remove", metavar="NAME", help="forget a class")
    parser.add_argument("--shot", type=int, metavar="N", help="--remove: forget only this shot of it")
    parser.add_argument("--rename", nargs=2, metavar=("OLD", "NEW"), help="call a class otherwise")
    parser.add_argument("--merge", type=Path, metavar="OTHER", help="take in the classes of another bank")
    parser.add_argument(
        "--rebuild", action="store_true", help="encode the stored shots anew, for another model"
    )
    parser.add_argument("--export-shots", type=Path, metavar="DIR", help="write the shots' crops as pictures")
    add_model_argument(parser)
    parser.add_argument("--json", metavar="FILE", help="the list as JSON; - is stdout")


def run(args: argparse.Namespace) -> int:
    if args.shot is not None and args.remove is None:
        raise InputError("--shot: expected --remove NAME with it")
    if args.rebuild or args.remove is not None or args.rename is not None or args.merge is not None:
        with changing(args.bank):
            bank = _bank(args)
            _change(args, bank)
            bank.save(args.bank)
    else:
        bank = _bank(args)
    if args.export_shots is not None:
        _export(bank, args.export_shots)
    listed = _listing(args.bank, bank)
    if args.json != "-":
        print(_table(listed))
    if args.json:
        emit_json(listed, args.json)
    return 0


def _change(args: argparse.Namespace, bank: "ClassBank") -> None:
    if args.remove is not None:
        bank.remove(args.remove, args.shot)
    if args.rename is not None:
        bank.rename(*args.rename)
    if args.merge is not None:
        for answer in bank.merge(_other(args.merge)).values():
            print(answer, file=sys.stderr)


def _other(path: Path) -> "ClassBank":
    from tenet.bank import ClassBank

    return ClassBank.open(path)


def _bank(args: argparse.Namespace) -> "ClassBank":
    """The bank, with a model only where something has to be encoded."""
    bank = _other(args.bank)
    both = args.merge is not None and any(name in bank for name in _other(args.merge))
    if not (args.rebuild or both or args.shot is not None):
        return bank
    from tenet.bank import ClassBank

    model = load_model(args.model) if args.rebuild else load_maker(args.bank, bank, args.model)
    return ClassBank.load(args.bank, model, rebuild=args.rebuild, progress=progress)


def _listing(path: Path, bank: "ClassBank") -> dict[str, Any]:
    classes = [bank.registration(name).to_json() for name in bank.names]
    for one in classes:
        del one["added"]
    return {
        "bank": str(path),
        "model": bank.model_name,
        "fingerprint": bank.fingerprint,
        "bytes": path.stat().st_size,
        "shots": bank.shot_count,
        "classes": classes,
    }


def _table(listed: dict[str, Any]) -> str:
    classes = listed["classes"]
    width = max([5, *(len(one["name"]) for one in classes)])
    lines = [f"{'class':<{width}}  shots   sees  verdict"] if classes else []
    for one in classes:
        seen = (
            "–"
            if one["covered"] is None
            else f"{round(one['covered'] * one['in_pictures'])}/{one['in_pictures']}"
        )
        lines.append(f"{one['name']:<{width}}  {one['shots']:>5}  {seen:>5}  {one['verdict']}")
    head = f"{len(classes)} classes, {listed['shots']} shots" if classes else "no classes yet"
    size = listed["bytes"]
    shown = f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"
    lines.append(f"{head}; model {listed['model']} ({listed['fingerprint'][:12]}); {shown}")
    return "\n".join(lines)


def _export(bank: "ClassBank", folder: Path) -> None:
    """`DIR/NAME/0.jpg`, …: the crops as they are stored."""
    from tenet.data.files import new_folder, write_bytes

    new_folder(folder)
    taken: set[str] = set()
    for name in bank.names:
        own = _folder_name(name, taken)
        for row, shot in enumerate(bank.shots(name)):
            write_bytes(folder / own / f"{row}.jpg", shot.crop)


def _folder_name(name: str, taken: set[str]) -> str:
    """A name that every system allows for a folder, and that no class before has: some systems do not tell
    `Cat` from `cat`."""
    plain = re.sub(r'[<>:"|?*]', "_", name).rstrip(".") or "_"
    own, count = plain, 1
    while own.casefold() in taken:
        count += 1
        own = f"{plain}-{count}"
    taken.add(own.casefold())
    return own
