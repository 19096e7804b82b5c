"""Box arithmetic as laws."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tenet.errors import InputError
from tenet.ops import (
    box_area,
    box_iou,
    boxes,
    clip_boxes,
    decode_boxes,
    encode_boxes,
    enlarge_boxes,
    nms,
    paired_giou,
    paired_iou,
)


def random_boxes(n: int, seed: int = 0, extent: float = 100.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(n, 2, generator=generator) * extent
    return torch.cat([corner, corner + 1 + torch.rand(n, 2, generator=generator) * extent / 2], 1)


def greedy_nms(all_boxes: Tensor, scores: Tensor, threshold: float) -> list[int]:
    """The rule itself, one box at a time."""
    kept: list[int] = []
    for i in scores.argsort(descending=True, stable=True).tolist():
        if all(box_iou(all_boxes[i : i + 1], all_boxes[j : j + 1]).item() <= threshold for j in kept):
            kept.append(i)
    return kept


def test_iou_of_known_boxes() -> None:
    a = torch.tensor([[0.0, 0, 10, 10]])
    others = torch.tensor([[0.0, 0, 10, 10], [5, 0, 15, 10], [10, 0, 20, 10], [2, 2, 4, 4], [3, 3, 3, 9]])
    assert torch.allclose(box_iou(a, others), torch.tensor([[1, 1 / 3, 0, 0.04, 0]]))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_iou_is_symmetric_and_bounded(seed: int) -> None:
    a, b = random_boxes(5, seed), random_boxes(4, seed + 1)
    iou = box_iou(a, b)
    assert torch.allclose(iou, box_iou(b, a).T)
    assert ((iou >= 0) & (iou <= 1)).all()
    assert torch.allclose(paired_iou(a[:4], b), iou[:4].diagonal())


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_decode_undoes_encode(seed: int) -> None:
    own, anchors = random_boxes(8, seed), random_boxes(8, seed + 1)
    for scales in ((1.0, 1.0), (0.1, 0.2)):
        assert torch.allclose(
            decode_boxes(encode_boxes(own, anchors, scales), anchors, scales), own, atol=1e-3
        )


def test_generalised_iou_tells_boxes_apart_that_do_not_touch() -> None:
    box = torch.tensor([0.0, 0, 10, 10])
    assert paired_giou(box, box) == 1
    near, far = torch.tensor([12.0, 0, 22, 10]), torch.tensor([90.0, 0, 100, 10])
    assert torch.isclose(paired_giou(box, near), torch.tensor(-2 / 22))
    assert torch.isclose(paired_giou(box, far), torch.tensor(-0.8))
    inside = torch.tensor([2.0, 2, 8, 8])
    assert torch.isclose(paired_giou(box, inside), paired_iou(box, inside))
    moving = far.clone().requires_grad_()
    paired_giou(box, moving).backward()
    assert moving.grad is not None
    assert moving.grad.abs().sum() > 0


def test_decode_cannot_overflow() -> None:
    out = decode_boxes(torch.full((1, 4), 1e4), random_boxes(1))
    assert torch.isfinite(out).all()


def test_clip_and_enlarge() -> None:
    box = torch.tensor([[-5.0, 10, 30, 50]])
    assert clip_boxes(box, (40, 20)).tolist() == [[0, 10, 20, 40]]
    assert enlarge_boxes(torch.tensor([[0.0, 0, 10, 20]]), 1.5).tolist() == [[-2.5, -5, 12.5, 25]]
    assert box_area(torch.tensor([[3.0, 3, 1, 9]])).item() == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 60), st.sampled_from([0.1, 0.5, 0.7, 1.0]))
def test_nms_is_greedy(seed: int, n: int, threshold: float) -> None:
    own = random_boxes(n, seed, 40)
    scores = (torch.rand(n, generator=torch.Generator().manual_seed(seed)) * 10).round() / 10  # with ties
    assert nms(own, scores, threshold).tolist() == greedy_nms(own, scores, threshold)


def test_nms_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    own, scores = random_boxes(200, 3, 40), torch.rand(200)
    whole = nms(own, scores, 0.3)
    monkeypatch.setattr(boxes, "NMS_BLOCK", 7)
    assert torch.equal(nms(own, scores, 0.3), whole)
    assert torch.equal(nms(own, scores, 0.3, limit=5), whole[:5])


def test_nms_keeps_groups_apart() -> None:
    own = torch.tensor([[0.0, 0, 10, 10]] * 4)
    scores = torch.tensor([0.1, 0.4, 0.3, 0.2])
    assert nms(own, scores, 0.5, torch.tensor([0, 0, 1, 1])).tolist() == [1, 2]


def test_nms_of_nothing() -> None:
    assert nms(torch.zeros(0, 4), torch.zeros(0), 0.5).tolist() == []


def test_nms_refuses_wrong_shapes() -> None:
    with pytest.raises(InputError, match=r"\(n, 4\)"):
        nms(torch.zeros(3, 5), torch.zeros(3), 0.5)
    with pytest.raises(InputError, match="scores"):
        nms(torch.zeros(3, 4), torch.zeros(2), 0.5)
