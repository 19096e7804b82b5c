"""Tiny detectors, and pictures, supports and targets for them."""

from dataclasses import replace

import torch
from torch import Tensor

from tenet.config import EncoderConfig, HeadConfig, ModelConfig, RPNConfig
from tenet.models.supports import Supports
from tenet.models.targets import QueryTarget

TINY = ModelConfig(
    encoder=EncoderConfig(name="tiny", regions="shared"),
    rpn=RPNConfig(anchor_sizes=(16, 32, 64), pre_nms=(300, 300), post_nms=(40, 20)),
    head=HeadConfig(rois=16),
    query_size=(64, 96),
    support_size=64,
    score_threshold=0.0,
)


def shrink(config: ModelConfig) -> ModelConfig:
    """A configuration with the tiny encoder and few boxes; everything else stays."""
    return replace(
        config,
        encoder=replace(TINY.encoder, regions=config.encoder.regions, frozen=config.encoder.frozen),
        rpn=replace(config.rpn, pre_nms=(300, 300), post_nms=(40, 20), batch=64),
        head=replace(config.head, rois=16),
        score_threshold=0.0,
    )


def picture(height: int = 96, width: int = 128, seed: int = 0) -> Tensor:
    """A picture of smooth noise, values in 0…255."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(1, 3, 6, 8, generator=generator) * 255
    return torch.nn.functional.interpolate(coarse, size=(height, width), mode="bicubic").clamp(0, 255)[0]


def make_supports(shots: list[list[int]], seed: int = 100) -> Supports:
    """One crop for each number in `shots`; a class is a list of crops; −1 is added for short lists."""
    count = max(max(s) for s in shots) + 1
    longest = max(len(s) for s in shots)
    rows = torch.tensor([[s + [-1] * (longest - len(s)) for s in shots]])
    crops = [picture(64, 64, seed + i) for i in range(count)]
    return Supports(crops, torch.tensor([[6.0, 8.0, 58.0, 60.0]]).repeat(count, 1), rows)


def make_target(boxes: list[list[float]], ways: list[int], ignore: list[bool] | None = None) -> QueryTarget:
    flags = ignore if ignore is not None else [False] * len(ways)
    return QueryTarget(
        torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
        torch.tensor(ways, dtype=torch.long),
        torch.tensor(flags, dtype=torch.bool),
    )
