"""Classes that compete: whether any is told by the log-odds, which by the shots in their own pictures."""

from dataclasses import replace

import pytest
import torch
from tiny_detector import TINY, make_supports, picture

from tenet.models.build import build_detector
from tenet.models.closed_form import Layout
from tenet.models.detector import TENET
from tenet.models.rivals import (
    ROWS,
    TEMPERATURE,
    all_known,
    cosines,
    in_place_cosines,
    match_with_rivals,
    rows_of,
    share_of_earlier,
)


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
    assert all_known(torch.ones(1, 2, ROWS, 3))
    places = torch.zeros(1, 2, ROWS, 3)
    places[0, 0, 0, 0] = 1
    assert not all_known(places)


def test_vectors_are_taken_apart() -> None:
    layout = Layout(3, 10, 2 * ROWS)
    vectors = torch.arange(13.0 + 2 * ROWS).expand(1, 2, 13 + 2 * ROWS)
    parts = layout.take_apart(vectors)
    assert parts.objectness is not None
    assert parts.box_fit is not None
    assert parts.in_place is not None
    assert parts.objectness[0, 0].tolist() == [0, 1, 2]
    assert parts.box_fit.shape == (1, 2, 2, 5)
    assert parts.box_fit[0, 0, 0, 0] == 3
    assert parts.in_place[0, 1].tolist() == [[13 + 2 * row, 14 + 2 * row] for row in range(ROWS)]
    older = layout.take_apart(vectors[..., :13])
    assert older.box_fit is not None
    assert older.in_place is None
    assert Layout(3, 0, 2 * ROWS).take_apart(vectors[..., : 3 + 2 * ROWS]).box_fit is None
    assert layout.take_apart(None) == (None, None, None)


def test_rows_are_means_of_every_fifth_shot() -> None:
    shots = torch.randn(2 * ROWS + 2, 3)
    rows = rows_of(shots)
    torch.testing.assert_close(rows[0], (shots[0] + shots[ROWS] + shots[2 * ROWS]) / 3)
    torch.testing.assert_close(rows[-1], (shots[ROWS - 1] + shots[2 * ROWS - 1]) / 2)
    few = rows_of(shots[:2])
    torch.testing.assert_close(few[:2], shots[:2])
    assert not few[2:].any()


WIDTHS = (6, 5, 4)
CENTRE = torch.zeros(6)


def make_places(told_by: int, shots: int = 4, seed: int = 0) -> torch.Tensor:
    """Three classes (1, 3, ROWS, 15) that only one of the three maps tells apart; the others are noise."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.zeros(1, 3, ROWS, sum(WIDTHS))
    places[:, :, :shots] = torch.randn(1, 3, shots, sum(WIDTHS), generator=generator)
    start = sum(WIDTHS[:told_by])
    own = 4 * torch.eye(3, WIDTHS[told_by]).unsqueeze(1)
    places[0, :, :shots, start : start + WIDTHS[told_by]] *= 0.1
    places[0, :, :shots, start : start + WIDTHS[told_by]] += own
    return places


def test_shots_tell_which_maps_tell_their_classes_apart() -> None:
    for seed in range(5):
        assert share_of_earlier(make_places(1, seed=seed), CENTRE, WIDTHS, 7.0).item() == 1
        assert share_of_earlier(make_places(2, seed=seed), CENTRE, WIDTHS, 7.0).item() == 1
        assert share_of_earlier(make_places(0, seed=seed), CENTRE, WIDTHS, 7.0).item() == 0


def test_one_shot_tells_nothing() -> None:
    """Nothing can be left out; and a class of one shot does not silence those of several."""
    assert share_of_earlier(make_places(1, shots=1), CENTRE, WIDTHS, 7.0).item() == 0
    uneven = make_places(1)
    uneven[0, 2, 1:] = 0
    assert share_of_earlier(uneven, CENTRE, WIDTHS, 7.0).item() == 1


def test_the_left_out_likelihood_is_the_literal_one() -> None:
    """Row by row: the class means without the row, the cosines, the softmax; the mean of classes' means."""
    places, scale = make_places(1, seed=3) + make_places(0, seed=4) / 3, 2.0
    places[0, 1, 3] = 0  # uneven
    real = places[0].any(-1)

    def literal(maps: list[int]) -> float:
        means = []
        for k in range(3):
            own = []
            for row in real[k].nonzero().flatten().tolist():
                logits = torch.zeros(3)
                for number in maps:
                    start, width = sum(WIDTHS[:number]), WIDTHS[number]
                    part = places[0, :, :, start : start + width]
                    whole = torch.stack([part[j][real[j]].mean(0) for j in range(3)])
                    centre = CENTRE if number == 0 else whole.mean(0)
                    left = real[k].clone()
                    left[row] = False
                    whole[k] = part[k][left].mean(0)
                    x = part[k, row] - centre
                    logits += torch.cosine_similarity(x[None], whole - centre) * scale / len(maps)
                own.append((logits / TEMPERATURE).log_softmax(0)[k])
            means.append(torch.stack(own).mean())
        return float(torch.stack(means).mean())

    gain = literal([0, 1, 2]) - literal([0])
    assert 0.1 < gain < 0.4, "the test wants a share between 0 and 1"
    share = share_of_earlier(places, CENTRE, WIDTHS, scale)
    torch.testing.assert_close(share.item(), (gain - 0.1) / 0.3, atol=1e-4, rtol=0)


def test_earlier_maps_are_asked_only_where_they_have_a_share() -> None:
    regions, rest = torch.randn(1, 7, 6), torch.randn(1, 7, 9)
    asked = []

    def earlier() -> torch.Tensor:
        asked.append(1)
        return rest

    plain = make_places(0)
    alone = in_place_cosines(regions, earlier, plain, CENTRE, WIDTHS, 7.0)
    torch.testing.assert_close(alone, cosines(regions, plain[..., :6], CENTRE).mT)
    assert not asked
    texture = make_places(1)
    together = in_place_cosines(regions, earlier, texture, CENTRE, WIDTHS, 7.0)
    assert asked == [1]
    expected = (
        cosines(regions, texture[..., :6], CENTRE)
        + cosines(rest[..., :5], texture[..., 6:11], None)
        + cosines(rest[..., 5:], texture[..., 11:], None)
    ) / 3
    torch.testing.assert_close(together, expected.mT)
    without = in_place_cosines(regions, None, texture, CENTRE, WIDTHS, 7.0)
    torch.testing.assert_close(without, cosines(regions, texture[..., :6], CENTRE).mT)


@pytest.fixture
def comparing() -> TENET:
    torch.manual_seed(0)
    head = replace(
        TINY.head, cosine_prior=True, competing=True, in_place=0.7, earlier_maps=True, regions="union"
    )
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
    boxes = torch.cat([first, second])
    raw = comparing.encoder.regions(image.maps, boxes).raw[None, None]
    seen = layout.take_apart(torch.stack(vectors)[None]).in_place
    assert seen is not None
    torch.testing.assert_close(seen[0, :, 0], comparing.encoder.place(image.maps, boxes))
    torch.testing.assert_close(seen[0, :, 0, : raw.shape[-1]], raw[0, 0])
    logits = torch.zeros(1, 2, 2)
    taught = classes._replace(closed_form=torch.stack(vectors)[None])
    rivals = comparing._compare_in_place(logits, images, boxes[None, None], raw, taught)
    assert rivals is not None
    assert rivals[0].argmax(0).tolist() == [0, 1]
    bare = torch.stack([vectors[0], 0 * vectors[1]])[None]
    known = (images, boxes[None, None], raw)
    assert comparing._compare_in_place(logits, *known, classes._replace(closed_form=bare)) is None
    assert comparing._compare_in_place(logits[:, :1], *known, taught) is None
    found = comparing.match(images, taught)[0]
    alone = comparing.match(images, classes)[0]
    assert found.scores.tolist() != alone.scores.tolist()
