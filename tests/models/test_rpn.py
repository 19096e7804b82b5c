"""TENET-RPN: anchors, conditioning, padding, proposals."""

from dataclasses import replace

import pytest
import torch
from tiny_detector import TINY, make_supports, picture

from tenet.config import ModelConfig
from tenet.models.anchors import base_anchors, level_anchors
from tenet.models.build import build_detector
from tenet.models.neck import Level
from tenet.models.proposals import Filter, best_boxes, best_proposals, pad_rows
from tenet.models.rpn import RPNOutput, _best_of_any_class, flatten_levels, propose
from tenet.ops import box_iou

RULE = Filter(pre_nms=300, post_nms=20, iou=0.7, min_size=1)


def rpn_output(config: ModelConfig, sizes: list[tuple[int, int]], classes: list[list[int]]) -> RPNOutput:
    torch.manual_seed(0)  # the same detector every time
    detector = build_detector(config).eval()
    with torch.no_grad():
        images = detector.encode_images([picture(*size, seed=i) for i, size in enumerate(sizes)])
        supports = detector.encode_supports(make_supports(classes))
        return detector.rpn([image.pyramid for image in images], supports.psi_rpn, supports.mask, None)


def test_anchors_have_area_and_ratio() -> None:
    anchors = base_anchors((32, 64), (0.5, 1, 2))
    width, height = anchors[:, 2] - anchors[:, 0], anchors[:, 3] - anchors[:, 1]
    assert torch.allclose(width * height, torch.tensor([32.0**2] * 3 + [64.0**2] * 3), rtol=1e-4)
    assert torch.allclose(height / width, torch.tensor([0.5, 1, 2] * 2), rtol=1e-4)


def test_anchors_stand_on_the_cells() -> None:
    anchors = level_anchors(Level(16, 7.5), (2, 3), base_anchors((8,), (1,)))
    centres = (anchors[:, 0, :2] + anchors[:, 0, 2:]) / 2
    assert centres[0].tolist() == [15.5, 15.5]
    assert centres[1].tolist() == [31.5, 15.5]
    assert centres[3].tolist() == [15.5, 31.5]


@pytest.mark.parametrize("neck", [False, True])
def test_every_anchor_is_answered(neck: bool) -> None:
    output = rpn_output(replace(TINY, neck=neck), [(96, 128)], [[0], [1, 2]])
    cells = 6 * 8 if not neck else 12 * 16 + 6 * 8 + 3 * 4 + 2 * 2
    assert output.logits.shape == (1, 2, 9 * cells)
    assert output.anchors.shape == (9 * cells, 4)
    assert output.real.all()


def test_neck_anchors_grow_with_the_stride() -> None:
    config = replace(TINY, neck=True, rpn=replace(TINY.rpn, anchor_sizes=(4.0,), anchor_ratios=(1.0,)))
    anchors = rpn_output(config, [(64, 64)], [[0]]).anchors
    assert set((anchors[:, 2] - anchors[:, 0]).tolist()) == {32.0, 64.0, 128.0, 256.0}


def test_padding_is_marked_and_not_seen() -> None:
    both = rpn_output(TINY, [(64, 64), (96, 128)], [[0]])
    alone = rpn_output(TINY, [(64, 64)], [[0]])
    assert both.real.sum(1).tolist() == [9 * 16, 9 * 48]
    assert torch.allclose(both.logits[0, 0][both.real[0]], alone.logits[0, 0], atol=1e-5)


def test_levels_are_laid_out_in_order() -> None:
    levels = [torch.arange(4.0).view(1, 1, 2, 2), torch.tensor([[[[9.0]]]])]
    positions = flatten_levels([levels])
    assert positions.x.flatten().tolist() == [0, 1, 2, 3, 9]
    assert positions.shapes == [(2, 2), (1, 1)]


@pytest.mark.parametrize("conditioning", ["attention", "depthwise"])
@pytest.mark.parametrize("conv", ["before", "after"])
def test_supports_steer_the_rpn(conditioning: str, conv: str) -> None:
    config = replace(TINY, rpn=replace(TINY.rpn, conditioning=conditioning, conv=conv))
    logits = rpn_output(config, [(96, 128)], [[0], [1]]).logits[0]
    assert (logits[0] - logits[1]).abs().mean() > 0.02 * logits.std()


def test_an_ordinary_rpn_is_the_same_for_every_class() -> None:
    config = replace(TINY, rpn=replace(TINY.rpn, conditioning="none"))
    assert rpn_output(config, [(96, 128)], [[0], [1]]).logits.shape[1] == 1


def test_proposals_are_inside_thin_and_ranked() -> None:
    output = rpn_output(TINY, [(96, 128), (64, 64)], [[0], [1]])
    proposals = propose(output, [(96, 128), (64, 64)], RULE, union=False)
    assert proposals.boxes.shape[:2] == (2, 2)
    for e, (height, width) in enumerate([(96, 128), (64, 64)]):
        for k in range(2):
            boxes = proposals.boxes[e, k][proposals.mask[e, k]]
            assert (boxes >= 0).all()
            assert (boxes[:, 2] <= width).all()
            assert (boxes[:, 3] <= height).all()
            assert (box_iou(boxes, boxes).triu(1) <= 0.7).all()
            logits = proposals.objectness[e, k][proposals.mask[e, k]]
            assert (logits.diff() <= 0).all()


def test_a_union_has_a_logit_for_every_class() -> None:
    output = rpn_output(TINY, [(96, 128)], [[0], [1], [2]])
    proposals = propose(output, [(96, 128)], RULE, union=True)
    assert proposals.boxes.shape[:2] == (1, 1)
    assert proposals.objectness.shape == (1, 3, proposals.boxes.shape[2])


@pytest.mark.parametrize("pre_nms", [40, 1000])
def test_a_union_ranks_as_if_all_anchors_were_sorted(pre_nms: int) -> None:
    """Boxes far apart, so that nothing but ranks decides; of equal ranks either may be kept."""
    torch.manual_seed(0)
    corners = torch.cartesian_prod(torch.arange(20.0), torch.arange(15.0)) * 10
    boxes, logits = torch.cat([corners, corners + 8], 1), torch.randn(5, 300)
    rule = Filter(pre_nms=pre_nms, post_nms=300, iou=0.7, min_size=1, crowd=0)
    _, rows = _best_of_any_class(boxes[None], logits, (200, 200), rule)
    ranks = logits.argsort(dim=1, descending=True).argsort(dim=1).amin(0)
    assert torch.equal(ranks[rows].sort().values, ranks.sort().values[:pre_nms])
    assert len(rows.unique()) == len(rows) == min(pre_nms, 300)


def test_a_union_gives_every_class_its_best_box() -> None:
    """Even a class whose logits are low all over."""
    output = rpn_output(TINY, [(96, 128)], [[0], [1]])
    output = output._replace(logits=output.logits - torch.tensor([0.0, 50.0])[None, :, None])
    best = propose(output, [(96, 128)], RULE._replace(post_nms=1), union=False).boxes[0, :, 0]
    union = propose(output, [(96, 128)], RULE, union=True).boxes[0, 0]
    assert (box_iou(best, union).max(1).values > 0.7).all()


def test_boxes_that_are_too_small_or_not_finite_go() -> None:
    boxes = torch.tensor([[0.0, 0, 0.5, 50], [0, 0, float("nan"), 9], [0, 0, 20, 20]])
    scores = torch.tensor([3.0, 2, 1])
    kept, rows = best_boxes(boxes, scores, scores, (64, 64), RULE)
    assert rows.tolist() == [2]
    assert kept.tolist() == [[0, 0, 20, 20]]


def crowd_of(logits: torch.Tensor) -> RPNOutput:
    """A row of boxes that do not touch, with these logits (K, n)."""
    left = 20.0 * torch.arange(logits.shape[1])
    anchors = torch.stack([left, left * 0, left + 16, left * 0 + 16], 1)
    none = torch.zeros(1, 1, len(anchors), 4)
    return RPNOutput(logits[None], none, anchors, torch.ones(1, len(anchors), dtype=torch.bool), none)


@pytest.mark.parametrize("union", [False, True])
def test_a_crowd_keeps_all_that_are_still_good(union: bool) -> None:
    """Beyond `post_nms` (of several classes twice as many) those of an objectness of 0.1, up to `crowd`."""
    logits = torch.cat([torch.linspace(3, -2, 60), torch.full((40,), -4.0)])  # 0.1 is a logit of -2.2
    sizes, rule = [(16, 2000)], RULE._replace(post_nms=5, crowd=80)
    output = crowd_of(logits[None] if not union else torch.stack([logits, logits - 9]))
    assert propose(output, sizes, rule, union).mask.sum() == 60
    assert propose(output, sizes, rule._replace(crowd=30), union).mask.sum() == 30
    few = 10 if union else 5
    assert propose(output, sizes, rule._replace(crowd=0), union).mask.sum() == few
    quiet = crowd_of(output.logits[0] - 9)
    assert propose(quiet, sizes, rule, union).mask.sum() == few


def test_refined_boxes_of_a_crowd_stay_while_they_are_good() -> None:
    output = crowd_of(torch.full((1, 50), 4.0))
    proposals = propose(output, [(16, 2000)], RULE._replace(post_nms=50), union=False)
    quality = torch.linspace(1, 0, 50)  # times an objectness of 0.98: 47 are worth 0.05 or more
    proposals = proposals._replace(quality=quality[None, None])
    assert best_proposals(proposals, few=8, iou=0.7, crowd=400).mask.sum() == 47
    assert best_proposals(proposals, few=8, iou=0.7, crowd=20).mask.sum() == 20
    assert best_proposals(proposals, few=8, iou=0.7).mask.sum() == 8


def test_padding_short_lists() -> None:
    padded, mask = pad_rows([torch.ones(2, 4), torch.zeros(0, 4)])
    assert padded.shape == (2, 2, 4)
    assert mask.tolist() == [[True, True], [False, False]]
    assert pad_rows([torch.zeros(0, 4)])[0].shape == (1, 1, 4)
