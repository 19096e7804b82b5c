"""The training loop, and what happens when a loss is not finite.

Everything random in step s is a function of (seed, s): episodes carry numbers, and torch's generator is
seeded anew for each micro-batch. So a run that stopped anywhere goes on as if it had not, and any
number of processes computes the same step.
"""

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tenet.data.episodes import Episode
from tenet.data.files import write_bytes, write_json
from tenet.data.loader import Source, load
from tenet.engine.distributed import World, own_groups, sum_gradients, sum_values
from tenet.engine.optim import build_optimizer, clip_gradients, set_rates
from tenet.errors import TrainingError
from tenet.models.detector import TENET, Losses
from tenet.recipe import FinetuneConfig, OptimConfig

LossesOf = Callable[[TENET, Sequence[Any]], Losses]
"""Detector and a micro-batch → the parts of the loss."""


@dataclass
class Job:
    """All that a loop needs.

    source     episode number → what `losses_of` takes
    losses_of  detector and a micro-batch of those → the parts of the loss
    render     episode number → the episode with its pixels, to look at
    failures   folder where episodes with a loss that is not finite are kept
    """

    detector: TENET
    plan: OptimConfig
    source: Source[Any]
    losses_of: LossesOf
    render: Callable[[int], Episode]
    failures: Path
    seed: int = 0
    workers: int = 0
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.detector.to(self.world.device)
        self.optimizer = build_optimizer(self.detector, self.plan)
        self.learning = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.groups = own_groups(self.plan, self.world)

    def numbers(self, step: int, group: int) -> range:
        """Numbers of the episodes of a micro-batch."""
        first = step * self.plan.batch + group * self.plan.micro_batch
        return range(first, first + self.plan.micro_batch)


@dataclass(frozen=True)
class Step:
    """What a step was: its number from 0, mean loss and parts, gradient norm and learning rate."""

    number: int
    loss: float
    parts: dict[str, float]
    gradient: float
    rate: float


def steps(job: Job, start: int = 0) -> Generator[Step, None, None]:
    """Train from step `start` to the plan's end, a `Step` after each; parameters change in place."""
    plan = job.plan
    job.detector.train()
    wanted = (n for s in range(start, plan.iterations) for g in job.groups for n in job.numbers(s, g))
    stream = load(job.source, wanted, job.workers)
    for step in range(start, plan.iterations):
        rate = set_rates(job.optimizer, plan, step)
        job.optimizer.zero_grad(set_to_none=True)
        parts = [_backward(job, step, group, list(islice(stream, plan.micro_batch))) for group in job.groups]
        sum_gradients(job.learning, job.world)
        norm = clip_gradients(job.learning, plan.clip)
        if not math.isfinite(norm):
            raise _not_finite(job, step, job.groups, parts)
        job.optimizer.step()
        yield _report(job, step, parts, norm, rate)


def _backward(job: Job, step: int, group: int, items: list[Any]) -> Losses:
    """Add the gradient of one micro-batch; its share of the step is micro_batch / batch."""
    torch.manual_seed(_seed(job.seed, step, group))
    reduced = job.plan.precision == "bfloat16"
    with torch.autocast(job.world.device.type, torch.bfloat16, enabled=reduced):
        losses = job.losses_of(job.detector, items)
    total = torch.stack([part.float() for part in losses.values()]).sum()
    if not torch.isfinite(total):
        raise _not_finite(job, step, [group], [losses])
    (total * (job.plan.micro_batch / job.plan.batch)).backward()
    return {name: part.detach() for name, part in losses.items()}


def _seed(seed: int, step: int, group: int) -> int:
    return int(np.random.SeedSequence([seed, step, group]).generate_state(1, np.uint64)[0] >> 1)


def _report(job: Job, step: int, parts: list[Losses], norm: float, rate: float) -> Step:
    """The step's numbers, as means over the micro-batches of all processes."""
    names = list(parts[0])
    values = torch.stack([torch.stack([part[name].float() for name in names]) for part in parts]).sum(0)
    means = sum_values(values, job.world) * (job.plan.micro_batch / job.plan.batch)
    told = dict(zip(names, means.tolist(), strict=True))
    return Step(step, sum(told.values()), told, norm, rate)


def _not_finite(job: Job, step: int, groups: list[int], losses: list[Losses]) -> TrainingError:
    """Keep the offending episodes, and say which parts are wrong."""
    said = []
    for group, parts in zip(groups, losses, strict=True):
        told = {name: float(part.detach()) for name, part in parts.items()}
        said.append(", ".join(f"{name} {value:.4g}" for name, value in told.items()))
        for number in job.numbers(step, group):
            save_episode(job.render(number), job.failures / f"step_{step:08d}_episode_{number}", told)
    section = "finetune" if isinstance(job.plan, FinetuneConfig) else "train"
    return TrainingError(
        f"step {step}: expected a finite loss and gradient, got {'; '.join(said)}; the episodes are in "
        f"{job.failures}; lower {section}.lr or {section}.clip, or look at the data"
    )


def save_episode(episode: Episode, path: Path, parts: dict[str, float]) -> None:
    """`path`.safetensors with the episode's arrays, `path`.json with its names and the loss's parts."""
    from safetensors.numpy import save

    fields = asdict(episode)
    arrays = {name: value for name, value in fields.items() if isinstance(value, np.ndarray)}
    write_bytes(path.with_suffix(".safetensors"), save(arrays))
    names = {name: value for name, value in fields.items() if name not in arrays}
    # JSON has no NaN: the parts are kept as text.
    told = {name: repr(value) for name, value in parts.items()}
    write_json(path.with_suffix(".json"), {**names, "losses": told}, indent=1)
