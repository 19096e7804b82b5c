"""The figure of `tenet explain`: a row for each detection, with a legend above. Pillow and numpy alone."""

from math import isqrt

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tenet.drawing.colours import Colour, class_colour, heat_colours, text_colour
from tenet.drawing.explain import Explained, Pair, best_pairs, cut
from tenet.drawing.heatmaps import overlay
from tenet.drawing.lettering import font_of, line_height, shortened, width_of, wrapped, writable
from tenet.errors import InputError
from tenet.structures import Detections, Explanation
from tenet.visualize import INK, PAPER, draw_detections, fitted

Picture = NDArray[np.uint8]
SOFT, RULE, CARD, NIGHT = (96, 103, 112), (221, 221, 213), (255, 255, 255), (24, 28, 33)
MUTUAL, ONE_WAY, BAR = (120, 255, 255), (255, 150, 0), (37, 99, 184)

# name of the map, title, what it says
MAPS: tuple[tuple[str, str, str], ...] = (
    ("fo", "FO", "first-order token"),
    ("ho", "HO", "high-order token"),
    ("fo_ho", "FO + HO", "averaged"),
    ("spatial", "spatial", "max-pooled"),
)
MARGIN, GAP = 36, 14
CELL = 150
TALL = 2 * CELL + GAP
PAIR_CELL, BRIDGE = 290, 96
MAPS_LEFT = MARGIN + 2 * PAIR_CELL + BRIDGE + 76
BARS_LEFT = MAPS_LEFT + 4 * CELL + 3 * GAP + 44
WIDTH = BARS_LEFT + 300 + MARGIN
HEADING, TITLES = 46, 26
ROW = HEADING + TITLES + TALL + 40
OVERVIEW = (2 * PAIR_CELL + BRIDGE, 330)


def draw_figure(explained: Explained, title: str = "") -> Picture:
    """(H, W, 3): the picture with its boxes, a legend, and a row for each detection."""
    overview = _overview(explained)
    top = MARGIN + max(overview.height, 330) + 40
    sheet = Image.new("RGB", (WIDTH, top + ROW * len(explained.detections) + MARGIN), PAPER)
    sheet.paste(overview, (MARGIN, MARGIN))
    _legend(
        sheet, (MARGIN + overview.width + 48, MARGIN), writable(title) or "Why it was found", explained.note
    )
    for row in range(len(explained.detections)):
        _row(sheet, top + row * ROW, explained, row)
    return np.array(sheet)


def _overview(explained: Explained) -> Image.Image:
    """The whole picture, enlarged first, so that labels have the figure's size and not the picture's."""
    image = fitted(explained.picture, *OVERVIEW)
    scale = image.width / explained.picture.shape[1], image.height / explained.picture.shape[0]
    found = explained.detections
    boxes = found.boxes * np.array([*scale, *scale], np.float32)
    moved = type(found)(boxes, found.scores, found.labels, found.shots, found.classes)
    return Image.fromarray(draw_detections(np.array(image), moved, scores=not explained.asked))


def _legend(sheet: Image.Image, corner: tuple[int, int], title: str, note: str) -> None:
    pen, (left, y), most = ImageDraw.Draw(sheet), corner, WIDTH - corner[0] - MARGIN
    face = font_of(32)
    pen.text((left, y), shortened(title, face, most), fill=INK, font=face)
    y = _paragraph(pen, (left, y + 46), writable(note), 18, INK, most) + 16
    ramp = np.repeat(heat_colours()[None], 16, 0)
    sheet.paste(Image.fromarray(ramp), (left, y + 3))
    _say(pen, (left + 268, y), "little to much attention; each map has its own scale", 15)
    y += 36
    for colour, thick, text in (
        (MUTUAL, 5, "positions that are each other's nearest"),
        (ONE_WAY, 3, "nearest in one direction only"),
    ):
        pen.rectangle((left, y, left + 60, y + 20), fill=NIGHT)
        pen.line((left + 8, y + 10, left + 52, y + 10), fill=colour, width=thick)
        _say(pen, (left + 72, y + 1), text, 15)
        y += 30
    texts = (
        "FO, HO: where the first-order and the high-order token of the relation head look. FO + HO is their "
        "average; spatial is how much a position is looked at by the others, max-pooled.",
        "Bars: how alike the region and each shot are, as a cosine; the shot that matched best is in blue. "
        "Shots count from 0.",
    )
    for text in texts:
        y = _paragraph(pen, (left, y + 8), text, 15, SOFT, most)


def _row(sheet: Image.Image, top: int, explained: Explained, row: int) -> None:
    found, reason = explained.detections, explained.explanations[row]
    name, shot = str(found.names[row]), int(found.shots[row])
    thumbnails = explained.shots[name]
    if not len(thumbnails) == len(reason.shots) == len(reason.cosines) or not 0 <= shot < len(thumbnails):
        raise InputError(
            f"{name}: expected maps and a thumbnail for every shot and a best one among them, got "
            f"{len(reason.shots)} and {len(thumbnails)}, best {shot}"
        )
    pen = ImageDraw.Draw(sheet)
    pen.line((MARGIN, top, WIDTH - MARGIN, top), fill=RULE, width=2)
    _heading(pen, top + 12, found, row, not explained.asked)
    region, example = cut(explained.picture, found.boxes[row]), thumbnails[shot]
    y = top + HEADING + TITLES
    panel = _pair_panel(region, example, best_pairs(reason.pairs[shot]), reason.pairs[shot].shape)
    sheet.paste(panel, (MARGIN, y))
    _say(pen, (MARGIN, y - 24), "found in the picture", 15)
    _say(
        pen,
        (MARGIN + PAIR_CELL + BRIDGE, y - 24),
        f"best of {len(thumbnails)} shots: shot {shot}" if len(thumbnails) > 1 else "the shot",
        15,
    )
    for line, (picture, maps) in enumerate(((region, reason.region), (example, reason.shots[shot]))):
        _side_text(sheet, "found" if line == 0 else "shot", MAPS_LEFT - 28, y + line * (CELL + GAP))
        for column, (key, title, says) in enumerate(MAPS):
            left = MAPS_LEFT + column * (CELL + GAP)
            if line == 0:
                _say(pen, (left, y - 24), title, 15, INK)
                _say(pen, (left + width_of(title, font_of(15)) + 7, y - 22), says, 13)
            _map_cell(sheet, (left, y + line * (CELL + GAP)), picture, maps.get(key))
    _bars(sheet, (BARS_LEFT, y), reason, thumbnails, shot)


def _heading(pen: ImageDraw.ImageDraw, y: int, found: Detections, row: int, scored: bool) -> None:
    name, face = str(found.names[row]), font_of(20)
    shown = shortened(writable(name) or f"#{found.labels[row]}", face, WIDTH // 2)
    text, colour = f"{shown} {found.scores[row]:.2f}" if scored else shown, class_colour(name)
    wide = width_of(text, face)
    pen.rectangle((MARGIN, y, MARGIN + wide + 20, y + 30), fill=colour)
    pen.text((MARGIN + 10, y + 3), text, fill=text_colour(colour), font=face)
    corners = ", ".join(f"{value:.0f}" for value in found.boxes[row])
    _say(pen, (MARGIN + wide + 36, y + 7), f"box ({corners})", 15)


def _pair_panel(region: Picture, shot: Picture, pairs: list[Pair], shape: tuple[int, ...]) -> Image.Image:
    """Region and shot beside each other with lines between them, drawn at three times the size and reduced:
    Pillow's own lines have steps."""
    fine = 3
    panel = Image.new("RGB", ((2 * PAIR_CELL + BRIDGE) * fine, TALL * fine), NIGHT)
    frames = []
    for number, picture in enumerate((region, shot)):
        image = fitted(picture, (PAIR_CELL - 16) * fine, (TALL - 16) * fine)
        middle = (PAIR_CELL // 2 + number * (PAIR_CELL + BRIDGE)) * fine
        left, top = middle - image.width // 2, (TALL * fine - image.height) // 2
        panel.paste(image, (left, top))
        frames.append((left, top, image.width, image.height))
    pen = ImageDraw.Draw(panel)
    ends = [
        [
            _position(place, isqrt(count), frame)
            for place, count, frame in zip((pair.region, pair.shot), shape, frames, strict=True)
        ]
        for pair in pairs
    ]
    looks = [(MUTUAL, 3) if pair.mutual else (ONE_WAY, 2) for pair in pairs]
    for (one, other), (colour, thick) in reversed(list(zip(ends, looks, strict=True))):
        pen.line((*one, *other), fill=NIGHT, width=(thick + 2) * fine)
        pen.line((*one, *other), fill=colour, width=thick * fine // 2 + 1)
    for both, (colour, thick) in reversed(list(zip(ends, looks, strict=True))):
        radius = (thick + 2) * fine
        for x, y in both:
            pen.ellipse(
                (x - radius, y - radius, x + radius, y + radius), fill=colour, outline=NIGHT, width=fine
            )
    return panel.resize((panel.width // fine, panel.height // fine), Image.Resampling.LANCZOS)


def _position(place: int, side: int, frame: tuple[int, int, int, int]) -> tuple[float, float]:
    """The middle of a map's position, in pixels of the panel."""
    left, top, width, height = frame
    row, column = divmod(place, side)
    return left + (column + 0.5) / side * width, top + (row + 0.5) / side * height


def _map_cell(
    sheet: Image.Image, corner: tuple[int, int], picture: Picture, values: NDArray[np.float32] | None
) -> None:
    left, top = corner
    pen = ImageDraw.Draw(sheet)
    pen.rectangle((left, top, left + CELL - 1, top + CELL - 1), fill=NIGHT)
    if values is None:
        _say(pen, (left + 10, top + CELL // 2 - 10), "no such map", 15, RULE)
        return
    image = overlay(np.array(fitted(picture, CELL, CELL)), values)
    height, width = image.shape[:2]
    sheet.paste(Image.fromarray(image), (left + (CELL - width) // 2, top + (CELL - height) // 2))


def _bars(
    sheet: Image.Image,
    corner: tuple[int, int],
    reason: Explanation,
    thumbnails: tuple[Picture, ...],
    best: int,
) -> None:
    left, top = corner
    pen, small, track = ImageDraw.Draw(sheet), 44, 176
    _say(pen, (left, top - 24), "cosine with each shot", 15, INK)
    order = sorted(range(len(thumbnails)), key=lambda shot: -float(reason.cosines[shot]))
    most = TALL // (small + 8)
    shown = order if len(order) <= most else order[: most - 1]
    if best not in shown:
        shown = [*shown[:-1], best]
    y = top
    for shot in shown:
        value = float(reason.cosines[shot])
        image = fitted(thumbnails[shot], small, small)
        pen.rectangle((left, y, left + small - 1, y + small - 1), fill=NIGHT)
        sheet.paste(image, (left + (small - image.width) // 2, y + (small - image.height) // 2))
        x = left + small + 12
        _say(pen, (x, y + 1), f"shot {shot}", 13, INK if shot == best else SOFT)
        pen.rectangle((x, y + 22, x + track, y + 36), fill=RULE)
        length = round(min(max(value, 0.0), 1.0) * track)
        if length:
            pen.rectangle((x, y + 22, x + length, y + 36), fill=BAR if shot == best else (150, 158, 168))
        _say(pen, (x + track + 10, y + 19), f"{value:.2f}", 15, INK)
        y += small + 8
    if len(shown) < len(order):
        _say(pen, (left, y + 8), f"and {len(order) - len(shown)} more", 15)


def _side_text(sheet: Image.Image, text: str, left: int, top: int) -> None:
    """A word that runs upwards beside a row of maps."""
    face = font_of(15)
    word = Image.new("RGB", (CELL, line_height(face)), PAPER)
    ImageDraw.Draw(word).text(((CELL - width_of(text, face)) // 2, 0), text, fill=SOFT, font=face)
    sheet.paste(word.rotate(90, expand=True), (left, top))


def _say(
    pen: ImageDraw.ImageDraw, corner: tuple[float, float], text: str, size: int, colour: Colour = SOFT
) -> None:
    pen.text(corner, text, fill=colour, font=font_of(size))


def _paragraph(
    pen: ImageDraw.ImageDraw, corner: tuple[int, int], text: str, size: int, colour: Colour, most: int
) -> int:
    """Text in lines of at most `most` pixels; gives where the next one may start."""
    (left, y), face = corner, font_of(size)
    for line in wrapped(text, face, most):
        pen.text((left, y), line, fill=colour, font=face)
        y += line_height(face) + 3
    return y
