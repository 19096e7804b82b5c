"""Losses: what counts, what does not, and that nothing at all is well behaved."""

import pytest
import torch
from tiny_detector import make_target

from tenet.errors import InputError
from tenet.models.box_quality import Refined
from tenet.models.losses import (
    RegionLabels,
    best_iou,
    label_anchors,
    label_regions,
    quality_loss,
    relation_loss,
    rpn_loss,
)
from tenet.models.rpn import RPNOutput
from tenet.models.sampling import jitter_boxes, sample_regions

ANCHORS = torch.tensor(
    [[0.0, 0, 10, 10], [0, 0, 10, 20], [40, 40, 50, 50], [42, 42, 52, 52], [80, 80, 90, 90]]
)
NONE = torch.zeros(0, 4)
SETTINGS = {
    "batch": 8,
    "positive_share": 0.5,
    "iou": (0.3, 0.7),
    "negative_branch": False,
    "class_agnostic": False,
}


def output(classes: int = 1, logit: float = 0.0) -> RPNOutput:
    n = len(ANCHORS)
    logits = torch.full((1, classes, n), logit, requires_grad=True)
    deltas = torch.zeros(1, classes, n, 4, requires_grad=True)
    return RPNOutput(
        logits, deltas, ANCHORS, torch.ones(1, n, dtype=torch.bool), torch.zeros(1, classes, n, 1)
    )


def test_anchors_are_labelled_by_iou() -> None:
    labels, row = label_anchors(ANCHORS, torch.tensor([[0.0, 0, 10, 10]]), NONE, (0.3, 0.7))
    assert labels.tolist() == [1, -1, 0, 0, 0]
    assert row[0] == 0


def test_every_object_gets_an_anchor() -> None:
    labels, row = label_anchors(ANCHORS, torch.tensor([[0.0, 0, 10, 10], [43, 43, 60, 60]]), NONE, (0.3, 0.7))
    assert labels[3] == 1
    assert row[3] == 1


def test_a_good_anchor_is_not_lent_to_a_worse_object() -> None:
    """The only anchor near both: it stays with the object that it fits."""
    anchors = torch.tensor([[0.0, 0, 95, 95]])
    labels, row = label_anchors(anchors, torch.tensor([[0.0, 0, 50, 50], [0, 0, 100, 100]]), NONE, (0.3, 0.7))
    assert labels.tolist() == [1]
    assert row.tolist() == [1]


def test_ignored_objects_teach_nothing() -> None:
    labels, _ = label_anchors(ANCHORS, NONE, torch.tensor([[40.0, 40, 50, 50]]), (0.3, 0.7))
    assert labels.tolist() == [0, 0, -1, -1, 0]


def test_rpn_loss_falls_as_the_answer_is_approached() -> None:
    target = [make_target([[0, 0, 10, 10]], [0])]
    right = output()
    with torch.no_grad():
        right.logits.copy_(torch.tensor([[[9.0, 0, -9, -9, -9]]]))
    good, bad = rpn_loss(right, target, **SETTINGS), rpn_loss(output(), target, **SETTINGS)  # type: ignore[arg-type]
    assert good["rpn_objectness"] < 0.01 < bad["rpn_objectness"]


def test_absent_classes_teach_only_when_asked() -> None:
    target = [make_target([], [])]
    silent = rpn_loss(output(), target, **SETTINGS)  # type: ignore[arg-type]
    assert silent["rpn_objectness"] == 0
    asked = rpn_loss(output(), target, **{**SETTINGS, "negative_branch": True})  # type: ignore[arg-type]
    assert asked["rpn_objectness"] > 0
    sum(asked.values()).backward()  # type: ignore[union-attr]


def test_class_agnostic_takes_all_objects() -> None:
    target = [make_target([[0, 0, 10, 10], [40, 40, 50, 50]], [0, -1])]
    out = output()
    with torch.no_grad():
        out.logits.copy_(torch.tensor([[[9.0, 0, 9, 9, -9]]]))
    agnostic = rpn_loss(out, target, **{**SETTINGS, "class_agnostic": True})  # type: ignore[arg-type]
    of_class = rpn_loss(out, target, **SETTINGS)  # type: ignore[arg-type]
    assert agnostic["rpn_objectness"] < of_class["rpn_objectness"]


def test_sampled_regions_hold_the_objects() -> None:
    wanted = torch.tensor([[5.0, 5, 15, 15]])
    regions = sample_regions(ANCHORS, wanted, count=4, share=0.5, iou=0.5)
    assert len(regions) == 4
    assert (best_iou(regions, wanted)[0] == 1).any()
    assert sample_regions(NONE, NONE, count=4, share=0.5, iou=0.5).shape == (0, 4)


def test_region_labels() -> None:
    boxes = ANCHORS[None, None]
    mask = torch.ones(1, 1, 5, dtype=torch.bool)
    target = [
        make_target([[0, 0, 10, 10], [40, 40, 50, 50], [80, 80, 90, 90]], [0, 1, 0], [False, False, True])
    ]
    labels = label_regions(boxes, mask, target, 2, 0.5, exclusive=False)
    assert labels.positive[0].tolist() == [
        [True, True, False, False, False],
        [False, False, True, False, False],
    ]
    assert labels.counts[0, 0].tolist() == [True, True, True, True, False]
    assert labels.present.tolist() == [[True, True]]


def test_an_exclusive_region_is_of_the_class_that_it_overlaps_best() -> None:
    boxes = torch.tensor([[[[0.0, 0, 10, 10]]]])
    target = [make_target([[0, 0, 10, 18], [0, 0, 10, 10.2]], [0, 1])]  # IoU 0.56 and 0.98
    mask = torch.ones(1, 1, 1, dtype=torch.bool)
    assert label_regions(boxes, mask, target, 2, 0.5, exclusive=False).positive.tolist() == [[[True], [True]]]
    assert label_regions(boxes, mask, target, 2, 0.5, exclusive=True).positive.tolist() == [[[False], [True]]]


def test_quality_counts_the_background_beside_an_ignored_object() -> None:
    """A far-away box to ignore changes nothing for the others; boxes upon it teach nothing."""
    boxes = torch.tensor([[0.0, 0, 10, 10], [30, 30, 40, 40], [60, 60, 70, 70]])

    def gradient(ignored: list[float]) -> torch.Tensor:
        logits = torch.zeros(3, 2, requires_grad=True)
        refined = Refined(boxes, torch.zeros(3, 4), logits, boxes, torch.zeros(3, 1))
        target = make_target([[0, 0, 10, 10], ignored], [0, 0], [False, True])
        quality_loss([refined], target)["quality_iou"].backward()
        assert logits.grad is not None
        return logits.grad[:, 0]

    assert (gradient([200.0, 200, 220, 220]) != 0).tolist() == [True, True, True]
    assert (gradient([30.0, 30, 40, 40]) != 0).tolist() == [True, False, True]


def labels_of(positive: list[list[int]], present: list[bool]) -> RegionLabels:
    flags = torch.tensor([positive], dtype=torch.bool)
    return RegionLabels(
        flags,
        torch.ones_like(flags),
        torch.tensor([present]),
        torch.rand(*flags.shape, 4) + torch.tensor([0, 0, 9, 9]),
    )


@pytest.mark.parametrize("competing", [False, True])
def test_relation_loss_prefers_the_right_answer(competing: bool) -> None:
    labels = labels_of([[1, 0, 0, 0], [0, 0, 0, 0]], [True, False])
    regions = torch.tensor([0.0, 0, 9, 9]).expand(1, 1, 4, 4)
    right = torch.tensor([[[6.0, -6, -6, -6], [-6, -6, -6, -6]]])
    settings = {"hard_ratio": (1, 2, 1), "competing": competing}
    good = relation_loss(right, torch.zeros(1, 2, 4, 4), regions, labels, **settings)  # type: ignore[arg-type]
    bad = relation_loss(-right, torch.zeros(1, 2, 4, 4), regions, labels, **settings)  # type: ignore[arg-type]
    assert good["head_class"] < 0.05
    assert bad["head_class"] > 1


def test_hard_subset_is_one_two_one() -> None:
    """One foreground, the two worst backgrounds of the right class, the worst of the wrong class."""
    labels = labels_of([[1, 0, 0, 0], [0, 0, 0, 0]], [True, False])
    logits = torch.tensor([[[0.0, 3, 2, -9], [5, -9, -9, -9]]])
    loss = relation_loss(
        logits,
        torch.zeros(1, 2, 4, 4),
        ANCHORS[None, None, :4],
        labels,
        hard_ratio=(1, 2, 1),
        competing=False,
    )["head_class"]
    chosen = torch.nn.functional.softplus(torch.tensor([0.0, 3, 2, 5]))
    assert torch.allclose(loss, chosen.mean())


@pytest.mark.parametrize("competing", [False, True])
def test_nothing_to_learn_from(competing: bool) -> None:
    logits = torch.zeros(1, 2, 3, requires_grad=True)
    deltas = torch.zeros(1, 2, 3, 4, requires_grad=True)
    nothing = torch.zeros(1, 2, 3, dtype=torch.bool)
    labels = RegionLabels(nothing, nothing, torch.zeros(1, 2, dtype=torch.bool), torch.zeros(1, 2, 3, 4))
    losses = relation_loss(
        logits, deltas, torch.zeros(1, 1, 3, 4), labels, hard_ratio=(1, 2, 1), competing=competing
    )
    total = sum(losses.values())
    assert total == 0
    total.backward()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("boxes", "ways", "words"),
    [
        ([[5, 5, 5, 9]], [0], "x1 < x2"),
        ([[5, 5, float("nan"), 9]], [0], "finite"),
        ([[5, 5, 8, 9]], [2], "from -1 to 1"),
        ([[5, 5, 8, 9]], [0, 1], "one for each box"),
    ],
)
def test_bad_targets(boxes: list[list[float]], ways: list[int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_target(boxes, ways).check(2)


def test_jittered_boxes_lie_around_their_objects() -> None:
    torch.manual_seed(0)
    objects = torch.tensor([[100.0, 100, 200, 180], [10, 10, 60, 40]])
    boxes = jitter_boxes(objects, 100, (300, 400))
    assert 90 <= len(boxes) <= 100
    near = best_iou(boxes, objects)[0]
    assert near.mean() > 0.4
    assert near.std() > 0.1
    assert boxes.min() >= 0
    assert (boxes[:, 2:] <= torch.tensor([400.0, 300])).all()
    assert len(jitter_boxes(NONE, 100, (300, 400))) == 0
