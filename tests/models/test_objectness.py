"""Closed-form objectness: it separates, it needs no surroundings, and it reaches the RPN's logit."""

from dataclasses import replace

import pytest
import torch
from tiny_detector import TINY, make_supports, picture

from tenet.errors import ConfigError, InputError
from tenet.models.build import build_detector
from tenet.models.detector import TENET
from tenet.models.encoder import EncodedImage
from tenet.models.objectness import Background, cell_statistics, closed_form_objectness, covering_rank
from tenet.models.supports import SupportFeatures


def test_separates_two_clouds() -> None:
    positive = torch.randn(30, 6) * 0.3 + torch.tensor([1.0, 0, 0, 0, 0, 0])
    negative = torch.randn(500, 6) * 0.3
    w, b = (weights := closed_form_objectness(positive, negative))[:-1], weights[-1]
    assert (positive @ w + b > 0).float().mean() > 0.9
    assert (negative @ w + b < 0).float().mean() > 0.9


def test_scale_of_the_features_does_not_matter() -> None:
    positive, negative = torch.randn(20, 4) + 1, torch.randn(200, 4)
    small = closed_form_objectness(positive, negative)
    large = closed_form_objectness(positive * 100, negative * 100)
    assert torch.allclose(small[:-1], large[:-1] * 100, rtol=1e-3)
    assert torch.allclose(small[-1], large[-1], rtol=1e-3)


def test_background_stands_in_for_missing_negatives() -> None:
    positive, negative = torch.randn(20, 4) + 1, torch.randn(1000, 4)
    background = Background(negative.mean(0), torch.cov(negative.T, correction=0))
    known = closed_form_objectness(positive, negative)
    assumed = closed_form_objectness(positive, torch.zeros(0, 4), background)
    assert torch.allclose(known, assumed, atol=1e-3)


def test_one_positive_and_constant_features_are_finite() -> None:
    assert torch.isfinite(closed_form_objectness(torch.ones(1, 4), torch.ones(9, 4))).all()


def test_bad_input() -> None:
    with pytest.raises(InputError, match="at least one cell"):
        closed_form_objectness(torch.zeros(0, 4), torch.zeros(3, 4))
    with pytest.raises(InputError, match="neither"):
        closed_form_objectness(torch.ones(1, 4), torch.zeros(0, 4))
    with pytest.raises(InputError, match=r"\(n, q\)"):
        closed_form_objectness(torch.ones(1, 4), torch.zeros(2, 5))


@pytest.mark.parametrize("conditioning", ["attention", "none"])
@pytest.mark.parametrize("neck", [True, False])
def test_a_shot_raises_its_own_boxes(conditioning: str, neck: bool) -> None:
    """After registration the boxes that cover the shot rank higher in its own picture than before."""
    config = replace(
        TINY,
        neck=neck,
        rpn=replace(
            TINY.rpn,
            closed_form=True,
            conditioning=conditioning,
            anchor_sizes=(2.0, 4.0) if neck else (16, 32, 64),
        ),
    )
    detector = build_detector(config).eval()
    shot = torch.tensor([[30.0, 20, 65, 55]])
    scene = picture(96, 128)
    scene[:, 20:55, 30:65] = 255 - scene[:, 20:55, 30:65]
    with torch.no_grad():
        [image] = detector.encode_images([scene])
        classes = detector.encode_supports(make_supports([[0]]))
        before = rank_of(detector, image, classes, shot)
        prior = detector.fit_objectness([image], [shot], classes)
        after = rank_of(detector, image, classes._replace(closed_form=prior[None, None]), shot)
    assert after < before
    assert after <= 0.05


def test_bare_crops_take_the_background_of_training_pictures() -> None:
    config = replace(TINY, rpn=replace(TINY.rpn, closed_form=True))
    detector = build_detector(config).eval()
    with torch.no_grad():
        images = detector.encode_images([picture(96, 128, seed) for seed in range(3)])
        classes = detector.encode_supports(make_supports([[0]]))
        box = torch.tensor([[30.0, 20, 65, 55]])
        before = detector.fit_objectness(images[:1], [box], classes, bare=True)
        cells = [detector.cells(image, classes).features for image in images]
        detector.rpn.set_background(cell_statistics(torch.cat(cells)))
        after = detector.fit_objectness(images[:1], [box], classes, bare=True)
    assert detector.rpn.background.mean.any()
    assert not torch.allclose(before, after)
    assert "rpn.background_mean" in detector.state_dict()  # it travels with the weights


def test_shots_in_several_pictures() -> None:
    config = replace(TINY, rpn=replace(TINY.rpn, closed_form=True))
    detector = build_detector(config).eval()
    with torch.no_grad():
        images = detector.encode_images([picture(96, 128, seed) for seed in range(2)])
        classes = detector.encode_supports(make_supports([[0]]))
        boxes = [torch.tensor([[30.0, 20, 65, 55]]), torch.tensor([[5.0, 5, 40, 60], [70, 20, 110, 70]])]
        both = detector.fit_objectness(images, boxes, classes)
        one = detector.fit_objectness(images[:1], boxes[:1], classes)
    assert both.shape == one.shape == (detector.rpn.cell_features + 1,)
    assert not torch.allclose(both, one)


def test_closed_form_refuses_what_it_cannot_use() -> None:
    off, on = (
        build_detector(TINY).eval(),
        build_detector(replace(TINY, rpn=replace(TINY.rpn, closed_form=True))),
    )
    with torch.no_grad():
        images, classes = on.encode_images([picture()]), on.encode_supports(make_supports([[0]]))
    with pytest.raises(ConfigError, match=r"rpn\.closed_form = true"):
        off.fit_objectness(images, [torch.tensor([[0.0, 0, 9, 9]])], classes)
    with pytest.raises(InputError, match="at least one box each"):
        on.fit_objectness(images, [torch.zeros(0, 4)], classes)


def rank_of(detector: TENET, image: EncodedImage, classes: SupportFeatures, shot: torch.Tensor) -> float:
    """Rank of the best box that covers the shot, as a share of all boxes."""
    from tenet.ops import box_iou, decode_boxes

    output = detector.rpn([image.pyramid], classes.psi_rpn, classes.mask, classes.closed_form)
    boxes = decode_boxes(output.deltas[0, 0], output.anchors)
    order = output.logits[0, 0].argsort(descending=True)
    covers = box_iou(boxes, shot)[order, 0] >= 0.5
    return float(covers.float().argmax()) / len(order) if covers.any() else 1.0


def test_others_of_its_kind_do_not_stand_before_a_shot() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10], [60, 0, 70, 10]])
    shot, none = torch.tensor([60.0, 0, 70, 11]), torch.zeros(4, dtype=torch.bool)
    assert covering_rank(boxes, none, shot) == 4
    assert covering_rank(boxes, torch.tensor([True, False, True, True]), shot) == 2
    assert covering_rank(boxes, none, torch.tensor([100.0, 0, 120, 20])) == 0
    assert covering_rank(boxes[:0], none[:0], shot) == 0
