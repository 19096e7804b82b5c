"""Measure variants of a detector on equal ground: an ablation table, a curve, or the ancestors.

Every variant is a small change to the model of --recipe, and gets the same data, steps, seeds and episodes;
then it is tested on the recipe's novel classes. OUT/NAME has a JSON file for each variant and seed, table.md
and figure.png. A run that has its file is not made again, so an ablation that was stopped goes on with the
same command. Started twice, two processes share the runs. Without a NAME, the names are listed.

examples:
  tenet ablate
  tenet ablate ancestors --iterations 500 --seeds 0,1 --shots 1,5 --limit 500
  tenet ablate fig3a_eta --iterations 300 --dry-run
  tenet ablate table4a_heads --variants TA=1 TA=4 TA=8 --iterations 300
  tenet ablate table3a --set model.preset=lite0_paper --iterations 500 --out results/paper_parts
  tenet ablate ancestors --report
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.commands.console import at_least_one, progress, whole_numbers
from tenet.commands.train import add_cache_argument

if TYPE_CHECKING:
    from tenet.ablations.plan import Run
    from tenet.records.record import Record


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="an ablation; without it, all are listed")
    parser.add_argument(
        "--recipe",
        type=Path,
        default=Path("recipes/track_v1.toml"),
        metavar="FILE",
        help="the ground and the base (default recipes/track_v1.toml)",
    )
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="A.B=VALUE", help="change a setting"
    )
    parser.add_argument(
        "--data-root", type=Path, metavar="FOLDER", help="where its paths start (TENET_DATA, or ./data)"
    )
    parser.add_argument("--iterations", type=at_least_one, help="steps of each training (default: recipe's)")
    parser.add_argument(
        "--seeds", type=whole_numbers, default=[0], help="trainings of each variant (default 0)"
    )
    parser.add_argument("--shots", type=whole_numbers, help="numbers of shots to test (default: recipe's)")
    parser.add_argument("--limit", type=at_least_one, metavar="N", help="only N test pictures, by fixed seed")
    parser.add_argument(
        "--draws", type=at_least_one, default=1, help="draws of shots for each training (default 1)"
    )
    parser.add_argument("--variants", nargs="+", default=[], metavar="ROW", help="only these rows")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="default results")
    parser.add_argument(
        "--work",
        type=Path,
        default=Path("runs/ablations"),
        metavar="DIR",
        help="for runs that are not finished (default runs/ablations)",
    )
    add_cache_argument(parser)
    parser.add_argument(
        "--keep-runs", action="store_true", help="keep checkpoints of finished runs in --work"
    )
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="processes that make pictures")
    parser.add_argument("--dry-run", action="store_true", help="list the runs and estimate the time")
    parser.add_argument(
        "--report", action="store_true", help="only draw table and figure from the JSON files"
    )


def run(args: argparse.Namespace) -> int:
    from tenet.ablations.plan import ALIASES, Budget, ablation_name, plan_runs
    from tenet.presets import ABLATION_TABLES
    from tenet.recipe import load_recipe

    if args.name is None:
        print(*(f"{name:<22}{about}" for name, about in ABLATION_TABLES.items()), sep="\n")
        print(*(f"{alias:<22}the same as {name}" for alias, name in ALIASES.items()), sep="\n")
        return 0
    name = ablation_name(args.name)
    if args.report:
        return _report(args.out, name)
    ground = load_recipe(args.recipe, args.overrides)
    budget = Budget(
        args.iterations or 0, tuple(args.seeds), tuple(args.shots or ()), args.limit or 0, args.draws
    )
    runs = plan_runs(name, ground, budget, args.variants)
    return _dry_run(args, runs) if args.dry_run else _run(args, runs)


def _report(out: Path, name: str) -> int:
    from tenet.ablations.report import write_report

    paths = write_report(out, name)
    print(paths[0].read_text(encoding="utf-8"))
    print(*paths, sep="\n")
    return 0


def _run(args: argparse.Namespace, runs: "list[Run]") -> int:
    from tenet.ablations.measure import Ground, Places
    from tenet.ablations.runner import run_all
    from tenet.recipe import data_root

    def told(number: int, done: "Run", record: "Record | None") -> None:
        outcome = "another process has it" if record is None else _outcome(record)
        print(f"[{number}/{len(runs)}] {done.variant}, seed {done.seed}: {outcome}", flush=True)

    places = Places(data_root(args.data_root), args.work, args.cache_dir, args.workers, args.keep_runs)
    ground = Ground.read(runs[0].recipe, places.root)
    left = run_all(runs, ground, places, args.out, args.command_line, told, progress)
    if left:
        print(f"{left} of {len(runs)} runs are left to another process, which draws the report")
        return 0
    return _report(args.out, runs[0].ablation)


def _outcome(record: "Record") -> str:
    """The main metric at each number of shots, and the time."""
    from tenet.records.tables import mean_of, shots_head

    metric = record.config["recipe"]["evaluate"]["metric"]
    found: dict[tuple[str, int], list[float | None]] = {}
    for figure in record.figures:
        for group, values in figure.groups.items():
            if figure.metric == metric:
                found.setdefault((group, figure.shots), []).append(values.get("AP"))
    cells = [f"{group} {shots_head(shots)} {mean_of(own)}" for (group, shots), own in found.items()]
    return f"{', '.join(cells)} ({record.seconds:.0f} s)"


def _dry_run(args: argparse.Namespace, runs: "list[Run]") -> int:
    """The list, then an estimate from a few steps and pictures; nothing is written that stays."""
    from tenet.ablations.plan import finished

    waiting = []
    for each in runs:
        done = finished(each, args.out) is not None
        waiting += [] if done else [each]
        print(f"{each.variant}, seed {each.seed}: {'done' if done else 'to do'}")
    train, evaluate = runs[0].recipe.train, runs[0].recipe.evaluate
    print(
        f"{len(runs)} runs, {len(waiting)} to do: {train.iterations} steps of {train.batch} episodes each, "
        f"shots {', '.join(map(str, evaluate.shots))}, {len(evaluate.seeds)} draws",
        flush=True,
    )
    if not waiting:
        return 0

    from tenet.ablations.measure import Ground, Places, time_run
    from tenet.engine.dry_run import spoken
    from tenet.recipe import data_root

    places = Places(data_root(args.data_root), args.work, args.cache_dir, args.workers)
    ground = Ground.read(runs[0].recipe, places.root)
    cost = time_run(waiting[0], ground, places)
    seconds = sum(cost.seconds(each, ground) for each in waiting)
    print(
        f"a step {cost.step:.2f} s, a picture {cost.picture:.2f} s ({waiting[0].variant}): about "
        f"{spoken(seconds)} in all, without filling the cache"
    )
    return 0
