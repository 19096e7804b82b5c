"""Which cell answers for which object, what that teaches, and what classes have in common."""

from dataclasses import replace

import pytest
import torch
from tiny_detector import TINY, make_supports, make_target, picture
from torch import Tensor

from tenet.config import AttentionConfig, RPNConfig
from tenet.errors import ConfigError
from tenet.models.build import build_detector
from tenet.models.common_objectness import PART, assign_cells, common_loss
from tenet.models.detector import TENET
from tenet.models.rpn import RPNOutput
from tenet.ops import encode_boxes

COMMON = replace(
    TINY,
    neck=True,
    rpn=replace(
        TINY.rpn,
        conv="before",
        common=True,
        closed_form=True,
        anchor_sizes=(4.0,),
        anchor_ratios=(1.0,),
        negative_branch=True,
        loss="focal",
        attention=AttentionConfig(blocks=1, dropout=0.0),
    ),
    head=replace(TINY.head, regions="union"),
)
NONE = torch.zeros(0, 4)


def anchors() -> Tensor:
    """Cells of strides 8, 16 and 32 over a picture of 128 × 128, anchors four strides wide."""
    rows = []
    for stride in (8, 16, 32):
        at = (torch.arange(128 // stride) + 0.5) * stride
        y, x = torch.meshgrid(at, at, indexing="ij")
        half = 2.0 * stride
        rows.append(torch.stack([x - half, y - half, x + half, y + half], -1).flatten(0, 1))
    return torch.cat(rows)


def output(logit: float = 0.0, deltas: Tensor | None = None) -> RPNOutput:
    cells = anchors()
    logits = torch.full((1, 1, len(cells)), logit, requires_grad=True)
    moves = torch.zeros(1, 1, len(cells), 4) if deltas is None else deltas
    real = torch.ones(1, len(cells), dtype=torch.bool)
    return RPNOutput(
        logits, moves.requires_grad_(), cells, real, torch.zeros(1, 1, len(cells), 1), common=logits
    )


@pytest.mark.parametrize("side", [3.0, 12, 40, 90, 127])
def test_every_object_has_a_cell_of_its_size(side: float) -> None:
    row, weight = assign_cells(anchors(), torch.tensor([[0.0, 0, side, side]]) + 0.5, NONE)
    mine = anchors()[row == 0]
    assert len(mine) > 0
    assert (weight[row == 0] == 1).all()
    sides = mine[:, 2] - mine[:, 0]
    assert (sides == 32).all() if side < 30 else ((sides / side).log2().abs() <= 0.76).all()


def test_of_two_objects_a_cell_answers_for_the_smaller() -> None:
    boxes = torch.tensor([[20.0, 20, 68, 68], [32, 32, 60, 60]])
    row, _ = assign_cells(anchors(), boxes, NONE)
    assert set(row.tolist()) == {-1, 0, 1}
    swapped, _ = assign_cells(anchors(), boxes.flip(0), NONE)
    assert torch.equal(torch.where(row >= 0, 1 - row, -1), swapped)


def test_parts_count_little_and_ignored_boxes_not_at_all() -> None:
    cells, whole = anchors(), torch.tensor([[0.0, 0, 128, 128]])
    targets = assign_cells(cells, whole, NONE)
    inside = (cells[:, :2] >= 0).all(1) & (cells[:, 2:] <= 128).all(1) & (cells[:, 2] - cells[:, 0] == 32)
    assert (targets.weight[inside] == PART).all()
    assert (targets.labels[inside] == -1).all()
    ignored = assign_cells(cells, NONE, whole)
    assert (ignored.weight[inside] == 0).all()
    assert (ignored.row == -1).all()


def test_nothing_in_the_picture_makes_every_cell_a_negative() -> None:
    targets = assign_cells(anchors(), NONE, NONE)
    assert (targets.labels == 0).all()
    losses = common_loss(output(), [make_target([], [])])
    assert losses["common_box"] == 0
    sum(losses.values()).backward()  # type: ignore[union-attr]


def test_the_right_boxes_cost_nothing() -> None:
    target = make_target([[20, 20, 60, 70]], [-1])
    cells = anchors()
    right = encode_boxes(target.boxes.expand(len(cells), 4), cells)[None, None]
    assert common_loss(output(deltas=right), [target])["common_box"] < 1e-5
    assert common_loss(output(), [target])["common_box"] > 0.1


def test_the_logit_learns_the_iou_of_the_cells_own_box() -> None:
    """The loss is least where σ(logit) is the IoU of each cell's box: 1 if boxes are right, 0 elsewhere."""
    target = make_target([[20, 20, 60, 70]], [-1])
    cells = anchors()
    row, _ = assign_cells(cells, target.boxes, NONE)
    right = encode_boxes(target.boxes.expand(len(cells), 4), cells)[None, None]
    found = output(deltas=right)
    best = torch.where(row >= 0, 12.0, -12.0)[None, None]
    assert common_loss(found._replace(common=best), [target])["common_objectness"] < 1e-4
    assert common_loss(found, [target])["common_objectness"] > 0.01


def test_padding_is_not_learned_from() -> None:
    target = make_target([[20, 20, 60, 70]], [-1])
    one = common_loss(output(), [target])
    found = output()
    more = torch.cat([found.anchors, found.anchors[:5]])
    longer = found._replace(
        anchors=more,
        common=torch.cat([found.logits, torch.full((1, 1, 5), 9.0)], 2),
        deltas=torch.cat([found.deltas, torch.ones(1, 1, 5, 4)], 2),
        real=torch.arange(len(more))[None] < len(found.anchors),
    )
    for name, value in common_loss(longer, [target]).items():
        assert torch.allclose(value, one[name]), name


def seen(detector: TENET, classes: list[list[int]]) -> tuple[RPNOutput, Tensor, Tensor]:
    image = detector.encode_images([picture(96, 128)])[0]
    supports = detector.encode_supports(make_supports(classes))
    found = detector.rpn([image.pyramid], supports.psi_rpn, supports.mask, None)
    return found, supports.psi_rpn, supports.mask


def test_boxes_are_common_and_logits_are_not() -> None:
    torch.manual_seed(0)
    detector = build_detector(COMMON).eval()
    torch.nn.init.normal_(detector.rpn.objectness.weight)
    found, _, _ = seen(detector, [[0], [1, 2]])
    assert found.common is not None
    assert found.deltas.shape[1] == found.common.shape[1] == 1
    assert found.logits.shape[1] == 2
    assert not torch.allclose(found.logits[:, 0], found.logits[:, 1], atol=1e-3)
    alone, _, _ = seen(detector, [[0]])
    assert torch.allclose(alone.logits[:, 0], found.logits[:, 0], atol=1e-5)


def test_a_class_learns_what_it_adds_and_leaves_the_common_part() -> None:
    """`judge` and the common logit are the logit; the class's loss has no gradient for the common part."""
    torch.manual_seed(0)
    detector = build_detector(COMMON).train()
    found, psi, mask = seen(detector, [[0], [1, 2]])
    assert found.shared is not None
    assert found.common is not None
    rows = torch.tensor([[0, 0, 3], [0, 1, 3], [0, 1, 40]])
    added, _ = detector.rpn.judge(found.shared, psi, mask, rows)
    whole = added + found.common[rows[:, 0], 0, rows[:, 2]]
    assert torch.allclose(whole, found.logits[rows[:, 0], rows[:, 1], rows[:, 2]], atol=1e-5)
    assert added.requires_grad
    assert not found.logits.requires_grad


def test_training_steps_lower_the_losses() -> None:
    torch.manual_seed(0)
    detector = build_detector(COMMON).train()
    optimizer = torch.optim.AdamW(detector.parameters(), lr=2e-3)
    images, supports = [picture(96, 128)], make_supports([[0], [1, 2]])
    targets = [make_target([[10, 10, 60, 60], [70, 30, 110, 90]], [0, -1])]
    history = []
    for _ in range(25):
        torch.manual_seed(1)
        _, losses = detector(images, supports, targets)
        history.append({name: float(value.detach()) for name, value in losses.items()})
        optimizer.zero_grad()
        torch.stack(list(losses.values())).sum().backward()
        optimizer.step()
    assert "rpn_box" not in history[0]  # boxes are learned in common
    for name in ("common_box", "rpn_objectness"):
        assert history[-1][name] < 0.8 * history[0][name], name


@pytest.mark.parametrize("negative_branch", [True, False])
def test_the_names_of_losses_do_not_depend_on_what_is_in_a_picture(negative_branch: bool) -> None:
    config = replace(COMMON, rpn=replace(COMMON.rpn, negative_branch=negative_branch))
    detector = build_detector(config).train()
    images, supports = [picture(96, 128)], make_supports([[0], [1, 2]])
    targets = [make_target([[10, 10, 60, 60]], [0]), make_target([[10, 10, 60, 60]], [-1])]
    names = [set(detector(images, supports, [target])[1]) for target in targets]
    assert names[0] == names[1]


@pytest.mark.parametrize(
    "wrong", [{"conv": "after"}, {"anchor_ratios": (0.5, 1.0)}, {"anchor_sizes": (2.0, 4.0)}]
)
def test_what_cannot_be_common_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"rpn\.common"):
        replace(COMMON.rpn, **wrong)  # type: ignore[arg-type]
    assert RPNConfig().common is False


def test_cells_that_meet_no_class_change_nothing_for_those_that_do() -> None:
    """`judged` of at least all cells is the same as all; of fewer, the best keep their logits."""
    torch.manual_seed(0)
    whole = build_detector(COMMON).eval()
    images = whole.encode_images([picture(64, 96), picture(48, 64)])
    classes = whole.encode_supports(make_supports([[2, 1], [1, 2]]))
    pyramids = [image.pyramid for image in images]

    def look(judged: int) -> Tensor:
        whole.rpn.judged = judged
        with torch.no_grad():
            return whole.rpn(pyramids, classes.psi_rpn, classes.mask, None).logits

    every = look(0)
    assert torch.equal(look(every.shape[2]), every)
    few = look(10)
    located = whole.rpn.locate(pyramids)
    assert located.common is not None
    best = (
        located.common.masked_fill(~located.real.unsqueeze(1), -torch.inf).topk(10).indices.expand(2, 2, -1)
    )
    torch.testing.assert_close(few.gather(2, best), every.gather(2, best))
    added = few - located.common
    rest = torch.ones_like(few, dtype=torch.bool).scatter(2, best, False)
    least = added.gather(2, best).amin(-1, keepdim=True).expand_as(added)
    torch.testing.assert_close(added[rest], least[rest])
