"""Few-shot classification of a set's boxes with fixed descriptors, without any learning.

Crops of boxes go through a frozen encoder as it was trained; its last map φ (d, N), after ReLU, gives each a
descriptor ψ = HOP(φ) (Sec. 4.3, Eq. 12–13), and a crop has the name of the class whose shots' mean is nearest
by cosine, seen from the mean of all shots. The rows are those of an ablation's table that differ in HOP
alone, and the plain mean of φ: what the table shows after training can be held against what the features
allow.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from tenet.config import HOPConfig, ModelConfig
from tenet.data.dataset import Dataset
from tenet.data.shots import draw_shots
from tenet.errors import ConfigError, InputError
from tenet.models.backbones.efficientnet_lite import EfficientNetLite
from tenet.models.build import build_hop
from tenet.presets import ABLATION_TABLES, ablations

MEAN = "mean"
"""The row that every other is compared with: first order."""
SIDE, AT_ONCE = 224, 16
"""The encoder's own side of a picture in pixels, and crops that go through it together."""
CHANNEL_DRAWS = 4
"""How often few channels are drawn."""
Progress = Callable[[Iterable[Any], int], Iterable[Any]]


@dataclass(frozen=True, eq=False)
class Crops:
    """Boxes of a set as the encoder saw them.

    classes  their names
    labels   (n,) int64, rows of `classes`
    phi      (n, d, N) half-precision, non-negative
    """

    classes: tuple[str, ...]
    labels: Tensor
    phi: Tensor


@dataclass(frozen=True)
class Accuracy:
    """Share of crops that were named rightly, mean over draws of shots, and the half-width of the interval
    that holds the mean with 95 %."""

    mean: float
    within: float


def descriptor_rows(table: str) -> dict[str, HOPConfig | None]:
    """The plain mean, then the rows of an ablation's table that differ in HOP alone: name → settings."""
    rows = ablations(ModelConfig()).get(table, {})
    hops = [model.head.hop for model in rows.values()]
    if len(set(hops)) < max(len(hops), 1):
        known = [name for name in ABLATION_TABLES if _differ_in_hop(name)]
        raise ConfigError(f"table: expected one whose rows differ in HOP, {', '.join(known)}; got {table!r}")
    return {MEAN: None, **dict(zip(rows, hops, strict=True))}


def _differ_in_hop(table: str) -> bool:
    rows = list(ablations(ModelConfig())[table].values())
    return len({model.head.hop for model in rows}) == len(rows)


def encode_crops(
    dataset: Dataset,
    variant: int,
    per_class: int,
    least: int,
    *,
    min_side: float = 32,
    seed: int = 0,
    progress: Progress | None = None,
) -> Crops:
    """Up to `per_class` boxes of each class, drawn by seed, through EfficientNet-Lite with the weights of
    ImageNet; classes with fewer than `least` are left out.

    variant   0, 1 or 2 of EfficientNet-Lite
    min_side  boxes with a side below this many pixels are not drawn
    """
    drawn = draw_shots(dataset, per_class, seed, min_side=min_side)
    kept = {name: refs for name, refs in drawn.classes.items() if len(refs) >= least}
    if len(kept) < 2:
        raise InputError(
            f"{dataset.name}: expected at least 2 classes with {least} boxes of {min_side:g} px and more, "
            f"found {len(kept)}; take fewer --shots or a smaller --min-side"
        )
    network = EfficientNetLite(variant).eval()
    network.load_imagenet()
    records = {record.id: record for record in dataset.records}
    boxes = [(records[ref.picture], ref.box) for refs in kept.values() for ref in refs]
    crops = (_crop(record.picture(), record.target.boxes[row]) for record, row in boxes)
    shown = crops if progress is None else progress(crops, len(boxes))
    with torch.inference_mode():
        phi = torch.cat([network.activations(some).flatten(2).half() for some in _batches(shown, network)])
    labels = torch.arange(len(kept)).repeat_interleave(torch.tensor([len(refs) for refs in kept.values()]))
    return Crops(tuple(kept), labels, phi)


def _crop(picture: NDArray[np.uint8], box: NDArray[np.float32]) -> Tensor:
    """The box alone, (3, SIDE, SIDE) with values in 0…255."""
    left, top = np.floor(box[:2]).astype(int).clip(0).tolist()
    right, bottom = np.ceil(box[2:]).astype(int).tolist()
    region = Image.fromarray(np.ascontiguousarray(picture[top:bottom, left:right]))
    scaled = np.array(region.resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    return torch.from_numpy(scaled).permute(2, 0, 1).float()


def _batches(crops: Iterable[Tensor], network: EfficientNetLite) -> Iterator[Tensor]:
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (network.mean, network.std))
    some: list[Tensor] = []
    for crop in crops:
        some.append((crop - mean) / std)
        if len(some) == AT_ONCE:
            yield torch.stack(some)
            some = []
    if some:
        yield torch.stack(some)


def describe(phi: Tensor, hop: HOPConfig | None) -> Tensor:
    """Descriptors (n, d) of maps (n, d, N); without settings their means."""
    pool = (lambda x: x.mean(-1)) if hop is None else build_hop(phi.shape[1], hop)
    with torch.inference_mode():
        return torch.cat([pool(some.float()) for some in phi.split(AT_ONCE)])


def few_shot_accuracies(
    descriptors: Tensor, labels: Tensor, shots: int, draws: int, seed: int = 0
) -> NDArray[np.float64]:
    """Shares (draws,) of descriptors (n, d) with labels (n,) that the nearest mean of `shots` of each class
    names rightly; every class has the same weight, and what was shown is not named."""
    generator = torch.Generator().manual_seed(seed)
    rows = [(labels == label).nonzero().flatten() for label in range(int(labels.max()) + 1)]
    return np.array([_one_draw(descriptors, rows, shots, generator) for _ in range(draws)])


def _one_draw(descriptors: Tensor, rows: list[Tensor], shots: int, generator: torch.Generator) -> float:
    mixed = [own[torch.randperm(len(own), generator=generator)] for own in rows]
    shown = torch.stack([descriptors[own[:shots]] for own in mixed])
    centre = shown.mean((0, 1))
    classes = F.normalize(F.normalize(shown - centre, dim=2).mean(1), dim=1)
    asked = torch.cat([own[shots:] for own in mixed])
    truth = torch.arange(len(rows)).repeat_interleave(torch.tensor([len(own) - shots for own in mixed]))
    # A descriptor's own length changes no order.
    right = ((descriptors[asked] - centre) @ classes.T).argmax(1) == truth
    return float(torch.stack([right[truth == label].float().mean() for label in range(len(rows))]).mean())


def measure_descriptors(
    crops: Crops,
    rows: Mapping[str, HOPConfig | None],
    shots: Iterable[int],
    draws: int = 200,
    channels: int = 0,
    progress: Progress | None = None,
) -> dict[int, dict[str, Accuracy]]:
    """Shots → row → accuracy; every row has the same draws.

    channels  only so many of the encoder's, as a detector with as many has; `CHANNEL_DRAWS` times others,
              drawn by seed, for a share of the draws each. 0 takes all
    """
    picks = _picks(crops.phi.shape[1], channels)
    found: dict[int, dict[str, Accuracy]] = {count: {} for count in shots}
    names = list(rows)
    for name in names if progress is None else progress(names, len(names)):
        psis = [describe(crops.phi[:, pick], rows[name]) for pick in picks]
        for count, own in found.items():
            each = max(draws // len(picks), 1)
            parts = [few_shot_accuracies(psi, crops.labels, count, each, i) for i, psi in enumerate(psis)]
            own[name] = _accuracy(np.concatenate(parts))
    return found


def _picks(width: int, channels: int) -> list[Tensor]:
    """Rows of the channels that are taken, one tensor for each part of the draws."""
    if channels > width:
        raise InputError(f"channels: expected at most the encoder's {width}, got {channels}")
    if not channels:
        return [torch.arange(width)]
    generator = torch.Generator().manual_seed(0)
    return [torch.randperm(width, generator=generator)[:channels] for _ in range(CHANNEL_DRAWS)]


def _accuracy(found: NDArray[np.float64]) -> Accuracy:
    several = len(found) > 1
    return Accuracy(
        float(found.mean()), float(1.96 * found.std(ddof=1) / len(found) ** 0.5) if several else 0.0
    )
