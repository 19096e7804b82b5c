"""RoIAlign and NMS: ours against plain versions, and against torchvision's where it can be loaded.

examples:
  tenet bench ops
  tenet bench ops --rounds 15
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tenet.bench.arguments import positive

if TYPE_CHECKING:
    from torch import Tensor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", type=positive, default=7, help="interleaved rounds (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    from tenet.bench.measure import machine

    print(machine(), "\n")
    _roi_align(args.rounds)
    _nms(args.rounds)
    return 0


def _roi_align(rounds: int) -> None:
    import torch
    import torch.nn.functional as F

    from tenet.bench.measure import Work, interleaved, ms, table
    from tenet.ops import roi_align

    def by_grid_sample(features: "Tensor", boxes: "Tensor") -> "Tensor":
        height, width = features.shape[-2:]
        steps = (torch.arange(14) + 0.5) / 14
        x = (boxes[:, :1] + (boxes[:, 2:3] - boxes[:, :1]) * steps) / 16 / width * 2 - 1
        y = (boxes[:, 1:2] + (boxes[:, 3:] - boxes[:, 1:2]) * steps) / 16 / height * 2 - 1
        grid = torch.stack([x[:, None, :].expand(-1, 14, -1), y[:, :, None].expand(-1, -1, 14)], -1)
        samples = F.grid_sample(
            features.expand(len(boxes), -1, -1, -1), grid, padding_mode="border", align_corners=False
        )
        return F.avg_pool2d(samples, 2)

    rows = []
    for channels, side, count in (
        (160, 20, 100),
        (320, 20, 100),
        (1024, 40, 128),
        (2048, 25, 128),
        (128, 80, 300),
    ):
        generator = torch.Generator().manual_seed(0)
        features = torch.rand(1, channels, side, side, generator=generator)
        corner = torch.rand(count, 2, generator=generator) * side * 10
        boxes = torch.cat([corner, corner + 8 + torch.rand(count, 2, generator=generator) * side * 6], 1)
        learning = features.clone().requires_grad_()
        ours, grid = (
            partial(roi_align, boxes=[boxes], output_size=7, spatial_scale=1 / 16),
            partial(by_grid_sample, boxes=boxes),
        )
        work: dict[str, Work] = {
            "ours": partial(ours, features),
            "grid": partial(grid, features),
            "ours+": partial(_backward, ours, learning),
            "grid+": partial(_backward, grid, learning),
        }
        gap = (ours(features) - grid(features)).abs().max().item()
        time = interleaved(work, rounds)
        forward, both = time["grid"] / time["ours"], time["grid+"] / time["ours+"]
        cells = [ms(time["ours"]), ms(time["grid"]), f"{forward:.2f} x", ms(time["ours+"]), ms(time["grid+"])]
        rows.append([f"{channels}x{side}x{side}, {count}", *cells, f"{both:.2f} x", f"{gap:.0e}"])
    print("RoIAlign 7x7, sampling 2, float32, boxes inside the picture: ours against grid_sample.")
    header = [
        "map, boxes",
        "ours",
        "grid_sample",
        "gain",
        "ours +backward",
        "grid +backward",
        "gain",
        "difference",
    ]
    print(table(header, rows), "\n")


def _backward(pool: Callable[["Tensor"], "Tensor"], features: "Tensor") -> None:
    pool(features).sum().backward()


def _nms(rounds: int) -> None:
    import torch

    from tenet.bench.measure import interleaved, ms, table
    from tenet.ops import box_iou, nms

    def one_by_one(boxes: "Tensor", scores: "Tensor") -> "Tensor":
        order, kept = scores.argsort(descending=True, stable=True), []
        while len(order):
            kept.append(order[0])
            order = order[1:][box_iou(boxes[order[:1]], boxes[order[1:]])[0] <= 0.7]
        return torch.stack(kept)

    rows = []
    for count in (300, 1000, 6000, 12000):
        generator = torch.Generator().manual_seed(0)
        objects = torch.rand(60, 2, generator=generator).repeat(count // 60, 1) * 500
        corner = objects + torch.randn(len(objects), 2, generator=generator) * 6
        size = 60 + torch.randn(len(objects), 2, generator=generator) * 8
        boxes, scores = torch.cat([corner, corner + size], 1), torch.rand(len(objects), generator=generator)
        same = torch.equal(nms(boxes, scores, 0.7), one_by_one(boxes, scores))
        time = interleaved(
            {
                "ours": partial(nms, boxes, scores, 0.7),
                "best 300": partial(nms, boxes, scores, 0.7, limit=300),
                "plain": partial(one_by_one, boxes, scores),
            },
            rounds,
        )
        gain = f"{time['plain'] / time['ours']:.1f} x"
        rows.append([str(len(boxes)), *(ms(time[k]) for k in ("ours", "best 300", "plain")), gain, str(same)])
    print("NMS at IoU 0.7 on clustered boxes: ours against the greedy rule one box at a time.")
    print(table(["boxes", "ours", "best 300 only", "one by one", "gain", "same answer"], rows))
