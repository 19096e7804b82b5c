"""Show why something was found in a picture, or what came nearest to it.

Looks for the classes of a bank and explains the best detections: the region beside the shot that it matched
best, the attention of the paper's tokens on both (FO, HO, their average, max-pooled spatial), the positions
that match, and how alike it is to each shot. Where nothing reaches the threshold, the best detection below it
is explained, and the command says so.

examples:
  tenet explain things.bank street.jpg
  tenet explain things.bank street.jpg --classes pinecone --top 1 --out why.png
  tenet explain things.bank street.jpg --threshold 0.2 --out why.html
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.commands.banks import load_to_look
from tenet.commands.console import at_least_one, check_out, names

if TYPE_CHECKING:
    from tenet.drawing.explain import Explained

SUFFIXES = (".png", ".jpg", ".jpeg", ".html", ".htm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bank", type=Path, metavar="BANK", help="a class bank, see `tenet register`")
    parser.add_argument("image", type=Path, metavar="IMAGE", help="a picture")
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help=".png, .jpg or .html (default IMAGE-explained.png, here)"
    )
    parser.add_argument("--classes", type=names, metavar="A,B", help="only these classes of the bank")
    parser.add_argument("--top", type=at_least_one, default=3, metavar="N", help="detections (default 3)")
    parser.add_argument("--threshold", type=float, metavar="T", help="least score (default: the model's own)")
    parser.add_argument("--model", metavar="NAME", help="a model by name or file (default: that of the bank)")


def run(args: argparse.Namespace) -> int:
    out = args.out or Path(f"{args.image.stem}-explained.png")
    check_out(out, SUFFIXES)

    from tenet.drawing.explain import explain
    from tenet.pictures import read_picture

    picture = read_picture(args.image)
    model, bank = load_to_look(args.bank, args.model)
    explained = explain(model, picture, bank, args.top, args.threshold, args.classes)
    _print_table(explained)
    _write(explained, args.image.name, out)
    print(f"\nfigure: {out}")
    return 0


def _print_table(explained: "Explained") -> None:
    found = explained.detections
    print(explained.note)
    if len(found):
        print(f"\n{'score':>5}  {'x, y, w, h':<24} {'shot':>4}  {'cosine':>6}  class")
    for row, reason in enumerate(explained.explanations):
        x1, y1, x2, y2 = found.boxes[row].tolist()
        box = f"{x1:.0f}, {y1:.0f}, {x2 - x1:.0f}, {y2 - y1:.0f}"
        shot = int(found.shots[row])
        numbers = f"{found.scores[row]:5.2f}  {box:<24} {shot:>4}  {reason.cosines[shot]:6.2f}"
        print(f"{numbers}  {found.names[row]}")


def _write(explained: "Explained", name: str, out: Path) -> None:
    from tenet.data.files import write_bytes
    from tenet.data.images import encode_jpeg, encode_png
    from tenet.drawing.html_page import PageItem, write_page

    figure = explained.figure(name)
    if out.suffix.lower() in (".html", ".htm"):
        items = [
            PageItem("What was found", explained.picture, explained.detections),
            PageItem("Why", figure, figure=True),
        ]
        write_page(out, name, items, explained.note)
    elif out.suffix.lower() == ".png":
        write_bytes(out, encode_png(figure))
    else:
        write_bytes(out, encode_jpeg(figure))
