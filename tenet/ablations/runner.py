"""All runs of an ablation, one after the other; those that have a record, in this table or as a row
of another in the same folder, are not made again.

Several processes may work on one ablation: each takes a run that no other has.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from tenet.ablations.measure import Ground, Places, Progress, measure, start_digest, tidy
from tenet.ablations.plan import Run, finished, measured_elsewhere
from tenet.engine.locks import claimed
from tenet.errors import DataError
from tenet.records.record import Record, made_by, write_record

Told = Callable[[int, Run, Record | None], None]
"""Called after each run: its number from 1, the run, and its record; None where another process has it."""


def run_all(
    runs: Sequence[Run],
    ground: Ground,
    places: Places,
    results: Path,
    command: str,
    told: Told,
    progress: Progress | None = None,
) -> int:
    """Make every run that has no record; returns how many were left to other processes."""
    start = start_digest(runs[0].recipe) if runs else ""
    made_by()  # the commit that runs, not that of hours later
    for run in runs:
        record = finished(run, results)  # refuses a folder of other settings before the first step
        if start and record is not None and record.notes.get("start", start) != start:
            raise DataError(
                f"{run.path(results)}: expected a training that started from {run.recipe.train.start} as it "
                "is now, but it has other weights than then; give another --out, or the start of then"
            )
    left = 0
    for number, run in enumerate(runs, 1):
        folder = places.folder(run)
        lock = folder.parent / f"{folder.name}.lock"
        with claimed(lock) as mine:
            record = finished(run, results)  # what another process made in the meantime counts
            if record is None and mine:
                record = measured_elsewhere(run, results, start)
                record = record or measure(run, ground, places, command, progress)
                write_record(run.path(results), record)
            if record is not None and mine:
                tidy(run, places)
                lock.unlink(missing_ok=True)  # whoever holds it still finds the record
        left += record is None
        told(number, run, record)
    return left
