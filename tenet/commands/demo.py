"""See the detector at work: taught on the upper half of a photograph of coins, it looks in the lower half.

The network starts with no knowledge but its ImageNet encoder. It is shown the twelve coins of the upper
half for some steps (about half a minute), three of them as shots; the twelve of the lower half it has
never seen. Writes a picture and prints what was found, against boxes drawn by hand.

examples:
  tenet demo
  tenet demo --out coins.png --steps 80
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from tenet.models.detector import TENET
    from tenet.models.losses import QueryTarget
    from tenet.models.supports import Supports
    from tenet.structures import Detections

MIDDLE = 150
"""Row between the upper and the lower half of the photograph."""
# xyxy in pixels of scikit-image's photograph `coins`
UPPER = [
    (22, 35, 67, 74), (81, 39, 120, 74), (132, 29, 179, 74), (192, 30, 240, 73), (255, 34, 297, 72),
    (305, 16, 365, 72), (25, 104, 67, 145), (84, 107, 122, 145), (134, 110, 174, 145), (186, 105, 227, 145),
    (245, 96, 296, 144), (317, 105, 356, 145),
]  # fmt: skip
LOWER = [
    (315, 156, 380, 218), (18, 233, 75, 288), (25, 178, 63, 217), (80, 175, 124, 217), (135, 179, 174, 217),
    (143, 236, 201, 288), (189, 170, 237, 217), (220, 240, 271, 288), (251, 172, 297, 217),
    (273, 239, 326, 288), (92, 245, 136, 287), (336, 248, 384, 289),
]  # fmt: skip
SHOTS = (0, 4, 9)
THRESHOLD = 0.3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", type=Path, default=Path("demo-output/coins.png"), help="picture (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, default=60, help="training steps (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    import torch

    from tenet.models.build import build_detector
    from tenet.presets import preset

    _check_out(args.out)
    torch.manual_seed(0)
    photograph = _photograph()
    detector = build_detector(preset("tenet_lite0"))
    upper, lower = _tensor(photograph[:MIDDLE]), _tensor(photograph[MIDDLE:])
    _teach(detector, upper, args.steps)
    detector.eval()
    with torch.no_grad():
        [found], _ = detector([lower], _shots(upper))
    _report(found)
    _draw(photograph, found, args.out)
    print(f"\npicture: {args.out}")
    return 0


def _check_out(out: Path) -> None:
    """Refuse a place that cannot be written before the work, not after it."""
    from PIL import Image

    from tenet.errors import InputError

    if out.suffix.lower() not in Image.registered_extensions():
        raise InputError(f"--out: expected a picture's name such as coins.png, got {out}")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with open(out, "ab"):
            pass
    except OSError as error:
        raise InputError(
            f"--out: {out} cannot be written ({error.strerror}); choose another place"
        ) from error


def _photograph() -> "np.ndarray":
    from tenet.errors import MissingExtraError

    try:
        from skimage import data
    except ImportError as error:
        raise MissingExtraError("The demonstration's photograph", "demo") from error
    import numpy as np

    return np.stack([data.coins()] * 3, -1)


def _tensor(picture: "np.ndarray") -> "Tensor":
    import torch

    return torch.from_numpy(picture.copy()).permute(2, 0, 1).float()


def _shots(upper: "Tensor") -> "Supports":
    import torch

    from tenet.models.supports import Supports

    boxes = torch.tensor([UPPER[i] for i in SHOTS], dtype=torch.float32)
    return Supports([upper] * len(SHOTS), boxes, torch.arange(len(SHOTS)).view(1, 1, -1))


def _teach(detector: "TENET", upper: "Tensor", steps: int) -> None:
    """Steps on the upper half, mirrored and scaled at random; the encoder stays as it is."""
    import torch
    from tqdm import tqdm

    detector.train()
    learning = [p for p in detector.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=max(steps, 1))
    progress = tqdm(range(steps), desc="teaching", disable=None)
    for _ in progress:
        picture, target = _augmented(upper)
        _, losses = detector([picture], _shots(upper), [target])
        loss = torch.stack(list(losses.values())).sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learning, 10.0)
        optimizer.step()
        schedule.step()
        progress.set_postfix(loss=f"{loss.item():.3f}")


def _augmented(upper: "Tensor") -> "tuple[Tensor, QueryTarget]":
    import torch
    import torch.nn.functional as F

    from tenet.models.losses import QueryTarget

    scale = 0.8 + 0.6 * torch.rand(()).item()
    picture = F.interpolate(upper[None], scale_factor=scale, mode="bilinear", align_corners=False)[0]
    boxes = torch.tensor(UPPER, dtype=torch.float32) * scale
    if torch.rand(()) < 0.5:
        picture, width = picture.flip(2), picture.shape[2]
        boxes = torch.stack([width - boxes[:, 2], boxes[:, 1], width - boxes[:, 0], boxes[:, 3]], 1)
    none = torch.zeros(len(boxes), dtype=torch.long)
    return picture, QueryTarget(boxes, none, none.bool())


def _report(found: "Detections") -> None:
    import torch

    from tenet.ops import box_iou

    sure = found.scores >= THRESHOLD
    boxes = torch.from_numpy(found.boxes[sure])
    truth = torch.tensor(LOWER, dtype=torch.float32) - torch.tensor([0, MIDDLE, 0, MIDDLE])
    overlap = box_iou(boxes, truth) if len(boxes) else torch.zeros(0, len(truth))
    print(f"{'score':>6}  {'box (x1, y1, x2, y2)':<24} {'IoU with a coin':>15}  shot")
    rows = zip(found.scores[sure], found.boxes[sure], overlap, found.shots[sure], strict=True)
    for score, box, iou, shot in rows:
        corners = ", ".join(str(round(float(v))) for v in box)
        print(f"{score:6.2f}  {corners:<24} {float(iou.max()):15.2f}  {int(shot)}")
    hit = int((overlap >= 0.5).any(0).sum())
    right = int((overlap >= 0.5).any(1).sum())
    print(f"\n{hit} of {len(truth)} unseen coins found (IoU 0.5); {right} of {len(boxes)} boxes are right")


def _draw(photograph: "np.ndarray", found: "Detections", out: Path) -> None:
    from PIL import Image, ImageDraw

    zoom = 2
    picture = Image.fromarray(photograph)
    picture = picture.resize((picture.width * zoom, picture.height * zoom), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(picture)
    for i, box in enumerate(UPPER):
        colour = (255, 170, 0) if i in SHOTS else (150, 120, 60)
        draw.rectangle([v * zoom for v in box], outline=colour, width=3 if i in SHOTS else 1)
    for box, score in zip(found.boxes, found.scores, strict=True):
        if score < THRESHOLD:
            continue
        x1, y1, x2, y2 = ((float(v) + (MIDDLE if i % 2 else 0)) * zoom for i, v in enumerate(box))
        draw.rectangle([x1, y1, x2, y2], outline=(0, 230, 120), width=3)
        label = f"{score:.2f}"
        draw.rectangle([x1, y1 - 14, x1 + 7 * len(label), y1], fill=(0, 60, 30))
        draw.text((x1 + 2, y1 - 13), label, fill=(255, 255, 255))
    draw.line([0, MIDDLE * zoom, picture.width, MIDDLE * zoom], fill=(255, 255, 255))
    picture.save(out)
