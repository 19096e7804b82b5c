"""Measure a detector on a test set: every class against every picture, shots × seeds.

MODEL is a shipped model, or a trained detector: a run or its checkpoint. The name of another configuration
(`tenet models`) builds an untrained one.
Shots are drawn by seed from --shots-from, or from the test set itself: then the pictures that hold a shot
are not tested. The folder --out holds detections, results.json and report.html; a run that was stopped
continues there. Of a VOC devkit or a YOLO folder FOLDER:PART is one part, such as VOC2007:test; without it
all are tested, those that were trained on too.

  --protocol episodes draws N-way K-shot episodes of --data instead: shots and pictures to look in, for a few
  classes at a time; the mean over episodes comes with its 95 % confidence interval.

  --split   whose classes are base and novel; `all`: every class that was not trained on is novel
  --tracks  strict: the encoder's weights never saw novel classes as boxes; paper: they may have

examples:
  tenet evaluate tenet_lite0 --data test.json --shots 1,5 --seeds 0-4 --out runs/lite0
  tenet evaluate runs/v1 --data voc2012_val.json --shots-from voc2007_trainval.json \\
    --split voc1 --side novel --shots 1,3,5,10 --min-side 32 --out runs/v1/eval
  tenet evaluate runs/v1 --data VOCdevkit/VOC2007:test --shots-from VOCdevkit/VOC2007:trainval --split voc1
  tenet evaluate runs/fsod --data fsod_test.json --protocol episodes --ways 5 --shots 5 --out runs/fsod/5way
  tenet evaluate tenet_lite0 --data bccd.json --shots 5 --seeds 0 --limit 50 --metric coco --json -
  tenet evaluate runs/v1 --data test.json --shots 1,5 --finetune --results results/v1/fine_tuned.json
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tenet.commands.console import (
    add_results_argument,
    at_least_one,
    check_folder,
    check_out,
    emit_json,
    names,
    progress,
)

if TYPE_CHECKING:
    from tenet.data.dataset import Dataset
    from tenet.engine.episode_result import EpisodeEvaluation
    from tenet.engine.evaluate import Adapt
    from tenet.engine.evaluation_result import Evaluation
    from tenet.engine.evaluation_settings import EvaluationSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL|PRESET", help="a shipped model, a run or checkpoint")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="TEST", help="the test set, or FOLDER:PART"
    )
    parser.add_argument(
        "--shots-from",
        type=Path,
        nargs="+",
        metavar="SET",
        help="sets, or FOLDER:PART, to draw shots from (default: TEST)",
    )
    parser.add_argument("--list", type=Path, metavar="FILE", help="public VOC shot lists, instead of drawing")
    parser.add_argument("--split", choices=("voc1", "voc2", "voc3", "coco", "all"), default="all")
    parser.add_argument(
        "--side", choices=("novel", "base", "both"), default="novel", help="of a --split; default novel"
    )
    parser.add_argument("--classes", type=names, metavar="A,B", help="only these of them")
    parser.add_argument("--shots", type=numbers, help="such as 1,5 (default 1,3,5,10; episodes: 5)")
    parser.add_argument("--seeds", type=numbers, help="such as 0,2 or 0-4 (default; episodes: 0)")
    parser.add_argument("--metric", type=names, default=["voc07", "coco"], help="default voc07,coco")
    parser.add_argument(
        "--base-shots",
        type=int,
        default=0,
        metavar="N",
        help="least shots of a base class, with --side both (default: as many as of a novel one)",
    )
    parser.add_argument("--min-side", type=float, default=0, metavar="PX", help="least side of a shot's box")
    parser.add_argument("--limit", type=at_least_one, metavar="N", help="only N test pictures, by fixed seed")
    parser.add_argument("--threshold", type=float, default=0.001, help="least score kept (default 0.001)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the evaluation")
    parser.add_argument(
        "--coco-files", action="store_true", help="also write each draw to --out for `tenet score` (large)"
    )
    parser.add_argument("--json", metavar="FILE", help="all numbers as JSON, as shares of 1; - is stdout")
    add_results_argument(parser)
    parser.add_argument("--workers", type=int, default=1, help="processes that decode ahead (default 1)")
    parser.add_argument("--tracks", choices=("strict", "paper"), default="strict", help="named in the report")
    parser.add_argument(
        "--trained-on", type=names, default=[], metavar="A,B", help="further classes it learned"
    )
    parser.add_argument(
        "--no-objectness", action="store_true", help="fit no closed-form objectness, where the model has it"
    )
    parser.add_argument("--protocol", choices=("meta-test", "fine-tuned", "episodes"), default="meta-test")
    parser.add_argument("--finetune", action="store_true", help="the same as --protocol fine-tuned")
    parser.add_argument("--ways", type=at_least_one, default=5, help="episodes: classes (default 5)")
    parser.add_argument("--episodes", type=at_least_one, default=500, help="episodes: how many (default 500)")
    parser.add_argument(
        "--queries", type=at_least_one, default=10, help="episodes: pictures of each class (default 10)"
    )


def run(args: argparse.Namespace) -> int:
    from tenet.data.formats import read_dataset
    from tenet.records.record import made_by

    made_by()  # the commit that runs, not that of hours later
    if args.results is not None:
        check_out(args.results, (".json",), "--results")
    if args.out is not None:
        check_folder(args.out)
    test = read_dataset(args.data)
    protocol = _protocol(args)
    model = _model(args.model)
    settings = _settings(args, protocol, test, model)
    _tell_fine_tuned(model, settings)
    done = (_run_episodes if protocol == "episodes" else _run_draws)(args, model, test, settings)
    document = done.to_json()
    if args.results is not None:
        _write_record(args, model, document)
    if args.json != "-":
        print(done.table())
    if args.json:
        emit_json(document, args.json)
    if args.out is not None:
        emit_json(document, str(args.out / "results.json"))
        if args.json != "-":
            page = args.out / "report.html"
            print(f"\nreport: {page}" if page.exists() else f"\nresults: {args.out / 'results.json'}")
    return 0


def _write_record(args: argparse.Namespace, model: "Model", document: dict[str, Any]) -> None:
    from tenet.records.measured import evaluation_figures
    from tenet.records.record import Record, write_record
    from tenet.settings import to_table

    write_record(
        args.results,
        Record(
            kind="evaluation",
            command=args.command_line,
            model={"name": model.name, "weights": document["weights"]},
            config={
                "model": to_table(model.detector.config),
                "recipe": None if model.recipe is None else model.recipe.to_dict(),
                "settings": document["settings"],
            },
            figures=evaluation_figures(document),
            seconds=document["seconds"],
            notes={"data": document["data"], "objectness": document["objectness"]},
        ),
    )


def _protocol(args: argparse.Namespace) -> str:
    """The protocol, without arguments that it has no use for."""
    from tenet.errors import InputError

    protocol = str(args.protocol)
    if args.finetune and protocol == "meta-test":
        return "fine-tuned"
    if protocol == "episodes":
        useless = {
            "--finetune": args.finetune,
            "--shots-from": args.shots_from,
            "--list": args.list,
            "--coco-files": args.coco_files,
        }
        given = [name for name, value in useless.items() if value]
        if given:
            raise InputError(f"--protocol episodes: expected no {', '.join(given)}; all is drawn from --data")
    return protocol


def _run_draws(
    args: argparse.Namespace, model: "Model", test: "Dataset", settings: "EvaluationSettings"
) -> "Evaluation":
    """Every class against every picture."""
    from tenet.data.dataset import merge
    from tenet.data.formats import read_dataset
    from tenet.data.splits import spelled_as
    from tenet.engine.evaluate import evaluate
    from tenet.engine.evaluation_report import write_report

    sets = [read_dataset(path) for path in args.shots_from or ()]
    shots_from = (sets[0] if len(sets) == 1 else merge(sets)) if sets else test
    shots_from = spelled_as(test, shots_from)
    done = evaluate(
        model.detector,
        test,
        shots_from,
        settings,
        out=args.out,
        adapt=_adapt(model, shots_from) if settings.protocol == "fine-tuned" else None,
        public_list=args.list,
        model=model.name,
        workers=args.workers,
        coco_files=args.coco_files,
        progress=progress,
    )
    if args.out is not None:
        write_report(done, args.out / "report.html")
    return done


def _run_episodes(
    args: argparse.Namespace, model: "Model", test: "Dataset", settings: "EvaluationSettings"
) -> "EpisodeEvaluation":
    """A few classes in a few pictures at a time."""
    from tenet.engine.evaluate_episodes import evaluate_episodes

    return evaluate_episodes(
        model.detector,
        test,
        settings,
        out=args.out,
        model=model.name,
        workers=args.workers,
        progress=progress,
    )


def numbers(text: str) -> tuple[int, ...]:
    """`0-4` or `1,3,5` as whole numbers."""
    found: list[int] = []
    for word in names(text):
        first, dash, last = word.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or (dash and int(first) > int(last)):
            raise argparse.ArgumentTypeError(f"expected whole numbers such as 1,3,5 or 0-4; got {text!r}")
        found += range(int(first), int(last or first) + 1)
    if not found:
        raise argparse.ArgumentTypeError(f"expected whole numbers such as 1,3,5 or 0-4; got {text!r}")
    return tuple(found)


def _settings(
    args: argparse.Namespace, protocol: str, test: "Dataset", model: "Model"
) -> "EvaluationSettings":
    from tenet.data.splits import VOC_TO_COCO, get_split, one_name
    from tenet.engine.evaluation_settings import EvaluationSettings
    from tenet.engine.finetune import describe
    from tenet.errors import InputError

    # Of a set without a split, what the detector was trained on is no novel class.
    known = one_name([*model.trained_on, *args.trained_on])
    base: Sequence[str] = [name for name in test.classes if VOC_TO_COCO.get(name, name) in known]
    novel: Sequence[str] = [name for name in test.classes if name not in base]
    if args.split != "all":
        split = get_split(args.split)
        sides = [
            [name for name in test.classes if VOC_TO_COCO.get(name, name) in one_name(members)]
            for members in (split.base, split.novel)
        ]
        base = sides[0] if args.side in ("base", "both") else ()
        novel = sides[1] if args.side in ("novel", "both") else ()
    elif args.side != "novel":
        raise InputError(f"--side {args.side}: expected --split voc1, voc2, voc3 or coco with it")
    if args.classes:
        unknown = [name for name in args.classes if name not in (*base, *novel)]
        if unknown:
            offered = ", ".join((*base, *novel))
            raise InputError(f"--classes: expected some of {offered}; got {', '.join(unknown)}")
        base, novel = ([name for name in side if name in args.classes] for side in (base, novel))
    if not base and not novel:
        raise InputError(f"{test.name}: expected classes of split {args.split}, {args.side} side; found none")
    return EvaluationSettings(
        novel=tuple(novel),
        base=tuple(base),
        trained_on=tuple(dict.fromkeys([*model.trained_on, *args.trained_on])),
        protocol=protocol,
        adaptation=describe(model.recipe.finetune) if protocol == "fine-tuned" and model.recipe else "",
        shots=args.shots or ((5,) if protocol == "episodes" else (1, 3, 5, 10)),
        seeds=args.seeds or ((0,) if protocol == "episodes" else (0, 1, 2, 3, 4)),
        ways=args.ways,
        episodes=args.episodes,
        queries=args.queries,
        metrics=tuple(args.metric),
        min_shot_side=args.min_side,
        base_shots=args.base_shots,
        limit=args.limit or 0,
        threshold=args.threshold,
        objectness=not args.no_objectness,
        track=args.tracks,
    )


def _tell_fine_tuned(model: "Model", settings: "EvaluationSettings") -> None:
    """A run that was fine-tuned knows pictures of these classes: which, its shots.json says."""
    from tenet.data.splits import VOC_TO_COCO, one_name

    taught = one_name(model.fine_tuned_on)
    known = [name for name in settings.classes if VOC_TO_COCO.get(name, name) in taught]
    if known:
        print(
            f"note: {model.name} was fine-tuned on {', '.join(known)}; the pictures that it learned from, "
            "in the run's shots.json, must not be among those of --data",
            file=sys.stderr,
        )


class Model(NamedTuple):
    """What is evaluated: the detector, its name, the classes that it was trained on, its recipe if it has
    one, and the classes that it was fine-tuned on."""

    detector: Any
    name: str
    trained_on: list[str]
    recipe: Any
    fine_tuned_on: Sequence[str] = ()


def _model(model: str) -> Model:
    """A shipped model, a checkpoint, or a configuration without training."""
    import torch

    from tenet.engine.checkpoint import load, restore_detector
    from tenet.errors import InputError
    from tenet.models.build import build_detector
    from tenet.presets import PRESETS, preset
    from tenet.runtime.loading import model_file
    from tenet.runtime.shipped import shipped_models

    shipped = model in shipped_models()
    if model in PRESETS and not shipped:
        torch.manual_seed(0)  # untrained parts are random: the same for every call, so that runs continue
        return Model(build_detector(preset(model)), f"{model} (untrained)", [], None)
    if not shipped and not Path(model).exists():
        raise InputError(
            f"{model}: expected a shipped model ({', '.join(shipped_models())}), a checkpoint, or a "
            f"configuration among {', '.join(PRESETS)}; found none of them"
        )
    checkpoint = load(model_file(model))
    name = model if shipped else f"{checkpoint.recipe.name}, step {checkpoint.step}"
    split = checkpoint.split
    return Model(
        restore_detector(checkpoint).eval(),
        name,
        split.get("base", []),
        checkpoint.recipe,
        split.get("learned", []),
    )


def _adapt(model: Model, shots_from: "Dataset") -> "Adapt":
    """How a detector learns a draw: the recipe's own fine-tuning."""
    from tenet.engine.finetune import finetune
    from tenet.errors import InputError

    if model.recipe is None:
        raise InputError(f"--finetune: expected a checkpoint of `tenet train`, got {model.name}")
    return lambda detector, shots: finetune(detector, model.recipe, shots_from, shots, progress=progress)
