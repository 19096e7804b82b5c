"""Episodes per second with 0, 1 and 2 workers, and the share of time that training would wait for them.

A training step is simulated by a pause of --step-ms for each batch of --batch episodes, during which the
workers go on; the wait is the time from the end of a step until the next batch is there. A real step
keeps the cores busy as well, so --busy computes for that long instead of pausing.

examples:
  tenet bench data
  tenet bench data --data voc2007_trainval.json --query-size 320 --support-size 160
  tenet bench data --step-ms 200 --batch 1 --workers 0,2
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tenet.commands.console import at_least_one, emit_json, whole_numbers

if TYPE_CHECKING:
    from tenet.data.episodes import EpisodeSource


@dataclass(frozen=True)
class Rates:
    """What was measured for one number of workers."""

    workers: int
    start_seconds: float
    episodes_per_second: float
    wait_share: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, metavar="PATH", help="a set; a synthetic one by default")
    whole = at_least_one
    parser.add_argument("--episodes", type=whole, default=60, help="episodes to measure (default 60)")
    parser.add_argument("--step-ms", type=whole, default=550, help="a training step (default 550 ms)")
    parser.add_argument("--batch", type=whole, default=4, help="episodes of a step (default 4)")
    parser.add_argument("--shots", type=whole, default=5, help="shots of each of the 2 ways (default 5)")
    parser.add_argument("--query-size", type=whole, default=600, help="query's shorter side (default 600)")
    parser.add_argument("--support-size", type=whole, default=320, help="side of a crop (default 320)")
    parser.add_argument("--workers", type=whole_numbers, default=[0, 1, 2], help="default 0,1,2")
    parser.add_argument("--busy", action="store_true", help="compute during a step instead of pausing")
    parser.add_argument("--json", metavar="FILE", help="the figures as JSON; - is stdout")


def measure(
    source: "EpisodeSource",
    workers: int,
    episodes: int,
    batch: int,
    step_seconds: float,
    busy: bool = False,
) -> Rates:
    """Rates of one number of workers. The first batch, which includes the start of the processes, is
    timed on its own."""
    from tenet.data.loader import load

    rounds = max(episodes // batch, 1)
    begun = time.perf_counter()
    stream = load(source, range((rounds + 1) * batch), workers)
    list(islice(stream, batch))
    ready = time.perf_counter()
    list(stream)
    rate = rounds * batch / (time.perf_counter() - ready)
    wait = _waiting(load(source, range((rounds + 1) * batch), workers), batch, step_seconds, busy)
    return Rates(workers, ready - begun, rate, wait)


def _waiting(stream: Iterator[object], batch: int, step_seconds: float, busy: bool) -> float:
    """Share of the time, after the first batch, that steps wait for episodes."""
    list(islice(stream, batch))
    waited, steps = 0.0, 0
    while True:
        _step(step_seconds, busy)
        asked = time.perf_counter()
        if len(list(islice(stream, batch))) < batch:
            break
        waited += time.perf_counter() - asked
        steps += 1
    total = waited + steps * step_seconds
    return waited / total if total else 0.0


def _step(seconds: float, busy: bool) -> None:
    if not busy:
        time.sleep(seconds)
        return
    import numpy as np

    end = time.perf_counter() + seconds
    matrix = np.ones((256, 256), np.float32)
    while time.perf_counter() < end:
        matrix @ matrix


def run(args: argparse.Namespace) -> int:
    from tenet.data.episode_settings import EpisodeSettings
    from tenet.data.episodes import EpisodeSource
    from tenet.data.formats import read_dataset
    from tenet.data.synthetic import write_synthetic

    settings = EpisodeSettings(
        shots=args.shots,
        query_sizes=(args.query_size,),
        query_longer=round(args.query_size * 5 / 3),
        support_size=args.support_size,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = args.data or write_synthetic(Path(folder), images=80, size=(500, 375))
        source = EpisodeSource(read_dataset(path), settings)
        rows = []
        for workers in args.workers:
            rates = measure(source, workers, args.episodes, args.batch, args.step_ms / 1000, args.busy)
            rows.append(rates)
            if args.json != "-":
                print(
                    f"{workers} workers: {rates.episodes_per_second:6.1f} episodes/s, first batch after "
                    f"{rates.start_seconds:.2f} s; a step of {args.step_ms:g} ms for {args.batch} episodes "
                    f"waits {100 * rates.wait_share:.1f} % of the time",
                    flush=True,
                )
    if args.json:
        emit_json([vars(rates) for rates in rows], args.json)
    return 0
