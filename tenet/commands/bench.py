"""Measure speed and memory, as ratios within one run; figures are kept in docs/benchmarks.md.

examples:
  tenet bench tso          the Tensor Shrinkage Operator, dense against fast
  tenet bench ops          RoIAlign and NMS
  tenet bench data         episodes per second, and how long training would wait for them
"""

import argparse
from importlib import import_module

# name: (module with add_arguments and run, one line of help)
BENCHMARKS: dict[str, tuple[str, str]] = {
    "tso": ("tenet.bench.tso", "Tensor Shrinkage Operator: dense against fast, and at the paper's size"),
    "ops": ("tenet.bench.ops", "RoIAlign and NMS against plain versions"),
    "data": ("tenet.bench.data", "episodes per second, and how long training would wait for them"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = parser.add_subparsers(dest="benchmark", metavar="NAME", required=True)
    for name, (module, summary) in BENCHMARKS.items():
        benchmark = import_module(module)
        verb = names.add_parser(
            name,
            help=summary,
            description=benchmark.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        benchmark.add_arguments(verb)
        verb.set_defaults(measure=benchmark.run)


def run(args: argparse.Namespace) -> int:
    return int(args.measure(args))
