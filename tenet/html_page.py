"""Pictures with their detections as one HTML file."""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tenet.data.files import write_text
from tenet.data.images import encode_png
from tenet.runtime.protocol import Picture
from tenet.structures import Detections
from tenet.visualize import draw_detections


@dataclass(frozen=True, eq=False)
class PageItem:
    """A picture (H, W, 3) of the page with its title; boxes are xyxy in its pixels."""

    title: str
    picture: Picture
    detections: Detections | None = None


def write_page(path: Path | str, title: str, items: Sequence[PageItem]) -> None:
    """Write the page, whole or not at all."""
    cards = []
    for item in items:
        drawn = item.picture if item.detections is None else draw_detections(item.picture, item.detections)
        data = base64.b64encode(encode_png(drawn)).decode()
        cards.append(f"<h2>{html.escape(item.title)}</h2><img alt='' src='data:image/png;base64,{data}'>")
    body = f"<title>{html.escape(title)}</title><h1>{html.escape(title)}</h1>{''.join(cards)}"
    write_text(Path(path), f"<!doctype html><meta charset='utf-8'>{body}\n")
