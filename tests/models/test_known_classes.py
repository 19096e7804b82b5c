"""Naming known classes: which region is which class, by the cosine with fixed means."""

import torch
from torch import tensor

from tenet.models.known_classes import KnownClasses, class_means, known_loss, name_regions
from tenet.models.targets import QueryTarget


def target(boxes: list[list[float]], ways: list[int], ignore: list[bool]) -> QueryTarget:
    return QueryTarget(tensor(boxes).reshape(-1, 4), tensor(ways).long(), tensor(ignore).bool())


def test_regions_are_objects_background_or_neither() -> None:
    own = target([[0, 0, 10, 10], [50, 50, 60, 60]], [2, 0], [False, True])
    regions = tensor([[0.0, 0, 10, 10], [0, 0, 10, 4], [20, 20, 30, 30], [50, 50, 60, 60], [50, 50, 60, 54]])
    assert name_regions(regions, own).tolist() == [3, -1, 0, -1, -1]


def test_without_objects_all_is_background() -> None:
    assert name_regions(torch.rand(3, 4), target([], [], [])).tolist() == [0, 0, 0]
    assert name_regions(torch.zeros(0, 4), target([], [], [])).tolist() == []


def test_means_are_of_length_one_seen_from_the_centre() -> None:
    features, centre = torch.randn(6, 8), torch.randn(8)
    means = class_means(features, tensor([0, 0, 0, 2, 2, 2]), centre, 3)
    wanted = features[:3].mean(0) - centre
    torch.testing.assert_close(means[0], wanted / wanted.norm())
    assert means[1].tolist() == [0] * 8
    torch.testing.assert_close(means[2].norm(), tensor(1.0))


def test_the_loss_is_least_at_a_classes_own_mean_and_pulls_towards_it() -> None:
    known = KnownClasses(torch.eye(3, 8), torch.zeros(8), tensor(10.0), tensor(0.2))
    logits = known.logits(known.means)
    assert logits.shape == (3, 4)
    assert logits[:, 0].tolist() == [0, 0, 0]
    right, wrong = (known_loss(logits, labels).item() for labels in (tensor([1, 2, 3]), tensor([2, 3, 1])))
    assert right < 0.01 < wrong
    feature = torch.ones(1, 8, requires_grad=True)
    known_loss(known.logits(feature), tensor([2])).backward()
    assert feature.grad is not None
    assert feature.grad[0, 1] < 0 < feature.grad[0, 0]


def test_objects_and_background_weigh_the_same_and_neither_nothing() -> None:
    logits = torch.randn(40, 4)
    labels = tensor([1] * 2 + [0] * 20 + [-1] * 18)
    lost = torch.nn.functional.cross_entropy(logits, labels.clamp(min=0), reduction="none")
    wanted = (lost[:2].mean() + lost[2:22].mean()) / 2
    torch.testing.assert_close(known_loss(logits, labels), wanted)
    none = known_loss(logits.requires_grad_(), torch.full((40,), -1))
    none.backward()
    assert none.item() == 0
    assert logits.grad is not None
    assert not logits.grad.any()
