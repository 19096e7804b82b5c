"""One page that needs nothing else, whatever its pictures and classes are called."""

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tenet.drawing import html_page
from tenet.drawing.html_page import PageItem, page_html, write_page
from tenet.errors import DataError
from tenet.structures import Detections

HOSTILE = "<script>alert(1)</script>' onload='x\" &amp; \u202e"
PICTURE = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)


def found(count: int, name: str = "cat") -> Detections:
    scores = np.linspace(0.99, 0.01, count).astype(np.float32)
    boxes = np.tile(np.array([[10, 20, 50, 50]], np.float32), (count, 1))
    rows = np.arange(count)
    return Detections(boxes, scores, rows * 0, rows * 0, (name,))


class Page(HTMLParser):
    """Tags that are open and were seen, attributes that run code, addresses and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def pictures_in(text: str) -> list[Image.Image]:
    return [
        Image.open(io.BytesIO(base64.b64decode(code)))
        for code in re.findall(r"base64,([A-Za-z0-9+/=]+)", text)
    ]


def test_hostile_names_are_text_and_nothing_else() -> None:
    text = page_html(HOSTILE, [PageItem(HOSTILE, PICTURE, found(2, HOSTILE), {HOSTILE: HOSTILE})], HOSTILE)
    page = Page(text)
    assert not page.open
    assert "script" not in page.seen
    assert not [name for name in page.attributes if name.startswith("on")]
    assert page.text.count("<script>alert(1)</script>") >= 7
    assert len(page.addresses) == 1
    assert page.addresses[0].startswith("data:image/jpeg;base64,")
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme:dark" in text
    assert "width=device-width" in text


def test_the_table_says_what_was_found() -> None:
    text = page_html("t", [PageItem("a.jpg", PICTURE, found(3)), PageItem("b.jpg", PICTURE, found(0))])
    assert text.count("<tr>") == 4  # a head and three rows
    assert "<td>0.99</td><td>10</td><td>20</td><td>40</td><td>30</td><td>0</td>" in text
    assert "2 pictures, 3 detections" in text
    assert "Nothing was found" in text


def test_pictures_are_thumbnails_and_figures_stay_large() -> None:
    large = np.zeros((1500, 3000, 3), np.uint8)
    text = page_html(
        "t", [PageItem("a", large, found(1)), PageItem("b", large), PageItem("c", large, figure=True)]
    )
    assert [picture.size for picture in pictures_in(text)] == [(800, 400), (800, 400), (2000, 1000)]


def test_a_small_picture_is_enlarged_for_its_labels_only() -> None:
    text = page_html("t", [PageItem("a", PICTURE, found(1)), PageItem("b", PICTURE)])
    assert [picture.size for picture in pictures_in(text)] == [(800, 600), (80, 60)]


def test_boxes_are_drawn_where_they_are() -> None:
    grey = np.full((1500, 3000, 3), 128, np.uint8)
    box = Detections(
        np.array([[750, 375, 2250, 1125]], np.float32), np.ones(1, np.float32), np.zeros(1, np.int64),
        np.zeros(1, np.int64), ("cat",),
    )  # fmt: skip
    [picture] = pictures_in(page_html("t", [PageItem("a", grey, box)]))
    changed = np.abs(np.asarray(picture).astype(int) - 128).max(2) > 60
    columns, rows = np.flatnonzero(changed[250]), np.flatnonzero(changed[:, 500])
    assert (columns[0], columns[-1]) == pytest.approx((200, 600), abs=5)
    assert (rows[0], rows[-1]) == pytest.approx((100, 300), abs=5)


def test_the_page_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = page_html("t", [PageItem("a", PICTURE, found(1000))])
    assert text.count("<tr>") == html_page.MOST_ROWS + 1
    assert "and 800 more" in text
    monkeypatch.setattr(html_page, "SMALLER", ((4, 40), (2, 60)))
    monkeypatch.setattr(html_page, "MOST_PICTURES", 3)
    assert {picture.size for picture in pictures_in(page_html("t", [PageItem("a", PICTURE)] * 2))} == {
        (60, 45)
    }
    many = page_html("t", [PageItem("a", PICTURE, found(1))] * 5)
    assert [picture.size for picture in pictures_in(many)] == [(40, 30)] * 3
    assert "and 2 more pictures" in many
    assert "5 pictures, 5 detections" in many


@pytest.mark.parametrize("title", ["", "\ud800", "猫", "x" * 10_000])
def test_any_title(title: str, tmp_path: Path) -> None:
    write_page(tmp_path / "new" / "page.html", title, [PageItem(title, PICTURE, found(1, title))])
    page = Page((tmp_path / "new" / "page.html").read_text(encoding="utf-8"))
    assert not page.open
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["page.html"]


def test_no_pictures_and_no_names() -> None:
    assert "0 pictures" in page_html("t", [])
    nameless = found(1).with_classes(())
    assert "class 0" in page_html("t", [PageItem("a", PICTURE, nameless)])


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="expected to write"):
        write_page(tmp_path / "file" / "page.html", "t", [])
