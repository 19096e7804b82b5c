"""Closed-form objectness in an evaluation: it is what the detector fits by hand, and it reaches the match."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from evaluation_parts import Colours, digest, settings_for, small_sets
from tiny_detector import TINY
from torch import Tensor

from tenet.data.dataset import Dataset
from tenet.data.episodes import support_set
from tenet.data.shots import draw_shots
from tenet.data.transforms import resize
from tenet.engine.evaluate import evaluate
from tenet.engine.evaluation_detector import ready
from tenet.engine.evaluation_settings import EvaluationSettings
from tenet.engine.evaluation_shots import encode_lists
from tenet.errors import DataError
from tenet.models.build import build_detector
from tenet.models.detector import TENET
from tenet.models.supports import Supports

CLOSED = replace(TINY, rpn=replace(TINY.rpn, closed_form=True, post_nms=(40, 8)))
SIZE = (48, 90)
"""Other than the pictures' own 96 × 64 px: the boxes of the shots are scaled with them."""


def tensor(pixels: Any) -> Tensor:
    return torch.from_numpy(pixels).permute(2, 0, 1).float()


def by_hand(detector: TENET, dataset: Dataset, name: str, shots: int) -> Tensor:
    """What a user would write who has the pictures and the boxes of the shots of seed 0."""
    listed = draw_shots(dataset, shots, 0, [name])
    [(crops, boxes)] = support_set(dataset, listed, TINY.support_size).values()
    rows = torch.arange(shots).view(1, 1, -1)
    classes = detector.encode_supports(Supports([tensor(crop) for crop in crops], torch.tensor(boxes), rows))
    records = {record.id: record for record in dataset.records}
    found: dict[str, tuple[Any, list[Any]]] = {}
    for ref in listed.classes[name]:
        record = records[ref.picture]
        pixels, scaled = resize(record.picture(), record.target.boxes, 72, 48)
        found.setdefault(ref.picture, (pixels, []))[1].append(scaled[ref.box])
    images = detector.encode_images([tensor(pixels) for pixels, _ in found.values()])
    places = [torch.stack([torch.as_tensor(box) for box in own]) for _, own in found.values()]
    return detector.fit_objectness(images, places, classes)


def test_the_prior_is_what_one_fits_by_hand() -> None:
    """To a hundredth: crops in another batch differ in their last bits, which the fit enlarges."""
    _, support = small_sets()
    detector = build_detector(CLOSED)
    names = support.classes[:2]
    settings = EvaluationSettings(novel=names, query_size=SIZE)
    lists = [draw_shots(support, number, 0, names) for number in (1, 3)]
    with ready(detector, 0.0):
        encoded = encode_lists(detector, support, names, lists, settings)
        for k, name in enumerate(names):
            one, three = (own.closed_form[0, k] for own in encoded if own.closed_form is not None)
            for prior, other, shots in ((one, three, 1), (three, one, 3)):
                expected = by_hand(detector, support, name, shots)
                most = float(expected.abs().max())
                assert most > 0
                assert (prior - expected).abs().max() < 0.01 * most
                assert (other - expected).abs().max() > 0.05 * most


def test_it_reaches_the_match_and_can_be_left_out() -> None:
    test, support = small_sets()
    detector = build_detector(CLOSED)
    settings = settings_for(test, shots=(2,), seeds=(0,), novel=test.classes[:2], limit=3)
    on = evaluate(detector, test, support, settings)
    off = evaluate(detector, test, support, replace(settings, objectness=False))
    assert on.objectness
    assert not off.objectness
    plain = build_detector(replace(CLOSED, rpn=replace(CLOSED.rpn, closed_form=False)))
    plain.load_state_dict(detector.state_dict(), strict=False)
    without = evaluate(plain, test, support, settings)
    assert not without.objectness
    boxes = [done.example.found.boxes for done in (on, off, without)]
    assert boxes[1].shape == boxes[2].shape
    assert (boxes[1] == boxes[2]).all()
    assert boxes[0].shape != boxes[1].shape or (boxes[0] != boxes[1]).any()


def test_each_picture_of_a_shot_is_encoded_once_for_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    test, support = small_sets()
    detector, seen = build_detector(CLOSED), Counter[str]()
    encode = detector.encode_images

    def counting(images: list[Tensor]) -> Any:
        seen.update(digest(image) for image in images)
        return encode(images)

    monkeypatch.setattr(detector, "encode_images", counting)
    settings = settings_for(test, shots=(1, 2), seeds=(0,), limit=1)
    done = evaluate(detector, test, support, settings)
    shot_pictures = {picture for draw in done.plan.draws for picture in draw.list.pictures()}
    assert len(shot_pictures) > 1
    assert set(seen.values()) == {1}
    assert len(seen) == len(shot_pictures) + len(done.plan.test)


def test_the_switch_is_part_of_what_makes_two_evaluations_the_same(tmp_path: Path) -> None:
    test, support = small_sets()
    settings = settings_for(test)
    evaluate(Colours(), test, support, settings, out=tmp_path)
    with pytest.raises(DataError, match="other settings"):
        evaluate(Colours(), test, support, replace(settings, objectness=False), out=tmp_path)
