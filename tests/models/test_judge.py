"""Learning from sampled cells = learning from all of them."""

from dataclasses import replace

import torch
from tiny_detector import TINY, make_supports, make_target, picture

from tenet.config import AttentionConfig, ModelConfig
from tenet.models.build import build_detector
from tenet.models.losses import _focal_loss, _half_hardest, rpn_loss

STILL = AttentionConfig(blocks=1, dropout=0.0)
BEFORE = replace(TINY, rpn=replace(TINY.rpn, conv="before", attention=STILL, negative_branch=True))


def losses_and_gradient(config: ModelConfig, dense: bool) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    detector = build_detector(config).train()
    images = detector.encode_images([picture(64, 96, seed=1), picture(96, 64, seed=2)])
    classes = detector.encode_supports(make_supports([[0], [1, 2]]))
    targets = [make_target([[8, 8, 40, 40]], [0]), make_target([[10, 20, 50, 80], [0, 0, 20, 20]], [1, -1])]
    pyramids = [image.pyramid for image in images]
    if dense:  # as at test time, where every cell is judged at once, but with a gradient
        detector.rpn.training = False
    output = detector.rpn(pyramids, classes.psi_rpn, classes.mask, None)
    detector.rpn.training = True
    assert (output.shared is None) == dense
    judge = None
    if output.shared is not None:
        shared = output.shared

        def judge(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return detector.rpn.judge(shared, classes.psi_rpn, classes.mask, rows)

    torch.manual_seed(1)
    settings = {"batch": 32, "positive_share": 0.5, "iou": (0.3, 0.5), "negative_branch": True}
    losses = rpn_loss(output, targets, **settings, class_agnostic=False, focal=True, judge=judge)  # type: ignore[arg-type]
    torch.stack(list(losses.values())).sum().backward()
    gradient = {name: p.grad for name, p in detector.named_parameters() if p.grad is not None}
    return {name: value.item() for name, value in losses.items()}, gradient


def test_sampled_cells_give_the_losses_and_gradients_of_all() -> None:
    sampled, own = losses_and_gradient(BEFORE, dense=False)
    dense, other = losses_and_gradient(BEFORE, dense=True)
    for name, value in dense.items():
        assert abs(sampled[name] - value) < 1e-4 * max(1, abs(value)), name
    assert own.keys() == other.keys()
    for name, gradient in other.items():
        assert torch.allclose(own[name], gradient, rtol=1e-3, atol=1e-5), name


def test_easy_answers_count_little() -> None:
    logits, labels = torch.tensor([6.0, 0.0, -6.0]), torch.tensor([1.0, 1.0, 1.0])
    easy, doubtful, wrong = (_focal_loss(logits[i : i + 1], labels[i : i + 1]) for i in range(3))
    assert easy < 1e-5 < doubtful < wrong


def test_half_of_the_negatives_are_the_hardest() -> None:
    logits = torch.tensor([0.0, 9, 8, 7, 1, 2, 3, 4])
    labels = torch.tensor([0.0, 1, 0, -1, 0, 0, 0, 0])
    chosen = _half_hardest(logits, labels, torch.tensor([0, 4, 5, 6]))
    assert {2, 7} <= set(chosen.tolist())
    assert (labels[chosen] == 0).all()
    assert len(set(chosen.tolist())) == len(chosen)
