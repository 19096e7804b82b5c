"""An episode as a picture: what was to be found, what the detector finds now, and the shots."""

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from tenet.data.episodes import Episode
from tenet.engine.batch import to_batch
from tenet.models.detector import TENET

COLOURS = ((0, 230, 120), (255, 170, 0), (90, 160, 255), (240, 90, 200), (250, 240, 90))
BEST = 5
"""Detections that are drawn, the best of all."""


def draw_episode(detector: TENET, episode: Episode) -> NDArray[np.uint8]:
    """(H, W, 3) uint8: the query, its objects thin, the best detections thick, each way in its colour; the
    first shot of each way below. The detector's mode is as before afterwards."""
    training = detector.training
    detector.eval()
    batch = to_batch([episode], next(detector.parameters()).device)
    with torch.no_grad():
        [found], _ = detector(batch.images, batch.supports)
    detector.train(training)
    height, width = episode.query.shape[:2]
    ways = len(episode.classes)
    side = max(1, min(width // ways, 96))
    canvas = Image.new("RGB", (width, height + side))
    canvas.paste(Image.fromarray(episode.query), (0, 0))
    draw = ImageDraw.Draw(canvas)
    for box, way in zip(episode.boxes.tolist(), episode.ways.tolist(), strict=True):
        draw.rectangle(box, outline=COLOURS[way % len(COLOURS)] if way >= 0 else (128, 128, 128))
    order = np.argsort(-found.scores, kind="stable")[:BEST]
    for row in order.tolist():
        colour = COLOURS[int(found.labels[row]) % len(COLOURS)]
        draw.rectangle(found.boxes[row].tolist(), outline=colour, width=3)
        x, y = found.boxes[row, :2].tolist()
        draw.text((x + 3, y + 3), f"{found.scores[row]:.2f}", fill=colour)
    for way in range(ways):
        shot = int(np.argmax(episode.shot_mask[way]))
        crop = Image.fromarray(episode.crops[way, shot]).resize((side, side))
        canvas.paste(crop, (way * side, height))
        corner = (way * side, height, way * side + side - 1, height + side - 1)
        draw.rectangle(corner, outline=COLOURS[way % len(COLOURS)], width=2)
    return np.asarray(canvas)
