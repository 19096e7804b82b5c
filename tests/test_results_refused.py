"""What readers of tables and VOC XML cannot read is a DataError that names the file and the place in it."""

import io
import re
from collections.abc import Callable
from typing import Any

import pytest

from tenet.errors import DataError
from tenet.results import from_csv, from_frame, from_voc, from_yolo
from tenet.results.tables import COLUMNS

ROW: dict[str, Any] = dict(zip(COLUMNS, ("a.jpg", 90, 80, "cat", 0.5, 1, 2, 30, 40, 3), strict=True))

FIELDS = [
    ("score", "nan", "a finite number as score, got 'nan'"),
    ("score", "inf", "a finite number as score, got 'inf'"),
    ("score", "high", "a finite number as score, got 'high'"),
    ("score", "50", "a score from 0 to 1, got '50'"),
    ("score", "-0.1", "a score from 0 to 1, got '-0.1'"),
    ("width", "nan", "a finite number as width, got 'nan'"),
    ("height", "inf", "a finite number as height, got 'inf'"),
    ("width", "90.5", "a whole number as width, got '90.5'"),
    ("width", "0", "a width of at least 1 px, got '0'"),
    ("height", "-8", "a height of at least 1 px, got '-8'"),
]
IN_A_TABLE = [
    *FIELDS,
    ("x1", "nan", "a finite number as x1, got 'nan'"),
    ("x2", "1e39", "a finite number as x2, got '1e39'"),
    ("y2", "", "a finite number as y2, got ''"),
    ("shot", "1e30", "a whole number as shot, got '1e30'"),
    ("shot", "nan", "a finite number as shot, got 'nan'"),
    ("class", "dog", "one of cat; got 'dog'"),
]
IN_AN_OBJECT = [
    *[row for row in FIELDS if row[0] == "score"],
    *[(edge, None, f"a finite number as {edge}, got None") for edge in ("xmin", "ymin", "xmax", "ymax")],
    ("xmin", "left", "a finite number as xmin, got 'left'"),
    ("ymax", "nan", "a finite number as ymax, got 'nan'"),
    ("ymax", "1e39", "a finite number as ymax, got '1e39'"),
]


def table(**second: Any) -> str:
    """A CSV file of two rows, the second with other values."""
    rows = [COLUMNS, ROW.values(), {**ROW, **second}.values()]
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


def elements(values: dict[str, Any]) -> str:
    """An XML element for each value but None."""
    return "".join(f"<{name}>{value}</{name}>" for name, value in values.items() if value is not None)


def annotation(size: dict[str, Any], **second: Any) -> str:
    """A VOC file of two objects, the second with other values."""
    objects = ""
    for change in ({}, second):
        box = {"xmin": 2, "ymin": 3, "xmax": 30, "ymax": 40, "score": 0.5, **change}
        score = box.pop("score")
        objects += f"<object>{elements({'name': 'cat', 'bndbox': elements(box), 'score': score})}</object>"
    frame = elements({"width": 90, "height": 80, **size})
    return f"<annotation><filename>a.jpg</filename><size>{frame}</size>{objects}</annotation>"


def refused(read: Callable[[], object], message: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        read()


@pytest.mark.parametrize(("field", "value", "expected"), IN_A_TABLE)
def test_a_csv_row(field: str, value: str, expected: str) -> None:
    text = table(**{field: value})
    refused(lambda: from_csv(text, ["cat"], "r.csv"), f"r.csv, row 1: expected {expected}")


@pytest.mark.parametrize(("field", "value", "expected"), IN_A_TABLE)
def test_a_frame_row(field: str, value: str, expected: str) -> None:
    frame = pytest.importorskip("pandas").DataFrame([ROW, {**ROW, field: value}])
    refused(lambda: from_frame(frame, ["cat"]), f"frame, row 1: expected {expected}")


@pytest.mark.parametrize("classes", [None, ["cat"], ["nan", "None"]])
@pytest.mark.parametrize("field", COLUMNS)
@pytest.mark.parametrize("absent", ["None", "nan", "NaT", "NA"])
def test_a_frame_row_without_a_value(field: str, absent: str, classes: list[str] | None) -> None:
    pandas = pytest.importorskip("pandas")
    value = {"None": None, "nan": float("nan"), "NaT": pandas.NaT, "NA": pandas.NA}[absent]
    frame = pandas.DataFrame([{**ROW, "class": (classes or ["cat"])[0]}, {**ROW, field: value}])
    with pytest.raises(DataError, match=rf"^frame, row 1: expected .* as {field}, got [Nn]one$"):
        from_frame(frame, classes)


def test_a_csv_row_without_a_class() -> None:
    columns = [column for column in COLUMNS if column != "class"]
    text = ",".join([*columns, "class"]) + "\n" + ",".join(str(ROW[column]) for column in columns) + "\n"
    refused(lambda: from_csv(text, name="r.csv"), "r.csv, row 0: expected a name as class, got none")


@pytest.mark.parametrize("classes", [None, ["7", "8"]])
def test_classes_that_pandas_takes_for_numbers(classes: list[str] | None) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.StringIO(table(**{"class": 8, "score": 0.25}).replace("cat", "7")))
    assert frame["class"].dtype.kind == "i"
    [found] = from_frame(frame, classes)
    assert found.detections.names.tolist() == ["7", "8"]
    assert (found.file_name, found.width, found.height) == ("a.jpg", 90, 80)
    refused(lambda: from_frame(frame, ["7", "9"]), "frame, row 1: expected one of 7, 9; got '8'")


@pytest.mark.parametrize(("field", "value", "expected"), IN_AN_OBJECT)
def test_a_voc_object(field: str, value: str | None, expected: str) -> None:
    text = annotation({}, **{field: value})
    refused(lambda: from_voc(text, name="a.xml"), f"a.xml, object 1: expected {expected}")


@pytest.mark.parametrize(("field", "value", "expected"), [row for row in FIELDS if row[0] != "score"])
def test_a_voc_size(field: str, value: str, expected: str) -> None:
    text = annotation({field: value})
    refused(lambda: from_voc(text, name="a.xml"), f"a.xml: expected {expected}")


@pytest.mark.parametrize("score", [0, 1, "1.000000", None])
def test_the_ends_of_the_scores_are_read(score: Any) -> None:
    last = 1 if score is None else float(score)
    assert sorted(from_voc(annotation({}, score=score)).detections.scores) == sorted([0.5, last])
    assert sorted(from_csv(table(score=last))[0].detections.scores) == sorted([0.5, last])


@pytest.mark.parametrize("number", ["nan", "inf", "1e39"])
def test_a_line_of_yolo_without_a_box(number: str) -> None:
    with pytest.raises(DataError, match=r"a\.txt, line 2: expected `class x y width height score`"):
        from_yolo(f"0 .5 .5 .2 .2 .9\n0 .5 {number} .2 .2 .9\n", 90, 80, ["cat"], "a.txt")
