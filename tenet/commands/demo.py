"""See the detector at work: shown a few examples, it finds others of their kind, without training.

Scenes on photographs that come with tenet: coins among coins, a cat and a cup in a collage, a star among
galaxies, and a picture in which there is nothing to find. Prints what was found against boxes drawn by hand,
which the detector never sees, and writes a picture. --hard shows cases where it fails: coins in a wide
view, small, turned, blurred and noisy, and a part of a thing.

examples:
  tenet demo
  tenet demo --hard
  tenet demo --out scenes.png --threshold 0.3
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenet.commands.console import check_out

if TYPE_CHECKING:
    from tenet.demo import Scene
    from tenet.demo.poster import Result

TITLE = "A few examples shown, nothing trained: what {} finds"
HARD_TITLE = "Where it ends: what {} finds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("demo-output/demo.png"), help="picture (default: %(default)s)"
    )
    parser.add_argument("--hard", action="store_true", help="scenes that show where it ends")
    parser.add_argument("--threshold", type=float, metavar="T", help="least score (default: the model's own)")
    parser.add_argument("--model", metavar="NAME", help="another model than the one that comes with tenet")


def run(args: argparse.Namespace) -> int:
    check_out(args.out, (".png", ".jpg", ".jpeg"))

    from tempfile import TemporaryDirectory
    from time import perf_counter

    from tenet.demo import SCENES
    from tenet.demo.limits import hard_scenes
    from tenet.predictor import Tenet

    start = perf_counter()
    model = Tenet.load(args.model)
    with TemporaryDirectory() as folder:
        scenes = hard_scenes(Path(folder)) if args.hard else SCENES
        results = [_play(model, scene, args.threshold) for scene in scenes]
        _print_table(results)
        title = HARD_TITLE if args.hard else TITLE
        _write(results, title.format(model.runtime.name), args.out, 3 if args.hard else 2)
    print(f"\npicture: {args.out}, {perf_counter() - start:.0f} s")
    return 0


def _play(model: Any, scene: "Scene", threshold: float | None) -> "Result":
    """Show the shots, look in the picture; the truth is only compared with what came out."""
    from tenet.bank import ClassBank
    from tenet.demo.outcome import judge

    bank = ClassBank(model)
    for name in scene.classes:
        bank.register(name, [(shot.path, shot.box) for shot in scene.shots if shot.name == name])
    found = model.detect(scene.path, bank, threshold=threshold)
    return scene, found, judge(scene, found)


def _print_table(results: "list[Result]") -> None:
    print(f"{'scene':<9} {'shots':>5} {'there':>6} {'found':>6} {'right':>6} {'missed':>7} {'false':>6}")
    for scene, _, outcome in results:
        counts = f"{outcome.shots:>5} {outcome.there:>6} {outcome.found:>6} {outcome.right:>6}"
        print(f"{scene.name:<9} {counts} {outcome.missed:>7} {outcome.false:>6}  {scene.about}")


def _write(results: "list[Result]", title: str, out: Path, columns: int) -> None:
    from tenet.data.files import write_bytes
    from tenet.data.images import encode_jpeg, encode_png
    from tenet.demo.poster import poster

    picture = poster(results, title, columns)
    write_bytes(out, encode_png(picture) if out.suffix.lower() == ".png" else encode_jpeg(picture))
