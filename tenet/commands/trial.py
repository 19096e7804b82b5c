"""Try a model as a user would: shots from annotated sets, then boxes in their other pictures.

Goes through bank and predictor, with working sizes from the shots. Prints AP50 of each set, what scores are
worth and how many false alarms there are; --calibrate writes the curve into a model's JSON file.

examples:
  tenet trial --data my.json --shots 1,5
  tenet trial runs/mine --data a.json,b.json --shots 5 --seeds 0,1,2 --out trial
  tenet trial runs/mine/checkpoints/step_00003000.json --data a.json,b.json --calibrate
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenet.commands.console import emit_json, names, progress, whole_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenet.trials.trial import Trial


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", help="a shipped model, a run or a checkpoint (default: shipped)")
    parser.add_argument("--data", type=names, required=True, metavar="SET,…", help="annotated sets")
    parser.add_argument("--shots", type=whole_numbers, default=[5], help="numbers of shots (default: 5)")
    parser.add_argument("--seeds", type=whole_numbers, default=[0], help="draws of the shots (default: 0)")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="only N test pictures of each set")
    parser.add_argument("--min-side", type=float, default=24, help="least side of a shot, px (default: 24)")
    parser.add_argument("--bare", action="store_true", help="show crops without their pictures")
    parser.add_argument("--size", default="auto", help="working size: auto, original or px (default: auto)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write trial.json and reliability.png there")
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON; - is stdout")
    parser.add_argument("--calibrate", action="store_true", help="write the curve into the model's JSON file")


def run(args: argparse.Namespace) -> int:
    from tenet.data.formats import read_dataset
    from tenet.drawing.figures import save_figure
    from tenet.predictor import Tenet
    from tenet.runtime.torch_runtime import load_runtime, write_calibration
    from tenet.trials.calibrating import draw_reliability, false_alarms, fit_calibration, reliability
    from tenet.trials.trial import try_set

    runtime = load_runtime(args.model)
    if args.calibrate:
        runtime = runtime.uncalibrated()
    model = Tenet(runtime)
    size: Any = int(args.size) if args.size.isdecimal() else args.size
    trials: list[Trial] = []
    for path in args.data:
        dataset = read_dataset(Path(path))
        for shots in args.shots:
            for seed in args.seeds:
                settings = {"min_side": args.min_side, "limit": args.limit, "bare": args.bare, "size": size}
                trials.append(try_set(model, dataset, shots, seed, **settings, progress=progress))
    document = _document(model.name, trials)
    threshold = runtime.threshold
    if args.calibrate:
        calibration = fit_calibration(trials)
        document["calibration"], threshold = calibration.to_json(), calibration.threshold
        write_calibration(args.model, calibration)
        trials = [_told(trial, calibration) for trial in trials]
    rows = reliability(trials)
    document["threshold"] = threshold
    document["reliability"] = [dict(zip(("score", "right", "boxes"), row, strict=True)) for row in rows]
    document["false_alarms_per_look"] = false_alarms(trials, threshold)
    if args.out is not None:
        emit_json(document, str(args.out / "trial.json"))
        save_figure(
            draw_reliability(rows, f"{model.name}: what a score is worth"), args.out / "reliability.png"
        )
    if args.json:
        emit_json(document, args.json)
    if args.json != "-":
        print(_table(document))
    return 0


def _told(trial: "Trial", calibration: Any) -> "Trial":
    from dataclasses import replace

    import numpy as np

    told = calibration(trial.confidence.astype(np.float32)).astype(np.float64)
    return replace(trial, confidence=told)


def _document(model: str, trials: "Sequence[Trial]") -> dict[str, Any]:
    return {
        "model": model,
        "trials": [
            {
                "set": trial.set_name,
                "shots": trial.shots,
                "seed": trial.seed,
                "AP50": trial.ap50,
                "classes": {score.name: score.values["AP"] for score in trial.scores.classes},
                "objects": trial.objects,
            }
            for trial in trials
        ],
    }


def _table(document: dict[str, Any]) -> str:
    from tenet.scoring.report import spread

    groups: dict[tuple[int, str], list[float]] = {}
    for trial in document["trials"]:
        groups.setdefault((trial["shots"], trial["set"]), []).append(trial["AP50"])
    lines = ["shots  set              AP50"]
    for shots in sorted({shots for shots, _ in groups}):
        own = {name: values for (count, name), values in groups.items() if count == shots}
        lines += [f"{shots:<6} {name:<16} {spread(values)}" for name, values in own.items()]
        means = [sum(values) / len(values) for values in own.values()]
        if len(means) > 1:
            lines.append(f"{shots:<6} {'mean':<16} {100 * sum(means) / len(means):.1f}")
    share = document["false_alarms_per_look"]
    lines.append(
        f"at the threshold {document['threshold']:.2f}: {share:.2f} false alarms for each class that"
    )
    lines.append("a picture does not show")
    lines.append(
        "score → share of right boxes: "
        + ", ".join(f"{r['score']:.2f} → {r['right']:.2f}" for r in document["reliability"])
    )
    return "\n".join(lines)
