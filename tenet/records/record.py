"""A record: what was measured, of what, by which command, at which commit. One JSON file each.

    format, kind   tenet-record-1; ablation, descriptors, evaluation or trial
    command, time  the command line, and when it ended (UTC)
    made_by        version of the package, commit and whether files differed from it, python, torch, numpy
    seconds        how long it took
    model          its name and a digest of its weights
    config         every setting
    figures        a list of `Figure`: set, protocol, metric, shots and seed with what was reached
    notes          whatever else the command measured

Values are shares of 1; one that is not defined (a class without objects) is null.
"""

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tenet.data.files import read_json, write_json
from tenet.errors import DataError
from tenet.version import __version__, clone_says

FORMAT = "tenet-record-1"
KINDS = ("ablation", "descriptors", "evaluation", "trial")
Values = Mapping[str, float | None]


@dataclass(frozen=True)
class Figure:
    """One draw of shots by one metric: values of groups of classes (novel, base, all) and of each class."""

    set: str
    pictures: int
    protocol: str
    metric: str
    shots: int
    seed: int
    groups: Mapping[str, Values]
    classes: Mapping[str, Values]


@dataclass(frozen=True)
class Record:
    """A measurement as it is kept."""

    kind: str
    command: str
    model: Mapping[str, Any]
    config: Mapping[str, Any]
    figures: tuple[Figure, ...]
    seconds: float
    time: str = ""
    made_by: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}


def write_record(path: Path, record: Record) -> None:
    """Write `record`, whole or not at all, with the time and what made it, unless it says them."""
    document = record.to_json()
    document["time"] = record.time or datetime.now(timezone.utc).isoformat(timespec="seconds")
    document["made_by"] = dict(record.made_by) or made_by()
    write_json(path, document, indent=1)


def read_record(path: Path) -> Record:
    """What `write_record` wrote; anything else is a DataError that names the file."""
    document = read_json(path)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise DataError(f"{path}: expected a record of tenet ({FORMAT}), found another file")
    try:
        values = {key: value for key, value in document.items() if key != "format"}
        record = Record(**{**values, "figures": tuple(_figure(row) for row in values["figures"])})
        if record.kind not in KINDS or not isinstance(record.model["name"], str):
            raise ValueError(f"kind {record.kind!r}")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path}: expected a whole record, but it is damaged ({error}); measure again"
        ) from error
    return record


def _figure(row: dict[str, Any]) -> Figure:
    figure = Figure(**row)
    if not isinstance(figure.shots, int) or not isinstance(figure.seed, int):
        raise ValueError(f"shots {figure.shots!r}, seed {figure.seed!r}")
    for values in (*figure.groups.values(), *figure.classes.values()):
        for value in values.values():
            if value is not None and not isinstance(value, (int, float)):
                raise ValueError(f"value {value!r}")
    return figure


def find_records(folder: Path) -> dict[Path, Record]:
    """Every record below a folder, by path; JSON files of other formats are passed over."""
    if not folder.is_dir():
        raise DataError(f"{folder}: expected a folder with records, found none; measure first")
    found = {}
    for path in sorted(folder.rglob("*.json")):
        document = read_json(path)
        if isinstance(document, dict) and document.get("format") == FORMAT:
            found[path] = read_record(path)
    return found


@cache
def made_by() -> dict[str, Any]:
    """The package's version and what it ran on, with the commit where the package is a clone; as it was when
    the process first asked, which commands do before they measure."""
    told: dict[str, Any] = {"tenet": __version__, "python": platform.python_version()}
    for package in ("torch", "numpy"):
        try:
            told[package] = version(package)
        except PackageNotFoundError:
            continue
    commit = clone_says("rev-parse", "HEAD")
    if commit is not None:
        told["commit"] = commit
        told["changed"] = bool(clone_says("status", "--porcelain", "--untracked-files=no"))
    return told
