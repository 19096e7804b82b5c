"""The shipped models against each other, in one run: a look through bank and predictor, and teaching a class.

On the demonstration's photographs; a look is all that `detect` does, second looks among it.

examples:
  tenet bench models
  tenet bench models --rounds 15 --scene collage
"""

import argparse
from collections.abc import Sequence
from typing import Any

from tenet.bench.arguments import positive

FASTEST = "tenet_lite0"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", type=positive, default=9, help="interleaved rounds (default: %(default)s)"
    )
    parser.add_argument(
        "--scene", default="collage", help="scene of the demonstration (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    from functools import partial

    from tenet.bank import ClassBank
    from tenet.bench.measure import Work, interleaved, machine, ms, table
    from tenet.demo import SCENES
    from tenet.errors import InputError
    from tenet.pictures import read_picture
    from tenet.predictor import Tenet
    from tenet.runtime.shipped import shipped_models

    scenes = {scene.name: scene for scene in SCENES}
    if args.scene not in scenes:
        raise InputError(f"--scene: expected one of {', '.join(scenes)}, got {args.scene!r}")
    scene = scenes[args.scene]
    picture, names = read_picture(scene.path), shipped_models()
    looks: dict[str, Work] = {}
    lessons: dict[str, Work] = {}
    for name in names:
        model = Tenet.load(name)
        bank = ClassBank(model)
        for shown in scene.classes:
            shots = [(shot.path, shot.box) for shot in scene.shots if shot.name == shown]
            bank.register(shown, shots)
            lessons.setdefault(name, partial(_teach, model, shown, shots))
        looks[name] = partial(model.detect, picture, bank)
    times, taught = interleaved(looks, args.rounds), interleaved(lessons, args.rounds)
    rows = [
        [name, ms(times[name]), f"{times[name] / times[FASTEST]:.2f}", ms(taught[name])] for name in names
    ]
    height, width = picture.shape[:2]
    print(machine(), "\n")
    print(f"{scene.name}, {width} x {height}, {len(scene.classes)} classes; medians of {args.rounds} rounds")
    print(table(["model", "a look", f"of {FASTEST}", "teaching a class"], rows))
    return 0


def _teach(model: Any, name: str, shots: Sequence[Any]) -> None:
    from tenet.bank import ClassBank

    ClassBank(model).register(name, shots)
