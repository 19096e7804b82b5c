"""Classes that compete: whether any is told by the log-odds, which by the shots in their own pictures."""

from dataclasses import replace

import pytest
import torch
from tiny_detector import TINY, make_supports, picture
from torch import Tensor

from tenet.errors import ConfigError
from tenet.models import rivals as rivals_module
from tenet.models.build import build_detector
from tenet.models.closed_form import Layout
from tenet.models.detector import TENET
from tenet.models.rivals import (
    LEAST_GAIN,
    ROWS,
    TEMPERATURE,
    WHOLE_GAIN,
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
    assert all_known(torch.ones(1, 2, ROWS + 1, 3))
    places = torch.zeros(1, 2, ROWS + 1, 3)
    places[0, 0, 0, 0] = 1
    assert not all_known(places)


def test_vectors_are_taken_apart() -> None:
    rows = ROWS + 1
    layout = Layout(3, 10, 2 * rows)
    vectors = torch.arange(13.0 + 2 * rows).expand(1, 2, 13 + 2 * rows)
    parts = layout.take_apart(vectors)
    assert parts.objectness is not None
    assert parts.box_fit is not None
    assert parts.in_place is not None
    assert parts.objectness[0, 0].tolist() == [0, 1, 2]
    assert parts.box_fit.shape == (1, 2, 2, 5)
    assert parts.box_fit[0, 0, 0, 0] == 3
    assert parts.in_place[0, 1].tolist() == [[13 + 2 * row, 14 + 2 * row] for row in range(rows)]
    older = layout.take_apart(vectors[..., :13])
    assert older.box_fit is not None
    assert older.in_place is None
    assert Layout(3, 0, 2 * rows).take_apart(vectors[..., : 3 + 2 * rows]).box_fit is None
    assert layout.take_apart(None) == (None, None, None)


def test_rows_are_means_of_every_fifth_shot() -> None:
    shots, pictures = torch.randn(2 * ROWS + 2, 3), torch.randn(4, 3)
    rows = rows_of(shots, pictures)
    torch.testing.assert_close(rows[0], (shots[0] + shots[ROWS] + shots[2 * ROWS]) / 3)
    torch.testing.assert_close(rows[ROWS - 1], (shots[ROWS - 1] + shots[2 * ROWS - 1]) / 2)
    torch.testing.assert_close(rows[ROWS], pictures.mean(0))
    few = rows_of(shots[:2], pictures)
    torch.testing.assert_close(few[:2], shots[:2])
    assert not few[2:ROWS].any()


# Which maps tell classes apart ------------------------------------------------------------------------

WIDTHS = (352, 120, 48)
"""Those of EfficientNet-Lite2."""
CENTRE = torch.zeros(352)


def make_places(told_by: int | None, shots: list[int], seed: int = 0) -> Tensor:
    """Classes (1, K, ROWS + 1, 520) with so many shots each, which one of the three maps tells apart, or
    none; the others are noise, and so are the whole pictures."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.randn(1, len(shots), ROWS + 1, sum(WIDTHS), generator=generator)
    places[:, :, ROWS] *= 0.2
    for k, count in enumerate(shots):
        places[0, k, count:ROWS] = 0
        if told_by is not None:
            places[0, k, :count, sum(WIDTHS[:told_by]) + k] += 12
    return places


def share(places: Tensor) -> float:
    return share_of_earlier(places, CENTRE, WIDTHS, 5.0).item()


@pytest.mark.parametrize("seed", range(5))
def test_shots_tell_which_maps_tell_their_classes_apart(seed: int) -> None:
    assert share(make_places(1, [5, 5, 5], seed)) == 1
    assert share(make_places(2, [4, 5, 4], seed)) == 1
    assert share(make_places(0, [5, 5, 5], seed)) == 0


@pytest.mark.parametrize("shots", [[2, 2], [3, 3], [5, 5], [5, 1], [2, 1], [2, 2, 2], [5, 5, 5]], ids=str)
def test_noise_tells_nothing(shots: list[int]) -> None:
    """However few shots there are: what is left out must not come back by the centre."""
    shares = [share(make_places(None, shots, seed)) for seed in range(60)]
    assert sum(shares) / len(shares) < 0.12


def test_a_single_shot_has_no_vote() -> None:
    assert share(make_places(1, [1, 1, 1])) == 0
    assert share(make_places(1, [5, 5, 1])) > 0
    assert share(make_places(1, [5, 1, 1])) <= share(make_places(1, [5, 5, 1]))


def test_the_left_out_likelihood_is_the_literal_one() -> None:
    """Row by row: the class means without the row, the cosines, the softmax; votes by the number of rows."""
    places, scale = make_places(1, [5, 3, 4], seed=3), 1.0
    real = places[0, :, :ROWS].any(-1)

    def literal(maps: list[int]) -> float:
        votes = []
        for k in range(3):
            own = []
            for row in real[k].nonzero().flatten().tolist():
                logits = torch.zeros(3)
                for number in maps:
                    start, width = sum(WIDTHS[:number]), WIDTHS[number]
                    part = places[0, :, :, start : start + width]
                    means = torch.stack([part[j, :ROWS][real[j]].mean(0) for j in range(3)])
                    centre = CENTRE if number == 0 else part[:, ROWS].mean(0)
                    left = real[k].clone()
                    left[row] = False
                    means[k] = part[k, :ROWS][left].mean(0)
                    x = part[k, row] - centre
                    logits += torch.cosine_similarity(x[None], means - centre) * scale / len(maps)
                own.append((logits / TEMPERATURE).log_softmax(0)[k])
            votes.append(torch.stack(own).mean() * len(own) / ROWS)
        return float(torch.stack(votes).mean())

    gain = literal([0, 1, 2]) - literal([0])
    assert LEAST_GAIN < gain < WHOLE_GAIN, "the test wants a share between 0 and 1"
    expected = (gain - LEAST_GAIN) / (WHOLE_GAIN - LEAST_GAIN)
    torch.testing.assert_close(
        share_of_earlier(places, CENTRE, WIDTHS, scale).item(), expected, atol=1e-4, rtol=0
    )


def test_earlier_maps_are_asked_only_where_they_have_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    regions, rest = torch.randn(1, 7, 352), torch.randn(1, 7, 168)
    asked = []

    def earlier() -> Tensor:
        asked.append(1)
        return rest

    places = make_places(0, [5, 5, 5])
    means = places[0, :, :ROWS].mean(1)
    last = cosines(regions, means[:, :352], CENTRE)
    torch.testing.assert_close(in_place_cosines(regions, earlier, places, CENTRE, WIDTHS, 7.0), last.mT)
    assert not asked
    monkeypatch.setattr(rivals_module, "share_of_earlier", lambda *_: torch.tensor([0.25]))
    mixed = in_place_cosines(regions, earlier, places, CENTRE, WIDTHS, 7.0)
    assert asked == [1]
    c4, c3 = (
        cosines(own, mean, mean.mean(0))
        for own, mean in ((rest[..., :120], means[:, 352:472]), (rest[..., 120:], means[:, 472:]))
    )
    torch.testing.assert_close(mixed, (0.75 * last + 0.25 * (last + c4 + c3) / 3).mT)
    without = in_place_cosines(regions, None, places, CENTRE, WIDTHS, 7.0)
    torch.testing.assert_close(without, last.mT)


# In the detector --------------------------------------------------------------------------------------


def make(
    regions: str = "shared", competing: bool = True, in_place: float = 0.7, earlier_maps: bool = True
) -> TENET:
    torch.manual_seed(0)
    head = replace(
        TINY.head,
        regions="union",
        cosine_prior=True,
        competing=competing,
        in_place=in_place,
        earlier_maps=earlier_maps,
    )
    encoder = replace(TINY.encoder, regions=regions)
    rpn = replace(TINY.rpn, closed_form=True)
    return build_detector(replace(TINY, encoder=encoder, rpn=rpn, head=head)).eval()


FIRST, SECOND = torch.tensor([[8.0, 8, 60, 60]]), torch.tensor([[70.0, 40, 120, 90]])


@torch.no_grad()
def test_means_of_earlier_maps_lie_where_the_box_lies() -> None:
    """On maps that rise to the right, a box's mean is the value at its middle."""
    detector = make()
    [maps] = detector.encoder([picture(96, 128)])
    shift3, shift4, _ = detector.encoder.backbone.shifts
    assert maps.raw4 is not None
    ramps = {}
    for name, own in (("raw4", maps.raw4), ("c3", maps.c3)):
        ramps[name] = torch.arange(own.shape[3], dtype=own.dtype).expand_as(own)
    found = detector.encoder.earlier_means(maps._replace(**ramps), torch.tensor([[32.0, 20, 80, 60]]))
    _, c4, c3 = detector.encoder.place_widths
    expected = torch.cat(
        [torch.full((c4,), (56 - shift4) / 16 - 0.5), torch.full((c3,), (56 - shift3) / 8 - 0.5)]
    )
    torch.testing.assert_close(found[0], expected)


@torch.no_grad()
@pytest.mark.parametrize("regions", ["shared", "per_region"])
def test_a_region_goes_to_the_class_that_it_is_like_in_place(regions: str) -> None:
    """Two classes with the same cut-out shots differ only in place: each region goes to the nearer one."""
    comparing = make(regions)
    [image] = images = comparing.encode_images([picture(96, 128)])
    classes = comparing.encode_supports(make_supports([[0], [0]]))
    vectors = [comparing.fit_objectness(images, [box], classes) for box in (FIRST, SECOND)]
    layout = comparing.closed_form
    assert all(vector.shape == (layout.lengths[-1],) for vector in vectors)
    boxes = torch.cat([FIRST, SECOND])
    raw = comparing.encoder.regions(image.maps, boxes).raw[None, None]
    seen = layout.take_apart(torch.stack(vectors)[None]).in_place
    assert seen is not None
    torch.testing.assert_close(seen[0, :, 0, : raw.shape[-1]], raw[0, 0])
    logits = torch.zeros(1, 2, 2)
    known = (images, boxes[None, None], raw)
    taught = classes._replace(closed_form=torch.stack(vectors)[None])
    rivals = comparing._compare_in_place(logits, *known, taught)
    assert rivals is not None
    assert rivals[0].argmax(0).tolist() == [0, 1]
    bare = torch.stack([vectors[0], 0 * vectors[1]])[None]
    assert comparing._compare_in_place(logits, *known, classes._replace(closed_form=bare)) is None
    assert comparing._compare_in_place(logits[:, :1], *known, taught) is None


@torch.no_grad()
def test_rivals_reach_the_match_picture_by_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """With earlier maps asked: they change scores, and a batch is what its pictures are alone."""
    comparing = make()
    images = comparing.encode_images([picture(96, 128), picture(80, 112, seed=1)])
    classes = comparing.encode_supports(make_supports([[0], [1]]))
    vectors = [comparing.fit_objectness(images[:1], [box], classes) for box in (FIRST, SECOND)]
    taught = classes._replace(closed_form=torch.stack(vectors)[None])
    plain = comparing.match(images, taught)
    monkeypatch.setattr(rivals_module, "share_of_earlier", lambda *_: torch.tensor([0.5]))
    both = comparing.match(images, taught)
    for image, found, before in zip(images, both, plain, strict=True):
        [alone] = comparing.match([image], taught)
        assert found.scores.tolist() == pytest.approx(alone.scores.tolist(), abs=1e-6)
        assert found.scores.tolist() != pytest.approx(before.scores.tolist(), abs=1e-6)
    monkeypatch.setattr(comparing, "_compare_in_place", lambda *_: None)
    without = comparing.match(images, taught)
    assert without[0].scores.tolist() != pytest.approx(plain[0].scores.tolist(), abs=1e-6)


def test_classes_that_do_not_compete_have_no_rivals() -> None:
    loose = make(competing=False, earlier_maps=False)
    with torch.no_grad():
        images = loose.encode_images([picture(96, 128)])
        classes = loose.encode_supports(make_supports([[0], [1]]))
        vector = loose.fit_objectness(images, [FIRST], classes)
        taught = classes._replace(closed_form=vector.expand(1, 2, -1))
        raw = torch.zeros(1, 1, 1, loose.encoder.raw_channels)
        assert loose._compare_in_place(torch.zeros(1, 2, 1), images, FIRST[None, None], raw, taught) is None
    with pytest.raises(ConfigError, match=r"set head\.in_place too"):
        make(in_place=0.0)
