"""A checkpoint as it ships: half precision, without the optimiser, with what bare crops need.

A frozen encoder's weights come with its own package and are not in the file; of one that learned, what it
learned is (`tenet.engine.learned_encoder`), and from then on it is frozen. A shot that comes without its
picture has no surroundings: cells of training pictures that cover no object stand for them.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from tenet.data.episodes import EpisodeSource
from tenet.engine.batch import to_batch
from tenet.engine.checkpoint import Checkpoint, restore_detector, write_checkpoint
from tenet.engine.learned_encoder import as_differences
from tenet.engine.optim import BACKBONE
from tenet.engine.start_from import start_from
from tenet.errors import ConfigError
from tenet.models.detector import TENET, UNDER_BOXES
from tenet.models.objectness import NEGATIVE_IOU, cell_statistics
from tenet.models.targets import best_iou
from tenet.recipe import Recipe
from tenet.settings import override

EPISODES = 48
SMALL = 1024
"""Tensors of fewer numbers keep their precision: they cost nothing, and scales and biases live there."""


def pack(checkpoint: Checkpoint, out: Path, source: EpisodeSource | None = None) -> Path:
    """Write OUT.safetensors and OUT.json; returns the path of the JSON.

    `source` has the training episodes from which the background is taken.
    """
    detector = restore_detector(checkpoint).eval()
    if source is not None and detector.rpn.closed_form:
        fit_background(detector, source)
    encoder = checkpoint.recipe.model.encoder
    if not encoder.frozen:
        model = replace(checkpoint.recipe.model, encoder=replace(encoder, weights="none", frozen=True))
        train = replace(checkpoint.recipe.train, keep_maps=0.0, known_classes=0.0)
        checkpoint = replace(checkpoint, recipe=replace(checkpoint.recipe, model=model, train=train))
    state = detector.state_dict()
    packaged = checkpoint.recipe.model.encoder.weights == "imagenet"
    tensors = {
        f"model/{name}": tensor
        for name, tensor in state.items()
        if not (packaged and name.startswith(BACKBONE))
    }
    if not packaged:
        tensors = as_differences(tensors, encoder.name)
    return write_checkpoint(
        out if out.suffix == ".json" else out.with_name(f"{out.name}.json"),
        {name: _half(name, tensor) for name, tensor in tensors.items()},
        checkpoint.step,
        checkpoint.recipe,
        checkpoint.split,
        checkpoint.metrics,
        checkpoint.calibration,
    )


def mean_with_start(checkpoint: Checkpoint, share: float) -> Checkpoint:
    """`share` of what a run has learned, and the rest of what it started from (`train.start`), parameter by
    parameter: on what is unlike the training pictures the mean of both is better than either (Wortsman et
    al., 2022)."""
    recipe = checkpoint.recipe
    if not recipe.train.start or not 0 < share <= 1:
        raise ConfigError(
            f"share: expected above 0 and at most 1, of a run with a train.start, got {share} of one that "
            f"starts from {recipe.train.start or 'nothing'}"
        )
    # What the run did not take over from its start has no former value: there it stays as it was learned.
    start = restore_detector(checkpoint)
    parts = UNDER_BOXES if recipe.train.learn == "relations" else ("",)
    start_from(start, recipe.train.start, checkpoint.split["novel"], parts)
    before = start.state_dict()
    tensors = {
        name: before[name[6:]].lerp(tensor.to(before[name[6:]].dtype), share)
        for name, tensor in checkpoint.tensors.items()
        if name.startswith("model/") and tensor.is_floating_point()
    }
    return replace(checkpoint, tensors=checkpoint.tensors | tensors)


def with_settings(checkpoint: Checkpoint, overrides: Sequence[str]) -> Checkpoint:
    """The same parameters with other settings, `model.a.b=value`, such as powers of the score."""
    table = checkpoint.recipe.to_dict()
    for assignment in overrides:
        table = override(table, assignment)
    return replace(checkpoint, recipe=Recipe.from_dict(table))


def _half(name: str, tensor: Tensor) -> Tensor:
    small = tensor.numel() < SMALL or not tensor.is_floating_point() or "background" in name
    return tensor if small else tensor.half()


@torch.no_grad()
def fit_background(detector: TENET, source: EpisodeSource) -> None:
    """Statistics of cells that cover no object, from the queries of the first episodes with their classes."""
    cells = []
    for index in range(EPISODES):
        batch = to_batch([source[index]])
        classes = detector.encode_supports(batch.supports)
        [image] = detector.encode_images(batch.images)
        found = detector.cells(image, classes)
        cells.append(found.features[best_iou(found.boxes, batch.targets[0].boxes)[0] < NEGATIVE_IOU])
    detector.rpn.set_background(cell_statistics(torch.cat(cells)))
