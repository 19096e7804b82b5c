"""What boxes around the shots teach: errors that are the class's own, and nothing else."""

from dataclasses import replace

import pytest
import torch
from tiny_detector import TINY, make_supports, picture
from torch import Tensor

from tenet.config import BoxQualityConfig
from tenet.errors import InputError
from tenet.models.box_fit import OUTPUTS, boxes_around, correct, fit_boxes
from tenet.models.box_quality import DELTA_SCALES, Refined, quality
from tenet.models.build import build_detector
from tenet.models.detector import TENET
from tenet.ops import box_iou, clip_boxes, decode_boxes, encode_boxes

SIZE = (200, 300)
SHOT = torch.tensor([60.0, 50, 140, 110])


def one_pass(shot: Tensor, error: Tensor, logit: float = 0.0) -> Refined:
    """A pass that would be right but for `error` (4,) in its deltas, with one feature that is always 1."""
    given = boxes_around(shot, SIZE)
    deltas = encode_boxes(shot.expand_as(given), given, DELTA_SCALES) - error
    boxes = clip_boxes(decode_boxes(deltas, given, DELTA_SCALES), SIZE)
    return Refined(given, deltas, torch.full((len(given), 2), logit), boxes, torch.ones(len(given), 1))


def test_the_pattern_is_always_the_same_and_covers_all_overlaps() -> None:
    boxes = boxes_around(SHOT, SIZE)
    assert torch.equal(boxes, boxes_around(SHOT, SIZE))
    assert (boxes[:, 2:] > boxes[:, :2]).all()
    assert (boxes >= 0).all()
    assert (boxes[:, [0, 2]] <= SIZE[1]).all()
    overlap = box_iou(boxes, SHOT[None])[:, 0]
    for low, high in ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1.0)):
        assert ((overlap >= low) & (overlap < high)).sum() >= 5


@pytest.mark.parametrize("shots", [1, 5])
def test_an_error_of_the_class_is_learned(shots: int) -> None:
    error = torch.tensor([1.0, -0.5, 0.8, 0.3])
    others = [SHOT + 7 * z for z in range(shots)]
    weights = fit_boxes([(one_pass(shot, error), shot) for shot in others], shots)
    assert weights.shape == (2, OUTPUTS)
    missed = weights[0] + weights[1]
    assert (missed[1:] / error > (0.2 if shots == 1 else 0.6)).all(), "more shots, more trust"
    assert (missed[1:] / error <= 1).all()
    test = one_pass(SHOT + 3, error)
    boxes, _ = correct(test, weights[None], (1, len(test.given)), SIZE)
    before, after = (box_iou(own, (SHOT + 3)[None]).mean() for own in (test.boxes, boxes[0]))
    assert after > before


@pytest.mark.parametrize(("logit", "error"), [(3.0, 4.0), (-2.0, 0.0)])
def test_too_much_trust_is_corrected_but_not_too_much_doubt(logit: float, error: float) -> None:
    """Boxes that are half off while the head is sure of them; and right ones that it doubts."""
    shots, wrong = [SHOT, SHOT + 9, SHOT - 9], torch.full((4,), error)
    weights = fit_boxes([(one_pass(shot, wrong, logit), shot) for shot in shots], 3)
    test = one_pass(SHOT + 3, wrong, logit)
    _, value = correct(test, weights[None], (1, len(test.given)), SIZE)
    if logit > 0:
        assert (value[0] < quality(test)).all()
    else:
        torch.testing.assert_close(value[0], quality(test))


def test_no_weights_change_nothing() -> None:
    test = one_pass(SHOT, torch.tensor([0.3, 0.3, 0.1, 0.1]), 0.4)
    boxes, value = correct(test, torch.zeros(2, 2, OUTPUTS), (1, len(test.given)), SIZE)
    for k in range(2):
        torch.testing.assert_close(boxes[k], test.boxes)
        torch.testing.assert_close(value[k], quality(test))


@pytest.fixture
def fitting() -> TENET:
    torch.manual_seed(0)
    rpn = replace(TINY.rpn, closed_form=True)
    config = replace(TINY, rpn=rpn, box_quality=BoxQualityConfig(enabled=True, fitted=True, hidden=16))
    return build_detector(config).eval()


def test_a_class_has_its_own_boxes(fitting: TENET) -> None:
    """A class that was fitted moves its boxes; one that was not is where it was without any fit."""
    images = fitting.encode_images([picture(96, 128)])
    classes = fitting.encode_supports(make_supports([[0, 1], [2]]))
    plain = fitting.match(images, classes)[0]
    weights = fitting.fit_objectness(images, [torch.tensor([[20.0, 20, 70, 60]])], classes)
    objectness, _, whole = fitting.closed_form.lengths
    assert weights.shape == (whole,)
    weights[:objectness] = 0
    fitted = fitting.match(images, classes._replace(closed_form=torch.stack([weights, 0 * weights])[None]))[0]
    assert plain.boxes[plain.labels == 1].tolist() == fitted.boxes[fitted.labels == 1].tolist()
    assert plain.boxes[plain.labels == 0].tolist() != fitted.boxes[fitted.labels == 0].tolist()
    # Features of an older bank have objectness alone.
    older = fitting.match(images, classes._replace(closed_form=torch.zeros(1, 2, objectness)))[0]
    assert older.boxes.tolist() == plain.boxes.tolist()
    with pytest.raises(InputError, match="register the class anew"):
        fitting.match(images, classes._replace(closed_form=torch.zeros(1, 2, objectness + 1)))


def test_batch_is_single(fitting: TENET) -> None:
    pictures = [picture(96, 128), picture(64, 96, seed=4)]
    classes = fitting.encode_supports(make_supports([[0, 1], [2]]))
    whole = fitting.closed_form.lengths[-1]
    classes = classes._replace(
        closed_form=torch.randn(1, 2, whole, generator=torch.Generator().manual_seed(0)) * 0.05
    )
    together = fitting.match(fitting.encode_images(pictures), classes)
    for one, alone in zip(together, pictures, strict=True):
        [single] = fitting.match(fitting.encode_images([alone]), classes)
        torch.testing.assert_close(torch.from_numpy(one.boxes), torch.from_numpy(single.boxes))
        torch.testing.assert_close(torch.from_numpy(one.scores), torch.from_numpy(single.scores))
