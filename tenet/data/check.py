"""What is in a set, and everything that is wrong with it."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tenet.data.dataset import Defect, Entry, Scan, box_defects
from tenet.data.images import open_picture, picture_size
from tenet.errors import DataError

KINDS: dict[str, str] = {
    "malformed": "an entry without the fields that it needs",
    "duplicate-id": "an id that two entries share",
    "unknown-image": "a box of a picture that is not listed",
    "unknown-class": "a box of a class that is not listed",
    "unsafe-path": "a picture's name that leads out of the image folder",
    "missing-picture": "a picture that is not there",
    "unreadable-picture": "a picture that cannot be decoded",
    "unreadable-file": "an annotation file that cannot be read",
    "size-mismatch": "a picture of another size than its annotation says",
    "not-a-box": "a box that is not four finite numbers",
    "empty-box": "a box without area",
    "outside-box": "a box that is partly or wholly outside its picture",
}
"""Every kind of defect, and what it means."""

SIDE_BINS = (8, 16, 32, 96, 256)
"""Edges in pixels between the classes of box size, by the square root of the box's area."""

Progress = Callable[[Iterable[Any], int], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class Report:
    """The outcome of a check: the scan, its defects, and remarks that are no defects."""

    scan: Scan
    defects: tuple[Defect, ...]
    notes: tuple[str, ...]
    pixels: bool

    def kinds(self) -> dict[str, int]:
        """How many defects there are of each kind."""
        return dict(Counter(defect.kind for defect in self.defects).most_common())

    def summary(self) -> dict[str, Any]:
        """Counts and sizes, as they are in the JSON report."""
        entries = self.scan.entries
        boxes = np.concatenate([entry.boxes for entry in entries] or [np.zeros((0, 4))])
        labels = np.concatenate([entry.labels for entry in entries] or [np.zeros(0, np.int64)])
        per_class = np.bincount(labels[labels >= 0], minlength=len(self.scan.classes))
        sides = [(entry.width, entry.height) for entry in entries if entry.width and entry.height]
        widths, heights = (sorted(side) for side in zip(*sides, strict=True)) if sides else ([0], [0])
        return {
            "path": str(self.scan.source),
            "format": self.scan.layout,
            "pictures": len(entries),
            "pictures_without_boxes": sum(1 for entry in entries if not len(entry)),
            "classes": len(self.scan.classes),
            "boxes": len(boxes),
            "difficult": sum(int(entry.difficult.sum()) for entry in entries),
            "crowd": sum(int(entry.crowd.sum()) for entry in entries),
            "truncated": sum(int(entry.truncated.sum()) for entry in entries),
            "boxes_per_class": dict(zip(self.scan.classes, per_class.tolist(), strict=True)),
            "widths": [widths[0], widths[len(widths) // 2], widths[-1]],
            "heights": [heights[0], heights[len(heights) // 2], heights[-1]],
            "box_sides": _side_counts(boxes),
            "pixels_checked": self.pixels,
        }

    def to_json(self) -> dict[str, Any]:
        """The whole report, for `--json`."""
        defects = [
            {"kind": d.kind, "where": d.where, "detail": d.detail, "repair": d.action} for d in self.defects
        ]
        return {**self.summary(), "notes": list(self.notes), "kinds": self.kinds(), "defects": defects}


def box_sides(boxes: np.ndarray) -> np.ndarray:
    """(n,) square roots of the areas of boxes (n, 4), xyxy; 0 where a box is none."""
    with np.errstate(invalid="ignore"):
        sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0)
    return np.nan_to_num(np.sqrt(sides[:, 0] * sides[:, 1]))


def _side_counts(boxes: np.ndarray) -> dict[str, int]:
    counts = np.bincount(np.digitize(box_sides(boxes), SIDE_BINS), minlength=len(SIDE_BINS) + 1)
    inner = [f"{low}-{high}" for low, high in pairwise(SIDE_BINS)]
    names = [f"<{SIDE_BINS[0]}", *inner, f">={SIDE_BINS[-1]}"]
    return dict(zip(names, counts.tolist(), strict=True))


def check_scan(scan: Scan, pixels: bool = True, progress: Progress | None = None) -> Report:
    """Every defect of a scan, in the order of its pictures.

    pixels    decode every picture; without it only whether the files are there is looked at
    progress  wraps an iterable and its length, as tqdm does
    """
    faults = _each_picture(scan.entries, pixels)
    if progress is not None:
        faults = iter(progress(faults, len(scan.entries)))
    named = {defect.image for defect in scan.defects if defect.kind in ("missing-picture", "unsafe-path")}
    defects = list(scan.defects)
    stored = 0
    for row, (fault, as_stored) in enumerate(faults):
        stored += as_stored
        if fault is not None and row not in named:
            defects.append(Defect(**{**vars(fault), "image": row}))
    defects += box_defects(scan)
    # A file-wide defect comes first, then each picture's own together.
    defects.sort(key=lambda defect: defect.image)
    notes = []
    if stored:
        notes.append(
            f"{stored} pictures are turned by EXIF, and only the pixels as stored have the annotated size: "
            "they are read as stored"
        )
    unused = [name for name, n in _class_counts(scan).items() if n == 0]
    if unused and scan.entries:
        notes.append(
            f"{len(unused)} classes have no box: {', '.join(unused[:8])}{' …' if unused[8:] else ''}"
        )
    return Report(scan, tuple(defects), tuple(notes), pixels)


def _class_counts(scan: Scan) -> dict[str, int]:
    labels = np.concatenate([entry.labels for entry in scan.entries] or [np.zeros(0, np.int64)])
    counts = np.bincount(labels[labels >= 0], minlength=len(scan.classes))
    return dict(zip(scan.classes, counts.tolist(), strict=True))


def _each_picture(entries: tuple[Entry, ...], pixels: bool) -> Iterator[tuple[Defect | None, bool]]:
    if not pixels:
        yield from (_look(entry, False) for entry in entries)
        return
    # Pillow decodes outside the interpreter's lock, so threads keep the cores busy. In blocks, because
    # `map` would queue the pictures of the whole set at once.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for start in range(0, len(entries), 256):
            yield from pool.map(lambda entry: _look(entry, True), entries[start : start + 256])


def _look(entry: Entry, pixels: bool) -> tuple[Defect | None, bool]:
    """(the defect of a picture or None, whether it is read as stored against its EXIF rotation)."""
    if entry.path is None:
        return None, False
    if not entry.path.is_file():
        detail = f"expected a picture at {entry.path}, found none"
        return Defect("missing-picture", entry.where, detail, "drop picture"), False
    if not pixels:
        return None, False
    wanted = (entry.width, entry.height)
    try:
        rgb = open_picture(entry.path, size=wanted)
        upright = picture_size(entry.path)
    except DataError as error:
        return Defect("unreadable-picture", entry.where, str(error), "drop picture"), False
    height, width = rgb.shape[:2]
    if (width, height) == wanted:
        return None, upright != wanted
    detail = f"expected {wanted[0]} × {wanted[1]} as annotated, the picture is {width} × {height}"
    same_shape = min(wanted) > 0 and abs(width * wanted[1] / (height * wanted[0]) - 1) < 0.02
    action = "scale" if same_shape else "set size"
    return Defect("size-mismatch", entry.where, detail, action, value=(width, height)), False


def report_text(report: Report, limit: int = 20) -> str:
    """The report for a terminal; at most `limit` defects are spelled out."""
    facts = report.summary()
    flags = [f"{facts[name]} {name}" for name in ("difficult", "crowd", "truncated") if facts[name]]
    w, h = facts["widths"], facts["heights"]
    lines = [
        f"{facts['path']}: {facts['format']}, {facts['pictures']} pictures, {facts['classes']} classes, "
        f"{facts['boxes']} boxes" + (f" ({', '.join(flags)})" if flags else ""),
        f"  pictures  {w[0]}–{w[2]} × {h[0]}–{h[2]} px, median {w[1]} × {h[1]}; "
        f"{facts['pictures_without_boxes']} without boxes",
        "  box side  " + ", ".join(f"{name} px: {n}" for name, n in facts["box_sides"].items()),
    ]
    counts = sorted(facts["boxes_per_class"].items(), key=lambda item: (-item[1], item[0]))
    shown = counts if len(counts) <= 24 else [*counts[:12], *counts[-6:]]
    words = [f"{name} {n}" for name, n in shown]
    if len(shown) < len(counts):
        words.insert(12, f"… {len(counts) - len(shown)} more …")
    lines.append("  classes   " + ", ".join(words))
    lines += [f"  note      {note}" for note in report.notes]
    lines += [f"  {defect}" for defect in report.defects[:limit]]
    if len(report.defects) > limit:
        lines.append(f"  … and {len(report.defects) - limit} more; --json has them all")
    kinds = ", ".join(f"{n} {kind}" for kind, n in report.kinds().items())
    ending = "no defect" if not report.defects else f"{len(report.defects)} defects: {kinds}"
    lines.append(f"  {ending}" + ("" if report.pixels else " (pictures were not opened)"))
    return "\n".join(lines)


def histogram(report: Report, path: Path) -> None:
    """Draw boxes for each class and box sizes into a PNG file."""
    from tenet.drawing.figures import save_figure, two_panels

    facts = report.summary()
    counts = sorted(facts["boxes_per_class"].items(), key=lambda item: -item[1])[:40]
    figure, left, right = two_panels()
    left.bar(range(len(counts)), [n for _, n in counts])
    left.set_xticks(range(len(counts)), [name for name, _ in counts], rotation=90, fontsize=7)
    left.set_ylabel("boxes")
    left.set_title(f"boxes for each class ({len(counts)} of {facts['classes']})")
    boxes = np.concatenate([entry.boxes for entry in report.scan.entries] or [np.zeros((0, 4))])
    sides = box_sides(boxes)
    right.hist(sides[sides > 0], bins=np.geomspace(1, max(float(sides.max(initial=0)), 2), 40).tolist())
    right.set_xscale("log")
    right.set_xlabel("√area in pixels")
    right.set_title("box sizes")
    save_figure(figure, path)
