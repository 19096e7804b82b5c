"""Measure speed and memory, as ratios within one run; figures are kept in docs/benchmarks.md.

examples:
  tenet bench tso          the Tensor Shrinkage Operator, dense against fast
  tenet bench ops          RoIAlign and NMS
  tenet bench data         episodes per second, and how long training would wait for them
  tenet bench train        steps per second, with the feature cache and without
  tenet bench detect       detection against the bare encoder
  tenet bench models       the shipped models against each other
  tenet bench serve        the service under load: requests per second, latency, memory
"""

import argparse

from tenet.commands.verbs import add_verbs

# name: (module with add_arguments and run, one line of help)
BENCHMARKS: dict[str, tuple[str, str]] = {
    "tso": ("tenet.bench.tso", "Tensor Shrinkage Operator: dense against fast, and at the paper's size"),
    "ops": ("tenet.bench.ops", "RoIAlign and NMS against plain versions"),
    "data": ("tenet.bench.data", "episodes per second, and how long training would wait for them"),
    "train": ("tenet.bench.train", "training steps per second, with the feature cache and without"),
    "detect": ("tenet.bench.detect", "detection against the bare encoder; registering; memory"),
    "models": ("tenet.bench.models", "the shipped models against each other: a look, teaching a class"),
    "serve": ("tenet.bench.serve", "the service under load: requests per second, latency, memory"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser, BENCHMARKS, "benchmark")
