"""TENET-RPN (Sec. 4.1): the supports' descriptors steer where the query is searched.

Positions of the query's map attend to {ψ_z}; the result goes to an RPN (3×3 convolution, objectness,
box deltas over anchors), once for each class.

    conditioning  attention   cross-attention blocks, Q from the query's map, K and V from Ψ (the paper)
                  depthwise   channel-wise product with the mean ψ (FSOD's A-RPN)
                  none        an ordinary RPN, the same boxes for every class

Deviation: the query's positions and the descriptors pass a LayerNorm before attention. Their scales differ
a hundredfold, and non-negative vectors are all alike; without it the supports are hardly seen at first.

Beyond the paper, each with a switch: several maps (`neck`), the convolution before the conditioning
so that a further class costs little (`conv`), boxes and a part of the logit that all classes have in
common (`common`, see `common_objectness`), and a closed-form term of the logit (`objectness`).
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tenet.config import AttentionConfig
from tenet.models.anchors import base_anchors, level_anchors
from tenet.models.attention import TransformerBlocks
from tenet.models.neck import Level, SeparableConv
from tenet.models.objectness import Background
from tenet.models.proposals import Filter, Proposals, best_boxes, pad_rows
from tenet.models.supports import masked_mean
from tenet.ops import decode_boxes

RARE = -4.0
"""Where the logit starts if positives are few and negatives many: an object on every fiftieth cell."""


class RPNOutput(NamedTuple):
    """What the RPN says of every anchor; M is all anchors of all levels, K' is K or 1.

    logits (E, K', M); deltas (E, K', M, 4); anchors (M, 4) xyxy in pixels; real (E, M) bool, false where
    a smaller picture's map was padded; cells (E, K', M/A, q) the features behind the logits;
    shared (E, 1, M/A, d) the cells before they meet a class, where the rest was computed without a gradient;
    common (E, 1, M) the part of the logits that all classes have in common, where there is one: then the
    deltas are common too, (E, 1, M, 4), and `cells` are those before they meet a class
    """

    logits: Tensor
    deltas: Tensor
    anchors: Tensor
    real: Tensor
    cells: Tensor
    shared: Tensor | None = None
    common: Tensor | None = None


class Positions(NamedTuple):
    """Maps of all levels as one list of positions: x (E, N, d), real (E, N), shapes of the padded maps."""

    x: Tensor
    real: Tensor
    shapes: list[tuple[int, int]]


def flatten_levels(pyramids: list[list[Tensor]]) -> Positions:
    """Pictures' levels, each (1, d, h, w), zero-padded to the largest of a level and laid out in a row."""
    rows, reals, shapes = [], [], []
    for level in zip(*pyramids, strict=True):
        height, width = (max(x.shape[axis] for x in level) for axis in (2, 3))
        pads = [(0, width - x.shape[3], 0, height - x.shape[2]) for x in level]
        rows.append(torch.cat([F.pad(x, pad) for x, pad in zip(level, pads, strict=True)]).flatten(2).mT)
        inside = [
            F.pad(torch.ones_like(x[:, 0], dtype=torch.bool), pad) for x, pad in zip(level, pads, strict=True)
        ]
        reals.append(torch.cat(inside).flatten(1))
        shapes.append((height, width))
    return Positions(torch.cat(rows, 1), torch.cat(reals, 1), shapes)


class TenetRPN(nn.Module):
    """From maps and supports' descriptors to scored boxes."""

    def __init__(
        self,
        d: int,
        levels: tuple[Level, ...],
        *,
        conditioning: str,
        attention: AttentionConfig,
        conv: str,
        separable: bool,
        channels: int,
        anchor_sizes: tuple[float, ...],
        anchor_ratios: tuple[float, ...],
        closed_form: bool,
        common: bool,
        judged: int,
        rare: bool,
    ) -> None:
        super().__init__()
        self.levels, self.conditioning, self.conv_first = levels, conditioning, conv == "before"
        self.closed_form, self.judged = closed_form, judged
        if conditioning == "attention":
            self.norm_query, self.norm_support = nn.LayerNorm(d), nn.LayerNorm(d)
            self.cross_attention = TransformerBlocks(d, attention)
        channels = d if self.conv_first else channels or d
        self.conv: nn.Module = SeparableConv(d, channels)
        if not separable:
            self.conv = nn.Conv2d(d, channels, 3, padding=1)
            nn.init.normal_(self.conv.weight, std=0.01)
            nn.init.zeros_(self.conv.bias)  # type: ignore[arg-type]
        anchors = len(anchor_sizes) * len(anchor_ratios)
        self.objectness = nn.Linear(channels, anchors)
        self.deltas = nn.Linear(channels, 4 * anchors)
        self.common = nn.Linear(channels, 1) if common else None
        for i, level in enumerate(levels):
            sizes = anchor_sizes if len(levels) == 1 else tuple(size * level.stride for size in anchor_sizes)
            self.register_buffer(f"anchors{i}", base_anchors(sizes, anchor_ratios), persistent=False)
        for layer in (self.objectness, self.deltas):
            nn.init.normal_(layer.weight, std=0.01)
            nn.init.zeros_(layer.bias)
        rarity = self.objectness
        if self.common is not None:
            nn.init.normal_(self.common.weight, std=0.01)
            rarity = self.common
        if rare:
            nn.init.constant_(rarity.bias, RARE)
        if closed_form:
            # Cells of training pictures that are no object: the negatives of shots without surroundings.
            self.register_buffer("background_mean", torch.zeros(channels + 1))
            self.register_buffer("background_covariance", torch.eye(channels + 1))

    @property
    def locates(self) -> bool:
        """Whether boxes, and a part of the logit, are known before any class."""
        return self.common is not None

    @property
    def cell_features(self) -> int:
        """q: a cell's features and its own logit, what closed-form objectness weighs."""
        return self.objectness.in_features + 1

    @property
    def background(self) -> Background:
        return Background(self.get_buffer("background_mean"), self.get_buffer("background_covariance"))

    def set_background(self, background: Background) -> None:
        self.get_buffer("background_mean").copy_(background.mean)
        self.get_buffer("background_covariance").copy_(background.covariance)

    def forward(
        self, pyramids: list[list[Tensor]], psi: Tensor, shots: Tensor, prior: Tensor | None
    ) -> RPNOutput:
        """Pictures' levels; ψ (E or 1, K, Z, d) with the mask `shots` (E or 1, K, Z) of real ones;
        `prior` (E or 1, K, q + 1) closed-form weights, or None.

        In training, with the convolution before the classes, every cell is judged by itself, and only a few
        are learned from: all are computed without a gradient, and `judge` repeats those few with one.
        """
        if self.common is not None:
            return self._with_common(self.locate(pyramids), psi, shots, prior)
        positions = flatten_levels(pyramids)
        x = positions.x.unsqueeze(1)  # (E, 1, N, d)
        shared = None
        if self.conv_first:
            x = self._convolve(x, positions)
            shared = x if self.training and torch.is_grad_enabled() else None
        with torch.set_grad_enabled(torch.is_grad_enabled() and shared is None):
            x = self._condition(x, psi, shots)  # (E, K', N, d)
            if not self.conv_first:
                x = self._convolve(x, positions)
            logits, deltas = self._read(x)  # (E, K', N, A), (…, A, 4)
        if self.closed_form and prior is not None:
            logits = logits + self._closed_form_term(x, logits, prior)
            deltas = deltas.expand(*logits.shape, 4)
        real = positions.real.repeat_interleave(logits.shape[-1], 1)
        anchors = self._anchors(positions.shapes)
        return RPNOutput(logits.flatten(2), deltas.flatten(2, 3), anchors, real, x, shared)

    def locate(self, pyramids: list[list[Tensor]]) -> RPNOutput:
        """What is known before any class: the common logits (E, 1, M), boxes and cells."""
        assert self.common is not None
        positions = flatten_levels(pyramids)
        x = self._convolve(positions.x.unsqueeze(1), positions)  # (E, 1, N, d)
        logits = self.common(x).squeeze(-1)
        return RPNOutput(
            logits, self.deltas(x), self._anchors(positions.shapes), positions.real, x, common=logits
        )

    def _with_common(self, found: RPNOutput, psi: Tensor, shots: Tensor, prior: Tensor | None) -> RPNOutput:
        """The same with the logits of K classes: the common part, what the class adds, the closed form."""
        assert found.common is not None
        learning = self.training and torch.is_grad_enabled()
        with torch.set_grad_enabled(torch.is_grad_enabled() and not learning):
            logits = found.common
            if self.closed_form and prior is not None:
                w_features, w_logit, b = prior[..., :-2], prior[..., -2:-1], prior[..., -1:]
                from_features = (found.cells.squeeze(1) @ w_features.mT).mT  # (E, K, N)
                logits = logits + from_features + found.common * w_logit + b
            logits = logits + self._class_part(found, logits, psi, shots)
        return found._replace(logits=logits, shared=found.cells if learning else None)

    def _class_part(self, found: RPNOutput, logits: Tensor, psi: Tensor, shots: Tensor) -> Tensor:
        """What each class adds to the logits (E, K, N). With `judged`, only the cells that are best without
        it meet the classes; the others get the least that was found."""
        cells, rows = found.cells, None
        if 0 < self.judged < cells.shape[2]:
            worth = logits.amax(1).masked_fill(~found.real, -torch.inf)
            rows = worth.topk(self.judged, sorted=False).indices  # (E, n)
            cells = cells.gather(2, rows[:, None, :, None].expand(-1, 1, -1, cells.shape[3]))
        part: Tensor = self.objectness(self._condition(cells, psi, shots)).squeeze(-1)
        if rows is None:
            return part
        least = part.amin(-1, keepdim=True).expand(*part.shape[:2], found.cells.shape[2])
        return least.scatter(2, rows.unsqueeze(1).expand_as(part), part)

    def _anchors(self, shapes: list[tuple[int, int]]) -> Tensor:
        """(M, 4) of maps of these shapes, xyxy in pixels of the picture."""
        return torch.cat(
            [
                level_anchors(level, shape, self.get_buffer(f"anchors{i}")).flatten(0, 1)
                for i, (level, shape) in enumerate(zip(self.levels, shapes, strict=True))
            ]
        )

    def judge(self, shared: Tensor, psi: Tensor, shots: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (n,) and deltas (n, 4) of n anchors, given by `rows` (n, 3): picture, class, anchor.

        `shared` (E, 1, N, d) are the cells before they meet a class; ψ and `shots` as in `forward`. Of the
        logits it gives what a class adds to the common part, if there is one.
        """
        anchors_per_cell = self.objectness.out_features
        pictures, classes = len(shared), psi.shape[1]
        groups = rows[:, 0] * classes + rows[:, 1]
        order = groups.argsort(stable=True)
        counts = torch.bincount(groups, minlength=pictures * classes)
        # (E, K, m): each pair's cells in a row of its own, padded to the longest
        places = torch.arange(len(rows), device=rows.device) - (counts.cumsum(0) - counts)[groups[order]]
        cells = torch.zeros(pictures * classes, int(counts.max()), dtype=torch.long, device=rows.device)
        cells[groups[order], places] = rows[order, 2] // anchors_per_cell
        cells = cells.unflatten(0, (pictures, classes))
        picture = torch.arange(pictures, device=rows.device)[:, None, None]
        logits, deltas = self._read(self._condition(shared.squeeze(1)[picture, cells], psi, shots))
        place = torch.empty_like(places)
        place[order] = places
        at = (rows[:, 0], rows[:, 1] % logits.shape[1], place, rows[:, 2] % anchors_per_cell)
        return logits[at], deltas[at]

    def _read(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Objectness (…, A) and deltas (…, A, 4) of cells (…, channels)."""
        return self.objectness(x), self.deltas(x).unflatten(-1, (-1, 4))

    def _condition(self, x: Tensor, psi: Tensor, shots: Tensor) -> Tensor:
        if self.conditioning == "attention":
            attended: Tensor = self.cross_attention(self.norm_query(x), self.norm_support(psi), shots)
            return attended
        if self.conditioning == "depthwise":
            return x * masked_mean(psi, shots).unsqueeze(2)
        return x

    def _convolve(self, x: Tensor, positions: Positions) -> Tensor:
        """3×3 convolution and ReLU on every level: (E, K', N, d) → (E, K', N, channels)."""
        x = x * positions.real[:, None, :, None]  # padding is zero, as the convolution's own
        lead, out = x.shape[:2], []
        for level, (height, width) in zip(
            x.split([h * w for h, w in positions.shapes], 2), positions.shapes, strict=True
        ):
            grid = level.flatten(0, 1).mT.unflatten(-1, (height, width))
            out.append(F.relu(self.conv(grid)).flatten(2).mT.unflatten(0, lead))
        return torch.cat(out, 2)

    @staticmethod
    def _closed_form_term(x: Tensor, logits: Tensor, prior: Tensor) -> Tensor:
        """w·[features, logit] + b for each anchor: (E, K, N, A)."""
        w_features, w_logit, b = prior[..., :-2], prior[..., -2], prior[..., -1]
        from_features = (x * w_features.unsqueeze(2)).sum(-1, keepdim=True)  # (E, K, N, 1)
        return from_features + logits * w_logit[..., None, None] + b[..., None, None]


def propose(output: RPNOutput, sizes: list[tuple[int, int]], rule: Filter, union: bool) -> Proposals:
    """Decode, rank, cut and thin out every picture's boxes, without gradient.

    Each class keeps its own. With `union` the classes share one list, of twice `rule.post_nms` boxes at
    the most, in which a box has a logit for every class.
    """
    union = union and output.logits.shape[1] > 1  # of one class there is nothing to unite
    boxes_kept, logits_kept = [], []
    with torch.no_grad():
        for e, size in enumerate(sizes):
            real = output.real[e]
            logits = output.logits[e][:, real]  # (K', m)
            decoded = decode_boxes(output.deltas[e][:, real], output.anchors[real])  # (K', m, 4)
            if union:
                boxes, rows = _best_of_any_class(decoded, logits, size, rule)
                boxes_kept.append(boxes)
                logits_kept.append(logits[:, rows].mT)  # (P, K)
                continue
            for own, own_logits in zip(decoded.expand(len(logits), -1, 4), logits, strict=True):
                boxes, rows = best_boxes(own, own_logits, own_logits, size, rule)
                boxes_kept.append(boxes)
                logits_kept.append(own_logits[rows].unsqueeze(-1))  # (P, 1)
    boxes, mask = pad_rows(boxes_kept)
    objectness, _ = pad_rows(logits_kept)  # (E·K', P, 1 or K)
    boxes, mask, objectness = (x.unflatten(0, (len(sizes), -1)) for x in (boxes, mask, objectness))
    objectness = objectness.squeeze(1).mT if union else objectness.squeeze(-1)
    return Proposals(boxes, objectness, torch.ones_like(boxes[..., 0]), mask)


def _best_of_any_class(
    decoded: Tensor, logits: Tensor, size: tuple[int, int], rule: Filter
) -> tuple[Tensor, Tensor]:
    """Boxes (K or 1, m, 4) with logits (K, m) → one list, each anchor by its best rank in any class.

    Ranks, not logits: a class whose logits are low all over must not lose its best boxes to another.
    """
    first = logits.topk(min(rule.pre_nms, logits.shape[1]), dim=1).indices  # no other anchor can be kept
    ranks = torch.full_like(logits, logits.shape[1], dtype=torch.int64)
    ranks.scatter_(1, first, torch.arange(first.shape[1], device=first.device).expand_as(first))
    best, owner = ranks.min(0)
    columns = torch.arange(decoded.shape[1], device=decoded.device)
    rule = rule._replace(post_nms=2 * rule.post_nms)
    boxes = decoded[0] if len(decoded) == 1 else decoded[owner, columns]
    return best_boxes(boxes, -best.float(), logits.amax(0), size, rule)
