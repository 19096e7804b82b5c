"""Try a model as a user would: shots from annotated sets, then boxes in their other pictures.

Goes through bank and predictor, with working sizes from the shots. Prints AP50 of each set, what scores are
worth and how many false alarms there are. --calibrate shows them for each set by a curve of the other sets
(of a single set, by halves of its pictures); then it fits one on all and writes it into the model's JSON.
A model that comes with the package is judged likewise, but its file stays as it is.

With --finetune the model learns each draw first, a few minutes each: from the shots alone, or from all boxes
of the shots' pictures, as `tenet finetune` does. The model's own file stays as it is.

examples:
  tenet trial --data my.json --shots 1,5
  tenet trial --data my.json --shots 5 --finetune pictures
  tenet trial --data my.json --shots 5 --wide 3
  tenet trial runs/mine --data my_yolo:valid --shots 5
  tenet trial runs/mine --data a.json,b.json --shots 5 --seeds 0,1,2 --out trial
  tenet trial runs/mine --data a.json,b.json --calibrate
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenet.commands.console import (
    add_results_argument,
    at_least_one,
    check_folder,
    check_json,
    check_out,
    emit_json,
    names,
    progress,
    whole_numbers,
    working_size,
)

MOST_WIDE = 8
FEW_OBJECTS = 20
"""Below so many objects an AP50 is luck."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenet.data.dataset import Dataset
    from tenet.data.shots import ShotList
    from tenet.predictor import Tenet
    from tenet.trials.trial import Trial


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", help="a shipped model, a run or a checkpoint (default: shipped)")
    parser.add_argument(
        "--data", type=names, required=True, metavar="SET,…", help="annotated sets, or FOLDER:PART of them"
    )
    parser.add_argument("--shots", type=whole_numbers, default=[5], help="numbers of shots (default: 5)")
    parser.add_argument("--seeds", type=whole_numbers, default=[0], help="draws of the shots (default: 0)")
    parser.add_argument(
        "--limit", type=at_least_one, default=0, metavar="N", help="only N test pictures of each set"
    )
    parser.add_argument("--min-side", type=float, default=24, help="least side of a shot, px (default: 24)")
    parser.add_argument("--bare", action="store_true", help="show crops without their pictures")
    parser.add_argument(
        "--finetune",
        choices=("shots", "pictures"),
        help="learn each draw first: its shots alone, or all boxes of their pictures",
    )
    parser.add_argument(
        "--size",
        type=working_size,
        default="auto",
        help="working size: auto, thorough, once, original or px (default: auto)",
    )
    parser.add_argument(
        "--wide",
        type=int,
        default=1,
        metavar="N",
        help="put N x N test pictures together: a wide view, in which things are smaller than the shots",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write trial.json and reliability.png there")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON; - is stdout")
    add_results_argument(parser)
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="judge each set by a curve of the others; write a curve of all into the model's file",
    )


def run(args: argparse.Namespace) -> int:
    import time

    from tenet.drawing.figures import save_figure
    from tenet.errors import InputError
    from tenet.looks.views import check_size
    from tenet.records.record import made_by
    from tenet.runtime.loading import is_shipped, load_one, load_runtime
    from tenet.trials.calibrating import draw_reliability

    made_by()  # the commit that runs, not that of hours later
    if args.results is not None:
        check_out(args.results, (".json",), "--results")
    if not 1 <= args.wide <= MOST_WIDE:
        raise InputError(f"--wide: expected a whole number from 1 to {MOST_WIDE}, got {args.wide}")
    check_size(args.size)
    if min(args.shots) < 1:
        raise InputError(f"--shots: expected whole numbers of at least 1, got {min(args.shots)}")
    if args.finetune and args.calibrate:
        raise InputError(
            "--calibrate writes into the model's file, which --finetune leaves as it is; give one"
        )
    if args.out is not None:
        check_folder(args.out)
    check_json(args.json)
    if args.calibrate and is_shipped(args.model):
        print(
            "note: this model comes with the package: its file stays as it is, the curve is in what --out "
            "and --results write; give the file to change it",
            file=sys.stderr,
        )
    begun = time.monotonic()
    runtime: Any = load_one(args.model) if args.finetune else load_runtime(args.model)
    if args.calibrate:
        runtime = runtime.uncalibrated()
    trials, sizes = _try(args, runtime)
    document = _document(runtime.name, trials, sizes, args.limit)
    document["way"] = _way(args)
    if args.json != "-":
        print(_figures(document), flush=True)  # whatever becomes of the rest
    document |= _calibrate(args.model, trials) if args.calibrate else _worth(trials, runtime.threshold)
    if args.results is not None:
        _write_record(args, runtime, document, time.monotonic() - begun)
    if args.out is not None:
        emit_json(document, str(args.out / "trial.json"))
        rows = [(row["score"], row["right"], row["boxes"]) for row in document["reliability"]]
        title = f"{runtime.name}: what a score is worth"
        if args.calibrate:
            title += f", each {document['judged']['by']} by a curve of the others"
        save_figure(draw_reliability(rows, title), args.out / "reliability.png")
    if args.json:
        emit_json(document, args.json)
    if args.json != "-":
        print(_value_of_scores(document))
    return 0


def _try(args: argparse.Namespace, runtime: Any) -> "tuple[list[Trial], dict[str, int]]":
    """Every set, number of shots and seed; and how many pictures each set has."""
    from tenet.predictor import Tenet
    from tenet.trials.trial import try_set

    model, adapt = Tenet(runtime), partial(_finetuned, args, runtime) if args.finetune else None
    settings = {
        "min_side": args.min_side,
        "limit": args.limit,
        "bare": args.bare,
        "size": args.size,
        "wide": args.wide,
    }
    trials, sizes = [], {}
    for dataset in _read_sets(args.data):
        sizes[dataset.name] = len(dataset)
        for shots in args.shots:
            for seed in args.seeds:
                trials.append(
                    try_set(model, dataset, shots, seed, **settings, adapt=adapt, progress=progress)
                )
    return trials, sizes


def _read_sets(paths: "Sequence[str]") -> "list[Dataset]":
    """All sets, before any of them is tried. Those whose files have one name are called by their folders too:
    kitchen/annotations.json and forest/annotations.json."""
    from collections import Counter

    from tenet.data.formats import read_dataset
    from tenet.errors import InputError

    sets = [read_dataset(Path(path)) for path in paths]
    often = Counter(one.name for one in sets)
    named = [
        replace(one, name=f"{Path(path).resolve().parent.name}/{one.name}") if often[one.name] > 1 else one
        for path, one in zip(paths, sets, strict=True)
    ]
    [(name, count)] = Counter(one.name for one in named).most_common(1)
    if count > 1:
        raise InputError(f"--data: expected sets of different names, got {name} {count} times; rename them")
    return named


def _finetuned(args: argparse.Namespace, runtime: Any, dataset: "Dataset", shots: "ShotList") -> "Tenet":
    """The model after it learned the shots of a draw."""
    from tenet.engine.checkpoint import load, restore_detector
    from tenet.engine.finetune import finetune
    from tenet.predictor import Tenet
    from tenet.runtime.loading import model_file
    from tenet.runtime.shipped import LEARNS
    from tenet.runtime.torch_runtime import TorchRuntime

    found = load(model_file(args.model or LEARNS))
    detector = finetune(
        restore_detector(found),
        found.recipe,
        dataset,
        shots,
        complete=args.finetune == "pictures",
        progress=progress,
    )
    return Tenet(TorchRuntime(detector, runtime.name, runtime.calibration))


def _worth(trials: "Sequence[Trial]", threshold: float) -> dict[str, Any]:
    """What scores are worth, and false alarms at the threshold."""
    from tenet.trials.calibrating import at_levels, false_alarms, false_alarms_in_a_picture, reliability

    rows = reliability(trials)
    return {
        "threshold": threshold,
        "reliability": [dict(zip(("score", "right", "boxes"), row, strict=True)) for row in rows],
        "levels": [level._asdict() for level in at_levels(trials)],
        "false_alarms_per_look": false_alarms(trials, threshold),
        "false_alarms_per_picture": false_alarms_in_a_picture(trials, threshold),
    }


def _calibrate(model: str | None, trials: "Sequence[Trial]") -> dict[str, Any]:
    """Judge curves on what they did not see, then write the curve of all into the model."""
    from tenet.runtime.calibration import Calibration
    from tenet.runtime.loading import is_shipped, write_calibration
    from tenet.trials.calibrating import best_threshold, fit_calibration, judge_calibration

    held = judge_calibration(trials)
    shipped = replace(fit_calibration(trials), threshold=best_threshold(held.trials, Calibration()))
    if not is_shipped(model):
        write_calibration(model, shipped)
    return {
        "calibration": shipped.to_json(),
        "judged": {
            "by": held.by,
            "folds": [
                {"judged_on": fold.judged_on, "calibration": fold.calibration.to_json()}
                for fold in held.folds
            ],
        },
        **_worth(held.trials, shipped.threshold),
    }


def _write_record(args: argparse.Namespace, runtime: Any, document: dict[str, Any], seconds: float) -> None:
    from tenet.records.measured import trial_figures
    from tenet.records.record import Record, write_record

    settings = {
        "min_side": args.min_side,
        "limit": args.limit,
        "bare": args.bare,
        "size": args.size,
        "wide": args.wide,
        "finetune": args.finetune,
    }
    write_record(
        args.results,
        Record(
            kind="trial",
            command=args.command_line,
            model={"name": runtime.name, "weights": runtime.fingerprint},
            config={
                "model": runtime.described(),
                "settings": {**settings, "shots": args.shots, "seeds": args.seeds},
            },
            figures=trial_figures(document, _way(args)),
            seconds=round(seconds, 1),
            notes={key: value for key, value in document.items() if key not in ("model", "trials")},
        ),
    )


def _way(args: argparse.Namespace) -> str:
    """What a record calls this way of testing."""
    learned = {"shots": ", fine-tuned on the shots", "pictures": ", fine-tuned on the shots' pictures"}
    wide = f", {args.wide} x {args.wide} pictures in one" if args.wide > 1 else ""
    size = "" if args.size == "auto" else f", size {args.size}"
    return "trial" + (", bare crops" if args.bare else "") + wide + size + learned.get(args.finetune, "")


def _document(model: str, trials: "Sequence[Trial]", sizes: dict[str, int], limit: int) -> dict[str, Any]:
    return {
        "model": model,
        "trials": [
            {
                "set": trial.set_name,
                "shots": trial.shots,
                "seed": trial.seed,
                "AP50": _number(trial.ap50),
                "classes": {score.name: _number(score.values["AP"]) for score in trial.scores.classes},
                "objects": trial.objects,
                "pictures": min(limit or sizes[trial.set_name], sizes[trial.set_name]),
                "tested": len(trial.tested),
            }
            for trial in trials
        ],
    }


def _number(value: float) -> float | None:
    """JSON has no NaN: what is not defined is null."""
    return None if value != value else value


def _tested(trials: "Sequence[dict[str, Any]]") -> str:
    """What draws were tested on, the least of them: pictures, objects, and classes that had any."""
    pictures, objects = (min(trial[name] for trial in trials) for name in ("tested", "objects"))
    classes = min(sum(value is not None for value in trial["classes"].values()) for trial in trials)
    return f"{pictures:>10} {objects:>8}  {classes} of {len(trials[0]['classes'])}"


def _is_little(trial: dict[str, Any]) -> bool:
    return trial["objects"] < FEW_OBJECTS or None in trial["classes"].values()


def _figures(document: dict[str, Any]) -> str:
    """AP50 of each set and in the mean."""
    from tenet.records.tables import mean_of

    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for trial in document["trials"]:
        groups.setdefault((trial["shots"], trial["set"]), []).append(trial)
    lines = [
        f"{document['model']}, {document['way']}",
        "shots  set              AP50          pictures  objects  classes",
    ]
    for shots in sorted({shots for shots, _ in groups}):
        own = {name: trials for (count, name), trials in groups.items() if count == shots}
        found = {name: mean_of(trial["AP50"] for trial in trials) for name, trials in own.items()}
        lines += [f"{shots:<6} {name:<16} {found[name]!s:<12}{_tested(own[name])}" for name in own]
        if len(own) > 1:
            mean = sum(spread.mean for spread in found.values()) / len(found)
            lines.append(f"{shots:<6} {'mean':<16} {100 * mean:.1f}")
    if any(_is_little(trial) for trial in document["trials"]):
        lines.append(
            f"note: fewer than {FEW_OBJECTS} objects, or classes without one: such an AP50 tells little; "
            "test on more pictures, or give fewer --shots, whose pictures are left out of the test"
        )
    return "\n".join(lines)


def _value_of_scores(document: dict[str, Any]) -> str:
    """False boxes at the threshold, and what scores are worth."""
    lines = []
    if "judged" in document:
        lines.append(f"each {document['judged']['by']} by a curve of the others:")
    share, alarms = document["false_alarms_per_look"], document["false_alarms_per_picture"]
    lines.append(
        f"at the threshold {document['threshold']:.2f}: {share:.4f} false boxes for each class that a "
        f"picture does not show, {alarms:.4f} in a picture"
    )
    lines.append(
        "score → share of right boxes: "
        + ", ".join(f"{r['score']:.2f} → {r['right']:.2f}" for r in document["reliability"])
    )
    return "\n".join(lines)
