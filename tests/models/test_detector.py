"""Laws of the whole detector, in the paper's configuration and in the one that ships."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_detector import TINY, make_supports, make_target, picture, shrink

from tenet.config import BoxQualityConfig, HeadConfig, ModelConfig
from tenet.errors import ConfigError, InputError, WeightsError
from tenet.models.build import build_detector
from tenet.models.detector import TENET
from tenet.models.proposals import Proposals, score
from tenet.models.supports import SupportFeatures, Supports, most_alike, stack_classes
from tenet.ops import box_iou
from tenet.presets import ANCESTORS, tenet_lite
from tenet.structures import Detections

SHIPPED = shrink(tenet_lite("lite0"))
CONFIGS: dict[str, ModelConfig] = {
    "paper": TINY,
    "per_region": replace(TINY, encoder=replace(TINY.encoder, regions="per_region")),
    "neck": replace(TINY, neck=True, rpn=replace(TINY.rpn, anchor_sizes=(4.0,))),
    "box_quality": replace(TINY, box_quality=BoxQualityConfig(enabled=True, channels=8, hidden=16)),
    "cosine_prior": replace(TINY, head=replace(TINY.head, cosine_prior=True)),
    **{name: shrink(change(TINY)) for name, change in ANCESTORS.items()},
}


def make(config: ModelConfig) -> TENET:
    torch.manual_seed(0)
    detector = build_detector(config).eval()
    for parameter in detector.parameters():  # zero-initialised parts take part too
        if parameter.requires_grad and not parameter.any():
            torch.nn.init.normal_(parameter, std=0.05)
    return detector


@torch.no_grad()
def detect(detector: TENET, pictures: list[torch.Tensor], supports: Supports) -> list[Detections]:
    return detector(pictures, supports)[0]


def same(a: Detections, b: Detections, labels: bool = True) -> None:
    assert len(a) == len(b)
    # Equal scores may change places: compare as sets, by rounding and sorting.
    rows = [
        np.column_stack([x.boxes.round(2), x.scores.round(4), x.labels if labels else x.labels * 0])
        for x in (a, b)
    ]
    ordered = [r[np.lexsort(r.T)] for r in rows]
    np.testing.assert_allclose(ordered[0], ordered[1], atol=0.03)


@pytest.mark.parametrize("name", [*CONFIGS, "shipped"])
def test_a_batch_is_its_pictures_one_by_one(name: str) -> None:
    detector = make(CONFIGS.get(name, SHIPPED))
    pictures = [picture(96, 128, 1), picture(64, 64, 2), picture(96, 128, 3)]
    supports = make_supports([[0, 1], [2]])
    together = detect(detector, pictures, supports)
    assert sum(map(len, together)) > 0
    for one, found in zip(pictures, together, strict=True):
        same(detect(detector, [one], supports)[0], found)


@pytest.mark.parametrize("name", CONFIGS)
def test_classes_at_once_are_classes_one_by_one(name: str) -> None:
    detector = make(replace(CONFIGS[name], max_detections=1000))
    scene, classes = picture(96, 128), [[0, 1], [2], [3, 4, 5]]
    together = detect(detector, [scene], make_supports(classes))[0]
    for k, shots in enumerate(classes):
        alone = detect(detector, [scene], make_supports(classes)._replace(rows=torch.tensor([[shots]])))[0]
        mine = together.labels == k
        part = Detections(
            together.boxes[mine], together.scores[mine], together.labels[mine], together.shots[mine]
        )
        same(alone, part, labels=False)


@pytest.mark.parametrize("name", [*CONFIGS, "shipped"])
def test_order_of_shots_does_not_matter(name: str) -> None:
    detector = make(CONFIGS.get(name, SHIPPED))
    scene = picture(96, 128)
    first = detect(detector, [scene], make_supports([[0, 1, 2], [3]]))[0]
    turned = make_supports([[0, 1, 2], [3]])._replace(rows=torch.tensor([[[2, -1, 0, 1], [-1, 3, -1, -1]]]))
    same(detect(detector, [scene], turned)[0], first)


@pytest.mark.parametrize("name", ["paper", "shipped"])
def test_repeating_a_shot_changes_nothing(name: str) -> None:
    detector = make(CONFIGS.get(name, SHIPPED))
    scene = picture(96, 128)
    once = detect(detector, [scene], make_supports([[0], [1]]))[0]
    same(detect(detector, [scene], make_supports([[0, 0, 0], [1, 1]]))[0], once)


@pytest.mark.parametrize("name", [n for n in CONFIGS if n != "qsam"])
def test_one_shot_discriminates(name: str) -> None:
    """For the same regions two classes of one shot each differ by more than a rounding."""
    detector = make(CONFIGS[name])
    with torch.no_grad():
        image = detector.encode_images([picture(96, 128)])
        classes = detector.encode_supports(make_supports([[0], [1]]))
        boxes = torch.rand(1, 1, 20, 4) * 40 + torch.tensor([0.0, 0, 45, 45])
        logits = detector._relate(detector._describe(image, boxes), classes).logits[0]
    assert (logits[0] - logits[1]).abs().mean() > 0.02 * logits.std()


def test_the_best_shot_is_named() -> None:
    """A region that is one of the shots names that shot."""
    detector = make(TINY)
    scene = picture(96, 128, 7)
    supports = make_supports([[0, 1, 2]])
    crops = [*supports.crops[:2], scene]
    boxes = supports.boxes.clone()
    boxes[2] = torch.tensor([0.0, 0, 128, 96])
    with torch.no_grad():
        image = detector.encode_images([scene])
        classes = detector.encode_supports(Supports(crops, boxes, supports.rows))
        regions = detector._describe(image, torch.tensor([[[[0.0, 0, 128, 96], [1, 1, 127, 94]]]]))
        assert most_alike(regions.phi, classes).tolist() == [[[2, 2]]]


def test_saved_classes_detect_as_fresh_ones() -> None:
    """Through numpy and back, classes taken apart and stacked in another order."""
    detector = make(SHIPPED)
    scene, supports = picture(96, 128), make_supports([[0, 1], [2], [3, 4, 5]])
    with torch.no_grad():
        features = detector.encode_supports(supports)
        classes = [features.to_class(k) for k in range(3)]
        assert [len(c) for c in classes] == [2, 1, 3]
        encoded = detector.encode_images([scene])
        fresh, saved = (
            detector.match(encoded, features)[0],
            detector.match(encoded, stack_classes(classes))[0],
        )
    same(fresh, saved)


def test_priors_travel_with_their_class() -> None:
    detector = make(SHIPPED)
    with torch.no_grad():
        features = detector.encode_supports(make_supports([[0], [1]]))
    prior = torch.randn(1, 2, 5)
    classes = [features._replace(closed_form=prior).to_class(0), features.to_class(1)]
    stacked = stack_classes(classes)
    assert stacked.closed_form is not None
    assert torch.equal(stacked.closed_form[0, 0], prior[0, 0])
    assert not stacked.closed_form[0, 1].any()


@pytest.mark.parametrize("name", [*CONFIGS, "shipped"])
def test_no_proposal_gives_an_empty_result(name: str) -> None:
    config = CONFIGS.get(name, SHIPPED)
    detector = make(replace(config, rpn=replace(config.rpn, min_size=1e6)))
    found = detect(detector, [picture(64, 64)], make_supports([[0], [1]]))[0]
    assert len(found) == 0
    assert found.boxes.shape == (0, 4)


def test_no_picture_gives_no_result() -> None:
    detector = make(TINY)
    assert detect(detector, [], make_supports([[0]])) == []


@pytest.mark.parametrize("name", [*CONFIGS, "shipped"])
@pytest.mark.parametrize("boxes", [[], [[10, 10, 60, 70], [70, 20, 110, 80]]], ids=["no target", "targets"])
def test_a_training_step(name: str, boxes: list[list[float]]) -> None:
    """Every learning parameter that takes part gets a finite gradient, with and without objects."""
    detector = make(CONFIGS.get(name, SHIPPED)).train()
    targets = [make_target(boxes, [0, -1][: len(boxes)]), make_target([], [])]
    supports = make_supports([[0, 1], [2]])._replace(rows=torch.tensor([[[0, 1], [2, -1]], [[3, 4], [0, 2]]]))
    supports = supports._replace(
        crops=[picture(64, 64, i) for i in range(5)], boxes=supports.boxes[:1].repeat(5, 1)
    )
    found, losses = detector([picture(96, 128), picture(64, 96)], supports, targets)
    assert found == []
    total = torch.stack(list(losses.values())).sum()
    assert torch.isfinite(total)
    total.backward()
    gradients = [p.grad for p in detector.parameters() if p.grad is not None]
    assert gradients
    assert all(torch.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize("name", [n for n in CONFIGS if n not in ("fsod_arpn", "neck")] + ["shipped"])
def test_everything_that_learns_takes_part(name: str) -> None:
    detector = make(CONFIGS.get(name, SHIPPED)).train()
    target = make_target([[10, 10, 60, 70]], [0])
    _, losses = detector([picture(96, 128)], make_supports([[0, 1], [2]]), [target])
    torch.stack(list(losses.values())).sum().backward()
    assert not {n for n, p in detector.named_parameters() if p.requires_grad and p.grad is None}


@pytest.mark.parametrize("name", ["paper", "shipped"])
def test_a_few_dozen_steps_overfit_one_episode(name: str) -> None:
    """The loss falls and the object is found: a square that the shots show as well."""
    config = CONFIGS.get(name, SHIPPED)
    config = replace(config, encoder=replace(config.encoder, frozen_stages=0, channels=64))
    torch.manual_seed(0)
    detector = build_detector(config).train()
    scene, other = picture(96, 128, 1), picture(96, 128, 2)
    box = [40.0, 24.0, 88.0, 72.0]
    scene[:, 24:72, 40:88] = torch.tensor([230.0, 40, 60])[:, None, None]
    shots = [picture(64, 64, 50), picture(64, 64, 51), picture(64, 64, 52)]
    for shot in shots[:2]:
        shot[:, 8:56, 8:56] = torch.tensor([230.0, 40, 60])[:, None, None]
    supports = Supports(
        shots, torch.tensor([[8.0, 8, 56, 56]]).repeat(3, 1), torch.tensor([[[0, 1], [2, -1]]])
    )
    targets = [make_target([box], [0]), make_target([], [])]
    optimizer = torch.optim.AdamW([p for p in detector.parameters() if p.requires_grad], lr=1e-3)
    history = []
    for _ in range(90):
        _, losses = detector([scene, other], supports, targets)
        total = torch.stack(list(losses.values())).sum()
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(detector.parameters(), 10.0)
        optimizer.step()
        # Boxes are learned from proposals, of which there are none at the start: their loss comes later.
        history.append(losses["rpn_objectness"].item() + losses["head_class"].item())
    assert np.mean(history[-10:]) < 0.5 * np.mean(history[:10])
    found = detect(detector.eval(), [scene], supports)[0]
    assert found.labels[0] == 0
    assert box_iou(torch.from_numpy(found.boxes[:1]), torch.tensor([box])).item() > 0.6


def test_competing_classes_share_one_probability() -> None:
    detector = make(SHIPPED)
    logits = torch.randn(1, 3, 4) * 3
    whole = Proposals(
        torch.zeros(1, 1, 4, 4), torch.full((1, 3, 4), 50.0), torch.ones(1, 1, 4), torch.ones(1, 1, 4) > 0
    )
    scores = score(logits, whole, detector.config.head)
    assert (scores.sum(1) < 1).all()
    alone = score(logits[:, :1], whole._replace(objectness=whole.objectness[:, :1]), detector.config.head)
    assert torch.allclose(alone, logits[:, :1].sigmoid(), atol=1e-5)  # one class against the background
    assert (scores[:, :1] <= alone + 1e-6).all()


def test_objectness_and_quality_multiply_the_score() -> None:
    detector = make(SHIPPED)
    proposals = Proposals(
        torch.zeros(1, 1, 2, 4),
        torch.zeros(1, 1, 2),
        torch.tensor([[[1.0, 0.25]]]),
        torch.tensor([[[True, False]]]),
    )
    scores = score(torch.zeros(1, 1, 2), proposals, detector.config.head)
    assert torch.allclose(scores[0, 0], torch.tensor([0.5 * 0.5**0.25, 0.0]))


def test_beside_a_cosine_prior_the_head_starts_at_zero() -> None:
    torch.manual_seed(0)
    config = replace(TINY, head=HeadConfig(cosine_prior=True))
    full, bare = build_detector(config).eval(), None
    scene, supports = picture(96, 128), make_supports([[0], [1]])
    with torch.no_grad():
        image, classes = full.encode_images([scene]), full.encode_supports(supports)
        boxes = torch.tensor([[[[0.0, 0, 50, 50], [20, 20, 90, 90]]]])
        regions = full._describe(image, boxes)
        with_head = full._relate(regions, classes)
        full.relation_head = bare
        without = full._relate(regions, classes)
    assert torch.allclose(with_head.logits, without.logits)
    assert not with_head.deltas.any()


def test_the_same_seed_gives_the_same_losses() -> None:
    def once() -> list[float]:
        torch.manual_seed(3)
        detector = build_detector(TINY).train()
        _, losses = detector([picture()], make_supports([[0]]), [make_target([[10, 10, 60, 70]], [0])])
        return [v.item() for v in losses.values()]

    assert once() == once()


def test_forward_reads_as_the_figure() -> None:
    for method in (TENET.forward, TENET.match, TENET.losses):
        assert len(inspect.getsource(method).splitlines()) <= 40


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": torch.tensor([[[0], [7]]])}, "rows from 0 to 1"),
        ({"rows": torch.tensor([[[0], [-1]]])}, "at least one shot"),
        ({"rows": torch.tensor([0, 1])}, r"\(E, K, Z\)"),
        ({"boxes": torch.zeros(1, 4)}, r"\(2, 4\)"),
        ({"boxes": torch.tensor([[5.0, 5, 5, 9], [0, 0, 9, 9]])}, "crop 0 has an empty box"),
        ({"boxes": torch.tensor([[0.0, 0, 9, 9], [70, 70, 99, 99]])}, "crop 1 has the box"),
    ],
)
def test_bad_supports(change: dict[str, torch.Tensor], words: str) -> None:
    with pytest.raises(InputError, match=words):
        detect(make(TINY), [picture()], make_supports([[0], [1]])._replace(**change))


def test_bad_pictures() -> None:
    detector = make(TINY)
    for bad, words in ((picture() * float("nan"), "finite"), (picture() / 255, "multiply by 255")):
        with pytest.raises(InputError, match=words):
            detect(detector, [bad], make_supports([[0]]))
    assert len(detect(detector, [torch.zeros(3, 64, 64)], make_supports([[0]]))) == 1  # black is a picture


def test_features_of_another_model_are_refused() -> None:
    detector = make(SHIPPED)
    with torch.no_grad():
        images = detector.encode_images([picture()])
        classes = detector.encode_supports(make_supports([[0], [1]]))
    wide = classes._replace(psi=torch.cat([classes.psi] * 2, -1))
    with pytest.raises(InputError, match="another model"):
        detector.match(images, wide)
    with pytest.raises(InputError, match="closed-form weights"):
        detector.match(images, classes._replace(closed_form=torch.zeros(1, 2, 3)))
    with pytest.raises(InputError, match="1 for all"):
        detector.match(images * 3, classes._replace(mask=classes.mask.repeat(2, 1, 1)))


def test_not_supports_and_not_targets() -> None:
    detector = make(TINY)
    with pytest.raises(InputError, match="expected Supports"):
        detector([picture()], None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="expected QueryTarget"):
        detector([picture()], make_supports([[0]]), [{"boxes": []}])  # type: ignore[list-item]
    whole = make_target([[0, 0, 9, 9]], [0])
    with pytest.raises(InputError, match="bool ignore"):
        detector([picture()], make_supports([[0]]), [whole._replace(ignore=torch.zeros(1))])
    with pytest.raises(ConfigError, match=r"tenet\.presets\.preset"):
        build_detector("paper_voc")  # type: ignore[arg-type]


def test_bad_targets() -> None:
    detector = make(TINY).train()
    with pytest.raises(InputError, match="one for each of the 1 pictures"):
        detector([picture()], make_supports([[0]]), [])
    twice = make_supports([[0]])._replace(rows=torch.zeros(2, 1, 1, dtype=torch.long))
    with pytest.raises(InputError, match="got 2"):
        detector([picture()] * 3, twice, [make_target([], [])] * 3)


def test_no_class_to_look_for() -> None:
    with pytest.raises(InputError, match="register one first"):
        stack_classes([])


def test_classes_of_two_models_do_not_mix() -> None:
    classes = []
    for d in (8, 16):
        vectors = torch.zeros(1, 1, 1, d)
        phi, raw, mask = torch.zeros(1, 1, 1, 2 * d, 7, 7), vectors[..., :0], torch.ones(1, 1, 1) > 0
        classes.append(SupportFeatures(vectors, vectors, phi, raw, mask).to_class(0))
    with pytest.raises(InputError, match="one model"):
        stack_classes(classes)


def test_imagenet_weights_of_a_resnet_are_not_shipped() -> None:
    config = replace(TINY, encoder=replace(TINY.encoder, weights="imagenet"))
    with pytest.raises(WeightsError, match="give another encoder a file"):
        build_detector(config)
    with pytest.raises(WeightsError, match="found none"):
        build_detector(replace(TINY, encoder=replace(TINY.encoder, weights="no/such/file.pth")))


def test_the_relation_counts_as_much_as_it_should_beside_the_prior() -> None:
    """Weight 0 is the prototype's score, 1 the sum; training takes the relation whole."""
    torch.manual_seed(0)
    base = replace(TINY, head=replace(TINY.head, cosine_prior=True, regions="union"))
    detector = build_detector(base).eval()
    assert detector.relation_head is not None
    for layer in detector.relation_head.outputs():
        torch.nn.init.normal_(layer.weight)
    image = detector.encode_images([picture()])
    classes = detector.encode_supports(make_supports([[0], [1, 2]]))
    regions = detector._describe(image, torch.tensor([[[[8.0, 8, 60, 60], [30, 20, 90, 80]]]]))
    logits = {}
    for weight in (0.0, 0.5, 1.0):
        detector.config = replace(base, head=replace(base.head, relation_weight=weight))
        logits[weight] = detector._relate(regions, classes).logits
    assert detector.cosine_prior is not None
    assert torch.allclose(logits[0.0], detector.cosine_prior(regions.raw, classes.raw, classes.mask))
    assert not torch.allclose(logits[0.0], logits[1.0])
    assert torch.allclose(logits[0.5], (logits[0.0] + logits[1.0]) / 2, atol=1e-5)
    detector.config = replace(base, head=replace(base.head, relation_weight=0.0))
    detector.training = True  # of the detector alone: dropout stays at rest
    assert torch.allclose(detector._relate(regions, classes).logits, logits[1.0], atol=1e-4)
