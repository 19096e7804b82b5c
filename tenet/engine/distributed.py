"""Several processes under `torchrun`: who am I, and gradients summed over all.

A step is a mean over micro-batches, whoever computes them: process r of W takes those whose number is
r modulo W. Gradients are summed in one all-reduce of one flat tensor; parameters that got no gradient
on one process count as zero there, so no process waits for another's.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tenet.errors import ConfigError
from tenet.recipe import OptimConfig


@dataclass(frozen=True)
class World:
    """This process among all: `rank` of `size`, and the device that it computes on."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009 (a device is immutable)
    restarts: int = 0
    """How often torchrun has restarted the processes; from 1 on a run resumes by itself."""

    @property
    def first(self) -> bool:
        return self.rank == 0


@contextmanager
def world() -> Iterator[World]:
    """The world that torchrun's variables describe, or one process without them.

    `TENET_DIST_TIMEOUT` is how many seconds a process waits for the others before it gives up, and
    torchrun restarts it.
    """
    size, local = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("LOCAL_RANK", "0"))
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if size == 1:
        yield World(device=device, restarts=_restarts())
        return
    if cuda:
        torch.cuda.set_device(device)
    patience = timedelta(seconds=float(os.environ.get("TENET_DIST_TIMEOUT", "1800")))
    dist.init_process_group("nccl" if cuda else "gloo", timeout=patience)
    try:
        yield World(dist.get_rank(), size, device, _restarts())
        dist.barrier()  # they end together: nobody takes down connections that another still uses
    finally:
        dist.destroy_process_group()


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def own_groups(plan: OptimConfig, here: World) -> list[int]:
    """Numbers of the micro-batches of a step that this process computes."""
    count = plan.batch // plan.micro_batch
    if count % here.size:
        raise ConfigError(
            f"train.batch: expected a multiple of processes × micro_batch = {here.size} × "
            f"{plan.micro_batch}, got {plan.batch}; change train.batch, train.micro_batch or --nproc-per-node"
        )
    return list(range(here.rank, count, here.size))


def sum_gradients(parameters: Sequence[nn.Parameter], here: World) -> None:
    """Gradients summed over all processes, in place."""
    if here.size == 1:
        return
    flat = torch.cat([_gradient(parameter).flatten() for parameter in parameters])
    dist.all_reduce(flat)
    parts = flat.split([parameter.numel() for parameter in parameters])
    for parameter, part in zip(parameters, parts, strict=True):
        parameter.grad = part.view_as(parameter)


def sum_values(values: Tensor, here: World) -> Tensor:
    """A tensor of numbers summed over all processes."""
    if here.size > 1:
        dist.all_reduce(values)
    return values


def barrier(here: World) -> None:
    """Wait until every process is here."""
    if here.size > 1:
        dist.barrier()


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
