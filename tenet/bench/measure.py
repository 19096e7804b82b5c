"""How benchmarks measure: interleaved rounds in one process, medians, ratios; peak memory where it shows.

On a shared machine seconds drift; two things measured in turn drift together, so their ratio holds.
"""

import ctypes
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

Work = Callable[[], object]
SHORTEST = 0.02
"""Seconds that a single reading takes at least."""


def machine() -> str:
    """The machine in one line."""
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        )
        if Path("/proc/cpuinfo").exists()
        else iter(()),
        platform.processor() or "unknown CPU",
    )
    cores, threads = os.cpu_count(), torch.get_num_threads()
    return f"{cpu}, {cores} cores, torch {torch.__version__}, {threads} threads"


def interleaved(work: Mapping[str, Work], rounds: int) -> dict[str, float]:
    """Median seconds of each, run in turn `rounds` times; short work is repeated within a round."""
    repeats = {
        name: max(1, int(SHORTEST / max(_seconds(function, 2), 1e-9))) for name, function in work.items()
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, function in work.items():
            times[name].append(_seconds(function, repeats[name]))
    return {name: statistics.median(values) for name, values in times.items()}


def _seconds(function: Work, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats


def peak_memory(function: Work) -> float | None:
    """MB that `function` adds to the process at its peak; None where the system cannot tell."""
    reset, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        reset.write_text("5")  # Linux: start the high-water mark anew
    except OSError:
        return None
    before = _status_mb(status, "VmRSS")
    function()
    return max(0.0, _status_mb(status, "VmHWM") - before)


def resident_memory() -> float | None:
    """MB of memory that the process holds at its peak so far; None where the system cannot tell."""
    status = Path("/proc/self/status")
    return _status_mb(status, "VmHWM") if status.exists() else None


def _status_mb(status: Path, field: str) -> float:
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def table(header: list[str], rows: list[list[str]]) -> str:
    """A plain table that is also Markdown."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in lines
    )


def ms(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms"


def mb(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1f} MB"
