"""Two networks as one: what they agree on, their features side by side, and the files that name them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_detector import TINY

from tenet.bank import ClassBank
from tenet.engine.checkpoint import load
from tenet.errors import InputError, WeightsError
from tenet.looks.merging import agree
from tenet.looks.request import Request
from tenet.models.build import build_detector
from tenet.predictor import Tenet
from tenet.runtime.calibration import Calibration
from tenet.runtime.loading import load_runtime, model_file
from tenet.runtime.pair_runtime import PairRuntime, side_by_side, take_apart
from tenet.runtime.torch_runtime import TorchRuntime, Widths
from tenet.structures import ClassFeatures, Detections, Shot

CONFIG = replace(TINY, rpn=replace(TINY.rpn, closed_form=True))
CORNERS = np.array([10, 10, 60, 60], np.float32)


def picture(seed: int, height: int = 96, width: int = 128) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def shots(scene: bool = True) -> list[Shot]:
    box = np.array([4, 4, 60, 60], np.float32)
    return [
        Shot(picture(seed, 64, 64), box, *((picture(seed + 10), CORNERS) if scene else ()))
        for seed in range(3)
    ]


@pytest.fixture(scope="module")
def pair() -> PairRuntime:
    """Two networks of different widths."""
    members = []
    for seed, channels in enumerate((CONFIG.encoder.channels, CONFIG.encoder.channels + 8)):
        torch.manual_seed(seed)
        config = replace(CONFIG, encoder=replace(CONFIG.encoder, channels=channels))
        members.append(TorchRuntime(build_detector(config), f"member {seed}"))
    return PairRuntime(members[0], members[1], "two")


def widths_of(pair: PairRuntime) -> tuple[Widths, Widths]:
    return pair.one.widths, pair.two.widths


def found(*rows: tuple[float, float, float, float, float, int]) -> Detections:
    table = np.array(rows, np.float32).reshape(-1, 6)
    labels = table[:, 5].astype(np.int64)
    return Detections(table[:, :4], table[:, 4], labels, labels * 10)


def same(one: ClassFeatures, two: ClassFeatures) -> bool:
    names = ("psi_rpn", "psi", "phi", "raw", "closed_form")
    return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in names)


# ---- what they agree on


def test_what_both_see_alike_stays_as_it_is() -> None:
    one = found((0, 0, 10, 10, 0.9, 0), (20, 20, 40, 40, 0.5, 1))
    both = agree(one, one)
    assert np.array_equal(both.boxes, one.boxes)
    assert np.array_equal(both.scores, one.scores)
    assert np.array_equal(both.labels, one.labels)


def test_a_box_of_one_alone_counts_half_and_the_better_score_weighs_more() -> None:
    one = found((0, 0, 10, 10, 0.9, 0), (50, 50, 60, 60, 0.8, 0))
    two = found((0, 0, 10, 12, 0.3, 0))
    both = agree(one, two)
    assert np.allclose(both.scores, [0.6, 0.4])
    assert np.allclose(both.boxes[0], [0, 0, 10, 10.5])
    assert np.allclose(both.boxes[1], [50, 50, 60, 60])


def test_classes_do_not_mix_and_every_box_has_one_partner() -> None:
    other = agree(found((0, 0, 10, 10, 0.9, 0)), found((0, 0, 10, 10, 0.9, 1)))
    assert np.allclose(other.scores, [0.45, 0.45])
    # Both boxes of the second overlap the first's one: the nearer is its partner.
    near = agree(found((0, 0, 10, 10, 0.9, 0)), found((0, 0, 10, 15, 0.5, 0), (0, 0, 10, 11, 0.5, 0)))
    assert np.allclose(sorted(near.scores), [0.25, 0.7])


def test_the_shot_is_that_of_the_better_one() -> None:
    one, two = found((0, 0, 10, 10, 0.2, 0)), found((0, 0, 10, 10, 0.8, 0))
    assert agree(replace(one, shots=np.array([3])), replace(two, shots=np.array([5]))).shots.tolist() == [5]


@pytest.mark.parametrize("scores", [(0.0, 0.0), (0.0, 1.0)])
def test_scores_of_zero_and_nothing_at_all(scores: tuple[float, float]) -> None:
    one, two = (found((0, 0, 10, 10, score, 0)) for score in scores)
    assert np.isfinite(agree(one, two).boxes).all()
    assert len(agree(one, Detections.empty())) == len(agree(Detections.empty(), one)) == 1
    assert len(agree(Detections.empty(), Detections.empty())) == 0


def test_the_order_of_the_two_does_not_matter() -> None:
    generator = np.random.default_rng(0)
    start = generator.uniform(0, 40, (2, 30, 2))
    boxes = np.concatenate([start, start + generator.uniform(10, 30, (2, 30, 2))], -1)
    one, two = (
        found(
            *(
                (*map(float, box), float(score), int(label))
                for box, score, label in zip(
                    own, generator.random(30), generator.integers(0, 3, 30), strict=True
                )
            )
        )
        for own in boxes
    )
    ways = agree(one, two), agree(two, one)
    assert np.allclose(*(way.scores for way in ways))
    assert np.allclose(*(way.boxes for way in ways), atol=1e-4)
    assert (np.diff(ways[0].scores) <= 0).all()


# ---- one runtime


def test_a_match_is_what_its_members_agree_on(pair: PairRuntime) -> None:
    classes = [pair.encode_shots(shots()), pair.encode_shots(shots()[:1])]
    images = pair.encode_images([picture(20), picture(21, 64, 80)])
    together = pair.match(images, classes)
    for place, member in enumerate((pair.one, pair.two)):
        own = [member.encode_shots(shots()), member.encode_shots(shots()[:1])]
        alone = member.match(member.encode_images([picture(20), picture(21, 64, 80)]), own)
        if place == 0:
            first = alone
    for both, a, b in zip(together, first, alone, strict=True):
        expected = agree(a, b)
        assert len(expected) > 0
        assert np.array_equal(both.boxes, expected.boxes)
        assert np.array_equal(both.scores, expected.scores)


@pytest.mark.parametrize("scene", [True, False])
def test_features_side_by_side_come_apart_again(pair: PairRuntime, scene: bool) -> None:
    own = pair.one.encode_shots(shots(scene)), pair.two.encode_shots(shots(scene))
    widths = pair.one.widths, pair.two.widths
    apart = take_apart(side_by_side(own, widths), widths)
    assert same(apart.one, own[0])
    assert same(apart.two, own[1])


def test_what_only_one_has_learned_is_zeros_in_the_other(pair: PairRuntime) -> None:
    own = pair.one.encode_shots(shots()), replace(pair.two.encode_shots(shots()), closed_form=None)
    widths = pair.one.widths, pair.two.widths
    apart = take_apart(side_by_side(own, widths), widths)
    assert np.array_equal(apart.one.closed_form, own[0].closed_form)
    assert apart.two.closed_form is not None
    assert not apart.two.closed_form.any()


def test_the_better_rank_counts(pair: PairRuntime) -> None:
    one, two = pair.one.encode_shots(shots()), pair.two.encode_shots(shots())
    own = replace(one, ranks=np.array([0, 4, -1])), replace(two, ranks=np.array([0, 9, -1]))
    joined = side_by_side(own, (pair.one.widths, pair.two.widths))
    assert joined.ranks is not None
    assert joined.ranks.tolist() == [0, 4, -1]
    own = replace(one, ranks=np.array([0, 4, 3])), replace(two, ranks=np.array([7, 2, 0]))
    joined = side_by_side(own, (pair.one.widths, pair.two.widths))
    assert joined.ranks is not None
    assert joined.ranks.tolist() == [7, 2, 3]


def test_features_of_a_single_network_are_refused(pair: PairRuntime) -> None:
    with pytest.raises(InputError, match="expected features of a pair"):
        pair.match(pair.encode_images([picture(20)]), [pair.one.encode_shots(shots())])


def test_a_bank_of_a_pair_is_written_and_read(pair: PairRuntime, tmp_path: Path) -> None:
    model = Tenet(pair)
    bank = ClassBank(model)
    bank.register("thing", [(picture(1), tuple(CORNERS.tolist())), (picture(2), tuple(CORNERS.tolist()))])
    bank.save(tmp_path / "a.bank")
    again = ClassBank.load(tmp_path / "a.bank", model)
    one, two = (model.detect(picture(20), own, threshold=0.0) for own in (bank, again))
    assert len(one) > 0
    assert np.array_equal(one.boxes, two.boxes)
    assert np.array_equal(one.scores, two.scores)
    assert len(pair.explain(pair.encode_images([picture(20)])[0], bank.features("thing"), one.boxes[:1])) == 1


def test_a_picture_shows_what_both_found_in_it(pair: PairRuntime) -> None:
    """Each looks for itself, through all views; then they agree."""
    box = tuple(CORNERS.tolist())
    found = []
    for runtime in (pair.one, pair.two, pair):
        model = Tenet(runtime)
        bank = ClassBank(model)
        bank.register("thing", [(picture(1), box), (picture(2), box)])
        bank.register("small", [(picture(3), (10.0, 10.0, 30.0, 30.0))])
        found.append(model.detect(picture(20), bank, threshold=0.0))
    expected = agree(found[0], found[1])
    assert len(expected) > 0
    assert np.array_equal(found[2].boxes, expected.boxes[:300])
    assert np.array_equal(found[2].scores, expected.scores[:300])
    assert set(found[2].names) <= {"thing", "small"}


def test_a_pairs_own_curve_threshold_and_limit(pair: PairRuntime) -> None:
    halved = PairRuntime(pair.one, pair.two, "two", Calibration((0.0, 1.0), (0.0, 0.5), threshold=0.0))
    found = []
    for runtime in (pair, halved):
        model = Tenet(runtime)
        bank = ClassBank(model)
        bank.register("thing", [(picture(1), tuple(CORNERS.tolist()))])
        found.append(model.detect(picture(20), bank, threshold=0.0))
    assert np.allclose(found[1].scores, 0.5 * found[0].scores, atol=1e-3)
    level = float(found[0].scores[len(found[0]) // 2])
    some = Tenet(pair).detect(picture(20), bank, threshold=level)
    assert len(some) == int((found[0].scores >= level).sum())
    assert len(Tenet(pair).detect(picture(20), bank, threshold=0.0, limit=3)) == 3


@pytest.mark.parametrize("single", [True, False])
def test_a_thorough_look_at_a_mirror_image_is_the_mirror_image_of_the_look(
    pair: PairRuntime, single: bool
) -> None:
    """Of a single network, and of a pair, which then has four opinions."""
    model = Tenet(pair.one if single else pair)
    bank = ClassBank(model)
    bank.register("thing", [(picture(1), tuple(CORNERS.tolist())), (picture(2), tuple(CORNERS.tolist()))])
    query = picture(20)
    ways = [
        model.detect(np.ascontiguousarray(one), bank, threshold=0.0, size="thorough")
        for one in (query, query[:, ::-1])
    ]
    assert len(ways[0]) > 0
    x1, y1, x2, y2 = ways[1].boxes.T
    back = np.stack([query.shape[1] - x2, y1, query.shape[1] - x1, y2], 1)
    assert np.allclose(ways[0].scores, ways[1].scores, atol=1e-5)
    assert np.allclose(ways[0].boxes[:5], back[:5], atol=0.01)
    plain = model.detect(query, bank, threshold=0.0)
    assert not np.array_equal(plain.scores[:5], ways[0].scores[:5])


def test_members_must_be_of_one_kind(pair: PairRuntime) -> None:
    other = TorchRuntime(build_detector(replace(CONFIG, support_size=CONFIG.support_size + 16)))
    with pytest.raises(WeightsError, match="expected two models with crops and regions of the same sides"):
        PairRuntime(pair.one, other, "two")


# ---- files


def test_the_shipped_pair() -> None:
    runtime = load_runtime("tenet_pair")
    assert isinstance(runtime, PairRuntime)
    assert (runtime.one.name, runtime.two.name) == ("tenet_lite0", "tenet_lite2")
    assert runtime.fingerprint != load_runtime("tenet_lite2").fingerprint


def test_what_wants_a_single_network_says_which() -> None:
    with pytest.raises(WeightsError, match="this is a pair; take tenet_lite0 or tenet_lite2"):
        load(model_file("tenet_pair"))


@pytest.mark.parametrize("members", [None, ["tenet_lite0"], ["tenet_lite0", 3]])
def test_a_pair_that_is_none(tmp_path: Path, members: object) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"format": "tenet-pair-1", "members": members}))
    with pytest.raises(WeightsError, match="expected the names of two models"):
        load_runtime(path)


def test_members_of_a_pair_are_seen_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"format": "tenet-pair-1", "members": ["runs/a", "tenet_lite0"]}))
    with pytest.raises(WeightsError, match="runs/a"):
        load_runtime(path)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_a_class_that_one_member_alone_learned(pair: PairRuntime, length: int) -> None:
    """As many parts of zeros stand for the other, and both come apart again."""
    one, two = (
        replace(member.encode_shots(shots()), closed_form=np.ones(member.widths.learned[length], np.float32))
        for member in pair.members
    )
    for features in ((one, replace(two, closed_form=None)), (replace(one, closed_form=None), two)):
        apart = take_apart(side_by_side(features, widths_of(pair)), widths_of(pair))
        for own, back, member in zip(features, apart, pair.members, strict=True):
            assert back.closed_form is not None
            assert len(back.closed_form) == member.widths.learned[length]
            assert back.closed_form.any() == (own.closed_form is not None)


def test_more_than_the_usual_number_is_asked_of_both(pair: PairRuntime) -> None:
    bank = ClassBank(pair)
    bank.register("thing", [picture(1)])
    asked = Request(pair, bank, 0.0, None, "auto", True, 2000)
    assert [member.limit for member in asked.members] == [2000, 2000]
    assert [member.limit for member in Request(pair, bank, 0.0, None, "auto", True, 10).members] == [300, 300]
