"""Tables with a row for each detection: CSV, and a pandas frame (extra `pandas`).

Columns: picture, width, height, class, score, x1, y1, x2, y2 (pixels of the picture), shot. A picture in
which nothing was found has no row.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tenet.errors import DataError, InputError, MissingExtraError
from tenet.results.fields import number, share, side, whole
from tenet.results.pictures import PictureResult, best_first

if TYPE_CHECKING:
    import pandas

COLUMNS = ("picture", "width", "height", "class", "score", "x1", "y1", "x2", "y2", "shot")
_CORNERS = ("x1", "y1", "x2", "y2")


def rows_of(found: Iterable[PictureResult]) -> list[dict[str, Any]]:
    """A row for each detection; boxes xyxy in pixels of the picture."""
    rows = []
    for one in found:
        boxes, detections = one.detections.boxes.tolist(), one.detections
        for row, name in enumerate(detections.names.tolist()):
            values = (one.file_name, one.width, one.height, name, float(detections.scores[row]))
            rows.append(dict(zip(COLUMNS, (*values, *boxes[row], int(detections.shots[row])), strict=True)))
    return rows


def to_csv(found: Iterable[PictureResult]) -> str:
    """The text of a CSV file with a line of column names."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows_of(found):
        corners = [f"{row[corner]:.2f}" for corner in _CORNERS]
        names = (row["picture"], row["width"], row["height"], row["class"])
        writer.writerow((*names, f"{row['score']:.6f}", *corners, row["shot"]))
    return stream.getvalue()


def from_csv(text: str, classes: Sequence[str] | None = None, name: str = "CSV") -> list[PictureResult]:
    """The detections of a CSV file, by picture in the order of their first rows.

    classes  those that were asked for; without them, the names in the file in alphabetical order
    """
    reader = csv.DictReader(io.StringIO(text, newline=""))
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise DataError(f"{name}: expected columns {', '.join(COLUMNS)}; {missing[0]} is missing")
    try:
        return _grouped(list(reader), classes, name)
    except csv.Error as error:
        raise DataError(f"{name}: expected CSV, but it does not parse ({error})") from error


def to_frame(found: Iterable[PictureResult]) -> "pandas.DataFrame":
    """A pandas frame with a row for each detection."""
    return _pandas().DataFrame(rows_of(found), columns=list(COLUMNS))


def from_frame(frame: "pandas.DataFrame", classes: Sequence[str] | None = None) -> list[PictureResult]:
    """The detections of such a frame; rows may have been sorted or left out."""
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        raise InputError(f"frame: expected columns {', '.join(COLUMNS)}; {missing[0]} is missing")
    values = frame[list(COLUMNS)].astype(object)
    # NaN, NaT and NA alike are None, as what a CSV file leaves out.
    return _grouped(values.where(values.notna(), None).to_dict("records"), classes, "frame")


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise MissingExtraError("A pandas frame", "pandas") from error
    return pandas


def _grouped(rows: Sequence[dict[str, Any]], classes: Sequence[str] | None, name: str) -> list[PictureResult]:
    read = [_read(row, f"{name}, row {place}") for place, row in enumerate(rows)]
    known = tuple(sorted({row["class"] for row in read})) if classes is None else tuple(classes)
    by_picture: dict[str, list[dict[str, Any]]] = {}
    for place, row in enumerate(read):
        if row["class"] not in known:
            raise DataError(f"{name}, row {place}: expected one of {', '.join(known)}; got {row['class']!r}")
        by_picture.setdefault(row["picture"], []).append(row)
    found = []
    for picture, own in by_picture.items():
        labels = [known.index(row["class"]) for row in own]
        boxes = [[row[corner] for corner in _CORNERS] for row in own]
        detections = best_first(
            boxes, [row["score"] for row in own], labels, [row["shot"] for row in own], known
        )
        found.append(PictureResult(picture, own[0]["width"], own[0]["height"], detections))
    return found


def _read(row: dict[str, Any], where: str) -> dict[str, Any]:
    """The row with text as picture and class, and numbers in the other columns."""
    return {
        **{field: _text(row[field], where, field) for field in ("picture", "class")},
        **{field: side(row[field], where, field) for field in ("width", "height")},
        "score": share(row["score"], where, "score"),
        **{corner: number(row[corner], where, corner) for corner in _CORNERS},
        "shot": whole(row["shot"], where, "shot"),
    }


def _text(value: Any, where: str, field: str) -> str:
    """A name; pandas makes numbers of names such as `7`."""
    if value is None:
        raise DataError(f"{where}: expected a name as {field}, got none")
    return str(value)
