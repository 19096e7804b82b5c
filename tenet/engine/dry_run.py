"""What a run would cost, from two timed steps: parameters, memory, time."""

import sys
import time
from dataclasses import dataclass

from tenet.engine.loop import Job, steps


@dataclass(frozen=True)
class Estimate:
    """parameters and those that learn; peak memory of this process in bytes; seconds of a step and of the
    whole run; the losses of the last step."""

    parameters: int
    learning: int
    memory: int
    step_seconds: float
    total_seconds: float
    losses: dict[str, float]

    def lines(self) -> list[str]:
        losses = ", ".join(f"{name} {value:.3f}" for name, value in self.losses.items())
        return [
            f"parameters   {self.parameters:,}, of which {self.learning:,} learn",
            f"memory       {self.memory / 2**20:,.0f} MB at most in this process",
            f"a step       {self.step_seconds:.2f} s (mean of two, after one to warm up)",
            f"the run      about {spoken(self.total_seconds)}",
            f"losses       {losses}",
        ]


STEPS = 3
"""Steps that an estimate takes: one to warm up, two that are timed."""


def estimate(job: Job, iterations: int) -> Estimate:
    """The first steps of a job, and what `iterations` of them would cost; its parameters have moved a little
    afterwards."""
    stream = steps(job)
    next(stream)
    begun = time.perf_counter()
    timed = [step for _, step in zip(range(STEPS - 1), stream, strict=False)]
    seconds = (time.perf_counter() - begun) / max(1, len(timed))
    stream.close()
    parameters = list(job.detector.parameters())
    return Estimate(
        parameters=sum(p.numel() for p in parameters),
        learning=sum(p.numel() for p in parameters if p.requires_grad),
        memory=_peak_memory(),
        step_seconds=seconds,
        total_seconds=seconds * iterations,
        losses=timed[-1].parts if timed else {},
    )


def _peak_memory() -> int:
    """The most memory that this process has had, in bytes; 0 where the system does not tell."""
    if sys.platform == "win32":
        return 0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def spoken(seconds: float) -> str:
    """A time in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
