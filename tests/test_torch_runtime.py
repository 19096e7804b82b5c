"""The network behind the runtime's calls, bank and predictor on top of it; calibration."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_detector import TINY

from tenet.bank import ClassBank
from tenet.errors import WeightsError
from tenet.models.build import build_detector
from tenet.predictor import Tenet
from tenet.runtime import torch_runtime
from tenet.runtime.calibration import Calibration
from tenet.runtime.loading import load_runtime
from tenet.runtime.shipped import shipped_models
from tenet.runtime.torch_runtime import TorchRuntime
from tenet.structures import Shot

CONFIG = replace(TINY, rpn=replace(TINY.rpn, closed_form=True))


def make_runtime(seed: int = 0) -> TorchRuntime:
    torch.manual_seed(seed)
    return TorchRuntime(build_detector(CONFIG))


def make_picture(seed: int = 0, height: int = 96, width: int = 128) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def make_shots(scene: bool) -> list[Shot]:
    crop_box, box = np.array([4, 4, 60, 60], np.float32), np.array([10, 10, 60, 60], np.float32)
    return [
        Shot(make_picture(seed, 64, 64), crop_box, *((make_picture(seed + 10), box) if scene else ()))
        for seed in range(3)
    ]


def test_scenes_teach_what_counts_as_a_thing() -> None:
    runtime = make_runtime()
    with_scene, bare = runtime.encode_shots(make_shots(True)), runtime.encode_shots(make_shots(False))
    assert with_scene.closed_form is not None
    assert with_scene.ranks is not None
    assert (with_scene.ranks >= 0).all()
    assert bare.closed_form is None
    assert bare.ranks is not None
    assert (bare.ranks == -1).all()
    assert np.array_equal(with_scene.phi, bare.phi)


def test_several_shots_of_one_scene() -> None:
    runtime = make_runtime()
    crop_box, scene = np.array([4, 4, 60, 60], np.float32), make_picture(7)
    boxes = np.array([[5, 5, 40, 40], [60, 20, 100, 70]], np.float32)
    shots = [Shot(make_picture(i, 64, 64), crop_box, scene, box) for i, box in enumerate(boxes)]
    features = runtime.encode_shots(shots)
    assert features.closed_form is not None
    assert features.ranks is not None
    assert len(features.ranks) == 2


def test_batch_is_single() -> None:
    runtime = make_runtime()
    classes = [runtime.encode_shots(make_shots(True)), runtime.encode_shots(make_shots(False)[:1])]
    pictures = [make_picture(20), make_picture(21, 64, 80)]
    together = runtime.match(runtime.encode_images(pictures), classes)
    for picture, found in zip(pictures, together, strict=True):
        [alone] = runtime.match(runtime.encode_images([picture]), classes)
        assert np.allclose(alone.boxes, found.boxes, atol=1e-3)
        assert np.allclose(alone.scores, found.scores, atol=1e-5)


def test_classes_that_change_are_seen() -> None:
    """The stacked classes are kept between calls, but not longer than they are asked for."""
    runtime = make_runtime()
    one, other = runtime.encode_shots(make_shots(True)), runtime.encode_shots(make_shots(False)[:1])
    images = runtime.encode_images([make_picture(20)])
    [first] = runtime.match(images, [one])
    runtime.match(images, [other])
    [again] = runtime.match(images, [one])
    assert np.array_equal(first.scores, again.scores)


def test_explanations_have_the_papers_maps() -> None:
    runtime = make_runtime()
    features = runtime.encode_shots(make_shots(False))
    [image] = runtime.encode_images([make_picture(20)])
    boxes = np.array([[0, 0, 50, 50], [20, 20, 100, 90]], np.float32)
    first, second = runtime.explain(image, features, boxes)
    assert set(first.region) == {"fo", "ho", "fo_ho", "spatial"}
    assert len(first.shots) == len(features)
    assert first.pairs.shape == (3, 49, 49)
    assert not np.allclose(first.cosines, second.cosines)


def test_a_bank_and_a_picture_through_the_network() -> None:
    model = Tenet(make_runtime())
    bank = ClassBank(model)
    bank.register("thing", [(make_picture(1), (10, 10, 60, 60)), make_picture(2)])
    found = model.detect(make_picture(3, 200, 300), bank, threshold=0.0)
    assert len(found)
    assert set(found.names.tolist()) == {"thing"}
    assert (found.boxes[:, 2:] <= (300, 200)).all()


def test_another_seed_is_another_model(tmp_path: Path) -> None:
    bank = ClassBank(Tenet(make_runtime(0)))
    bank.register("thing", [make_picture(1)])
    bank.save(tmp_path / "bank.safetensors")
    with pytest.raises(WeightsError):
        ClassBank.load(tmp_path / "bank.safetensors", Tenet(make_runtime(1)))


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(WeightsError, match="expected one of"):
        load_runtime("no_such_model")


def test_calibration_keeps_the_order() -> None:
    calibration = Calibration((0.1, 0.5, 0.9), (0.0, 0.6, 0.6), 0.3)
    scores = np.linspace(0, 1, 101, dtype=np.float32)
    told = calibration(scores)
    assert (np.diff(told) > 0).all()
    assert abs(float(told[50]) - 0.6) < 0.01
    assert Calibration.from_json(calibration.to_json()) == calibration


@pytest.mark.parametrize(
    ("raw", "probability"),
    [((0.5, 0.1), (0.1, 0.2)), ((0.1, 0.5), (0.2, 0.1)), ((0.1,), ()), ((0.1,), (2.0,))],
)
def test_bad_calibration_is_refused(raw: tuple[float, ...], probability: tuple[float, ...]) -> None:
    with pytest.raises(WeightsError):
        Calibration(raw, probability)


def draw_disc() -> np.ndarray:
    y, x = np.mgrid[:80, :80]
    inside = (x - 40) ** 2 + (y - 40) ** 2 < 30**2
    return np.where(inside[..., None], (220, 40, 40), (250, 250, 250)).astype(np.uint8)


@pytest.mark.parametrize("name", shipped_models())
def test_nothing_but_the_threshold_that_is_asked_for_cuts_scores(name: str) -> None:
    """Ranking needs the tail: a floor of the network's own would take it away unseen."""
    model = Tenet(load_runtime(name).uncalibrated())
    bank = ClassBank(model)
    bank.register("disc", [draw_disc()])
    picture = make_picture(2, 240, 320)
    scores = model.detect(picture, bank, threshold=0.0).scores
    assert len(scores)
    assert scores.min() < 0.04
    assert (model.detect(picture, bank, threshold=0.02).scores >= 0.02).all()


def test_many_shots_are_left_out_by_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many fits as folds, not as shots, and every shot has its rank."""
    fits: list[int] = []
    kept = torch_runtime.fit_cells
    monkeypatch.setattr(
        torch_runtime, "fit_cells", lambda cells, shots, *rest: fits.append(0) or kept(cells, shots, *rest)
    )
    crop_box, box = np.array([4, 4, 60, 60], np.float32), np.array([10, 10, 60, 60], np.float32)
    shots = [Shot(make_picture(i, 64, 64), crop_box, make_picture(i + 10), box) for i in range(12)]
    features = make_runtime().encode_shots(shots)
    assert len(fits) == torch_runtime.FOLDS
    assert features.ranks is not None
    assert (features.ranks >= 0).all()


def test_crops_among_the_shots_change_no_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two shots with their pictures are left out one by one, wherever they stand among crops."""
    fits: list[int] = []
    kept = torch_runtime.fit_cells
    monkeypatch.setattr(
        torch_runtime,
        "fit_cells",
        lambda cells, shots, *rest: fits.append(len(cells)) or kept(cells, shots, *rest),
    )
    shown, crops = make_shots(True)[:2], [*make_shots(False), make_shots(False)[0]]
    make_runtime().encode_shots([shown[0], *crops, shown[1]])
    assert fits == [1, 1]


def test_a_shot_of_less_than_a_pixel_teaches_no_boxes() -> None:
    """A thin line in a large picture: no box lies around it, and the class is registered all the same."""
    config = replace(CONFIG, box_quality=replace(CONFIG.box_quality, enabled=True, fitted=True))
    torch.manual_seed(0)
    bank = ClassBank(TorchRuntime(build_detector(config)))
    bank.register("line", [(make_picture(3, 90, 4000), (100, 40, 300, 41))])
    closed_form = bank.features("line").closed_form
    assert closed_form is not None
    assert np.isfinite(closed_form).all()
