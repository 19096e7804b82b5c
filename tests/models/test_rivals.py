"""Classes that compete: whether any is told by the log-odds, which by the shots in their own pictures."""

from dataclasses import replace

import pytest
import torch
from tiny_detector import TINY, make_supports, picture

from tenet.models.build import build_detector
from tenet.models.closed_form import Layout
from tenet.models.detector import TENET
from tenet.models.rivals import TEMPERATURE, all_known, match_with_rivals


def test_any_is_left_as_it_was() -> None:
    """Rivals share out what the log-odds give to all classes together."""
    logits, rivals = torch.randn(2, 3, 5), torch.randn(2, 3, 5)
    match = match_with_rivals(logits, rivals)
    some = 1 - torch.cat([torch.zeros(2, 1, 5), logits], 1).softmax(1)[:, 0]
    torch.testing.assert_close(match.sum(1), some)
    torch.testing.assert_close(match / match.sum(1, keepdim=True), (rivals / TEMPERATURE).softmax(1))


def test_one_class_has_no_rival() -> None:
    logits = torch.randn(1, 1, 4)
    torch.testing.assert_close(match_with_rivals(logits, torch.randn(1, 1, 4)), logits.sigmoid())


def test_a_class_that_was_not_seen_in_place() -> None:
    assert not all_known(None)
    assert all_known(torch.ones(1, 2, 3))
    assert not all_known(torch.tensor([[[1.0, 0, 0], [0, 0, 0]]]))


def test_vectors_are_taken_apart() -> None:
    layout = Layout(3, 10, 4)
    vectors = torch.arange(17.0).expand(1, 2, 17)
    parts = layout.take_apart(vectors)
    assert parts.objectness is not None
    assert parts.box_fit is not None
    assert parts.in_place is not None
    assert parts.objectness[0, 0].tolist() == [0, 1, 2]
    assert parts.box_fit.shape == (1, 2, 2, 5)
    assert parts.box_fit[0, 0, 0, 0] == 3
    assert parts.in_place[0, 1].tolist() == [13, 14, 15, 16]
    older = layout.take_apart(vectors[..., :13])
    assert older.box_fit is not None
    assert older.in_place is None
    assert Layout(3, 0, 4).take_apart(vectors[..., :7]).box_fit is None
    assert layout.take_apart(None) == (None, None, None)


@pytest.fixture
def comparing() -> TENET:
    torch.manual_seed(0)
    head = replace(TINY.head, cosine_prior=True, competing=True, in_place=0.7, regions="union")
    return build_detector(replace(TINY, rpn=replace(TINY.rpn, closed_form=True), head=head)).eval()


@torch.no_grad()
def test_a_region_goes_to_the_class_that_it_is_like_in_place(comparing: TENET) -> None:
    """Two classes with the same cut-out shots differ only in place: each region goes to the nearer one."""
    [image] = images = comparing.encode_images([picture(96, 128)])
    classes = comparing.encode_supports(make_supports([[0], [0]]))
    first, second = torch.tensor([[8.0, 8, 60, 60]]), torch.tensor([[70.0, 40, 120, 90]])
    vectors = [comparing.fit_objectness(images, [box], classes) for box in (first, second)]
    layout = comparing.closed_form
    assert all(vector.shape == (layout.lengths[-1],) for vector in vectors)
    raw = comparing.encoder.regions(image.maps, torch.cat([first, second])).raw[None, None]
    torch.testing.assert_close(vectors[0][-layout.in_place :], raw[0, 0, 0])
    logits = torch.zeros(1, 2, 2)
    taught = classes._replace(closed_form=torch.stack(vectors)[None])
    rivals = comparing._compare_in_place(logits, raw, taught)
    assert rivals is not None
    assert rivals[0].argmax(0).tolist() == [0, 1]
    bare = torch.stack([vectors[0], 0 * vectors[1]])[None]
    assert comparing._compare_in_place(logits, raw, classes._replace(closed_form=bare)) is None
    assert comparing._compare_in_place(logits[:, :1], raw, taught) is None
    found = comparing.match(images, taught)[0]
    alone = comparing.match(images, classes)[0]
    assert found.scores.tolist() != alone.scores.tolist()
