"""What was found in some pictures as one HTML page: each picture with its boxes, and a table of them.

One file that needs nothing else (`tenet.drawing.html_parts`). Its size is bounded: pictures are thumbnails,
smaller where there are many, and of very many detections the table holds the surest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tenet.data.files import write_text
from tenet.drawing.colours import class_colour, text_colour
from tenet.drawing.html_parts import data_uri, page
from tenet.structures import Detections
from tenet.version import __version__
from tenet.visualize import draw_detections, fitted

Picture = NDArray[np.uint8]
LONGEST = 800
"""Longer side of a picture in the page, in pixels; of a figure, `FIGURE`."""
FIGURE = 2000
SMALLER = ((1000, 240), (300, 320), (80, 480))
"""From so many pictures on, their longer side."""
MOST_PICTURES = 3000
MOST_ROWS = 200
"""Of a picture's table."""


@dataclass(frozen=True, eq=False)
class PageItem:
    """A picture of the page.

    title       such as its file name
    picture     (H, W, 3) uint8 RGB, as the user gave it
    detections  boxes xyxy in pixels of `picture`; None for a picture that is shown as it is
    details     name → text, shown below the title
    figure      a picture with writing of its own, kept large enough to be read
    """

    title: str
    picture: Picture
    detections: Detections | None = None
    details: dict[str, str] | None = None
    figure: bool = False


def write_page(path: Path | str, title: str, items: Sequence[PageItem], note: str = "") -> None:
    """Write the page, whole or not at all. `note` is a sentence below the title."""
    write_text(Path(path), page_html(title, items, note))


def page_html(title: str, items: Sequence[PageItem], note: str = "") -> str:
    """The whole page."""
    longest = next((side for count, side in SMALLER if len(items) >= count), LONGEST)
    cards = [_card(item, FIGURE if item.figure else longest) for item in items[:MOST_PICTURES]]
    left = len(items) - len(cards)
    more = f"<p class='none'>and {left:,} more pictures</p>" if left else ""
    body = "".join((_head(title, items, note), *cards, more, _foot()))
    # A lone surrogate, as in a file name that is not UTF-8, cannot be written.
    return page(title, STYLE, body).encode("utf-8", "replace").decode("utf-8")


def _head(title: str, items: Sequence[PageItem], note: str) -> str:
    looked = [item.detections for item in items if item.detections is not None]
    shown = sum(not item.figure for item in items)
    pictures = f"{shown:,} picture{'' if shown == 1 else 's'}"
    counts: dict[str, int] = {}
    for found in looked:
        for name, _, _ in _rows(found):
            counts[name] = counts.get(name, 0) + 1
    total = sum(counts.values())
    says = f"{pictures}, {total:,} detection{'' if total == 1 else 's'}" if looked else pictures
    chips = "".join(
        f"<span>{_chip(name)} {count:,}</span>"
        for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_ROWS]
    )
    words = " ".join(part for part in (escape(note), f"{says}.") if part)
    return f"<header><h1>{escape(title)}</h1><p>{words}</p><p class='chips'>{chips}</p></header>"


def _card(item: PageItem, longest: int) -> str:
    details = "".join(
        f"<span><b>{escape(name)}</b> {escape(text)}</span>" for name, text in (item.details or {}).items()
    )
    alt = escape(item.title, quote=True)
    return (
        f"<section class='card{' full' if item.figure else ''}'><h2>{escape(item.title)}</h2>"
        f"<p class='details'>{details}</p>"
        f"<figure><img alt='{alt}' src='{data_uri(_marked(item, longest), longest)}'></figure>"
        f"{'' if item.detections is None else _table(item.detections)}</section>"
    )


def _marked(item: PageItem, longest: int) -> Picture:
    """The picture at its size in the page with its boxes drawn there, so that labels can be read there."""
    height, width = item.picture.shape[:2]
    side = longest if item.detections is not None else min(longest, max(height, width))
    small = np.array(fitted(item.picture, side, side))
    if item.detections is None:
        return small
    scale = np.array([small.shape[1] / width, small.shape[0] / height] * 2, np.float32)
    return draw_detections(small, replace(item.detections, boxes=item.detections.boxes * scale))


def _rows(found: Detections) -> Iterator[tuple[str, int, int]]:
    """(class, its label, row) of each detection, the surest first."""
    for row in np.argsort(-found.scores, kind="stable").tolist():
        label = int(found.labels[row])
        yield (found.classes[label] if found.classes else f"class {label}"), label, row


def _table(found: Detections) -> str:
    if not len(found):
        return "<p class='none'>Nothing was found.</p>"
    rows = []
    for name, _, row in list(_rows(found))[:MOST_ROWS]:
        x1, y1, x2, y2 = found.boxes[row].tolist()
        cells = (f"{found.scores[row]:.2f}", f"{x1:.0f}", f"{y1:.0f}", f"{x2 - x1:.0f}", f"{y2 - y1:.0f}")
        inner = "".join(f"<td>{cell}</td>" for cell in (*cells, str(int(found.shots[row]))))
        rows.append(f"<tr><th>{_chip(name)}</th>{inner}</tr>")
    heads = "".join(f"<th>{head}</th>" for head in ("class", "score", "x", "y", "width", "height", "shot"))
    more = f"<p class='none'>and {len(found) - MOST_ROWS:,} more</p>" if len(found) > MOST_ROWS else ""
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return f"<div class='wide'>{table}</div>{more}"


def _chip(name: str) -> str:
    """A class's name on its own colour, the same as in the pictures."""
    plate = class_colour(name)
    red, green, blue = plate
    ink = "#fff" if text_colour(plate)[0] else "#000"
    shown = escape(name if len(name) <= 60 else name[:59] + "…")
    return f"<b class='chip' style='background:rgb({red},{green},{blue});color:{ink}'>{shown}</b>"


def _foot() -> str:
    return (
        f"<footer>tenet {__version__}. Boxes are in pixels of the picture as it was given; "
        "shots count from 0.</footer>"
    )


STYLE = """
.card{display:grid;gap:10px;margin-top:36px;border-top:1px solid var(--rule);padding-top:20px}
.card h2,.details{margin:0;overflow-wrap:anywhere}
.details{display:flex;flex-wrap:wrap;gap:2px 18px;color:var(--soft);font-size:13px}
.details:empty,.chips:empty{display:none}
.details b{font-weight:600}
.card img{display:block;width:100%;height:auto;max-width:1600px}
.chips{display:flex;flex-wrap:wrap;gap:8px 16px}
.chip{display:inline-block;padding:0 8px;border-radius:5px;font-weight:600;max-width:38ch;overflow:hidden;
  text-overflow:ellipsis;vertical-align:bottom}
.card th,.card td{padding:5px 9px}
.full figure{overflow-x:auto}
.full img{min-width:1000px}
.none{color:var(--soft);margin:0}
@media(min-width:900px){.card{grid-template-columns:minmax(0,3fr) minmax(0,2fr);align-items:start}
  .card h2,.details,.full figure{grid-column:1/-1}
  .card .wide{max-height:600px;overflow:auto}}
@media(max-width:600px){main{padding:20px 12px}}
"""
