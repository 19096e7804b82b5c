"""An encoder that learns with the boxes, and keeps its last map."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from test_learn_parts import BOXES
from tiny_runs import same_parameters, tiny_recipe, train

from tenet.engine.batch import query_losses, to_picture
from tenet.engine.checkpoint import load, load_detector, save
from tenet.engine.jobs import Options
from tenet.engine.kept_maps import KeptMaps
from tenet.engine.known_classes import known_classes
from tenet.engine.meta_train import episode_source, new_detector, prepare
from tenet.engine.pack import pack
from tenet.engine.start_from import start_from
from tenet.errors import ConfigError
from tenet.models.build import build_detector
from tenet.models.detector import UNDER_BOXES
from tenet.presets import preset
from tenet.recipe import Recipe

LEARNING = replace(
    BOXES,
    encoder=replace(BOXES.encoder, frozen=False, frozen_stages=2),
    head=replace(BOXES.head, cosine_prior=True),
)


def recipe(keep_maps: float = 0.0, known_classes: float = 0.0) -> Recipe:
    own = replace(
        tiny_recipe(iterations=6, learn="boxes", lr=0.01, warmup=0, optimizer="adamw"), model=LEARNING
    )
    return replace(own, train=replace(own.train, keep_maps=keep_maps, known_classes=known_classes))


def moved(after: torch.nn.Module, before: torch.nn.Module) -> set[str]:
    first = dict(before.named_parameters())
    return {name for name, value in after.named_parameters() if not torch.equal(value, first[name])}


def test_boxes_teach_an_encoder_that_is_not_frozen(root: Path, tmp_path: Path) -> None:
    own = recipe()
    changed = moved(train(own, root, tmp_path / "run"), new_detector(own, root))
    assert any(name.startswith("encoder.backbone.") for name in changed)
    assert all(name.startswith(UNDER_BOXES) for name in changed)


def test_kept_maps_move_less(root: Path, tmp_path: Path) -> None:
    """At the start they cost nothing; held, the encoder's last map stays nearer to what it was."""
    scene = to_picture(torch.randint(0, 255, (64, 96, 3), dtype=torch.uint8).numpy(), "cpu")
    distance = {}
    for weight in (0.0, 100.0):
        own = recipe(keep_maps=weight)
        kept = KeptMaps.of(new_detector(own, root).eval(), 1.0)
        after = train(own, root, tmp_path / f"run{weight}").eval()
        distance[weight] = kept.losses([scene], after.encode_images([scene]))["kept_maps"].item()
    assert 0 < distance[100.0] < distance[0.0] / 2
    start = new_detector(recipe(), root).eval()
    same = KeptMaps.of(start, 5.0).losses([scene], start.encode_images([scene]))
    assert same["kept_maps"].item() == pytest.approx(0, abs=1e-5)


def test_held_maps_pass_their_gradient_to_the_encoder_and_the_prior_none(root: Path) -> None:
    detector = new_detector(recipe(), root).train()
    other = KeptMaps.of(new_detector(replace(recipe(), seed=5), root), 1.0)
    scene = torch.rand(3, 64, 64) * 255
    images = detector.encode_images([scene])
    regions = detector.encoder.regions(images[0].maps, torch.tensor([[0.0, 0, 40, 40]]))
    assert not regions.raw.requires_grad
    other.losses([scene], images)["kept_maps"].backward()
    gradients = [p.grad for n, p in detector.named_parameters() if n.startswith("encoder.backbone.")]
    assert any(g is not None and g.abs().sum() > 0 for g in gradients)


def test_naming_known_classes_teaches_the_encoder_to_name_them(root: Path, tmp_path: Path) -> None:
    """The loss of naming falls further than where boxes alone are learned, on the queries learned from."""
    source, lost = episode_source(recipe(), root)[0], {}
    for weight in (0.0, 20.0):
        own = recipe(known_classes=weight)
        job, _ = prepare(own, Options(tmp_path / f"job{weight}", root))
        known = known_classes(job.detector, source)
        after = train(own, root, tmp_path / f"run{weight}").eval()
        queries = [source.query(index) for index in range(12)]
        torch.manual_seed(0)
        lost[weight] = query_losses(after, queries, known=known)["known_classes"].item()
    assert lost[20.0] < lost[0.0]


def test_a_query_by_itself_is_that_of_its_episode(root: Path) -> None:
    source, _ = episode_source(recipe(), root)
    for index in range(5):
        query, episode = source.query(index), source[index]
        assert np.array_equal(query.picture, episode.query)
        assert np.array_equal(query.boxes, episode.boxes)
        names = [source.dataset.classes[label] for label in query.labels.tolist()]
        ways = [episode.classes[way] if way >= 0 else None for way in episode.ways.tolist()]
        assert all(way is None or way == name for way, name in zip(ways, names, strict=True))


def test_a_run_that_names_classes_resumes_as_if_it_had_not_stopped(root: Path, tmp_path: Path) -> None:
    own = recipe(keep_maps=1.0, known_classes=1.0)
    whole = train(own, root, tmp_path / "whole")
    out = tmp_path / "stopped"
    train(own, root, out)
    for suffix in (".json", ".safetensors"):  # as it was after four of six steps
        (out / "checkpoints" / f"step_00000006{suffix}").unlink()
    assert same_parameters(whole, train(own, root, out, resume=True))


def test_keeping_maps_without_learning_ones_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"train.keep_maps: expected train.learn = \"boxes\""):
        replace(recipe(1.0), model=BOXES)
    with pytest.raises(ConfigError, match=r"train\.keep_maps"):
        replace(recipe(), train=replace(recipe(1.0).train, learn="all"))
    blind = replace(LEARNING, head=replace(LEARNING.head, cosine_prior=False))
    with pytest.raises(ConfigError, match=r"cosine_prior"):
        replace(recipe(1.0), model=blind)
    with pytest.raises(ConfigError, match=r"keep_maps: expected at least 0, got -1"):
        recipe(-1.0)
    with pytest.raises(ConfigError, match=r"train.known_classes: expected train.learn = \"boxes\""):
        replace(recipe(0.0, 1.0), model=BOXES)


def test_the_encoder_of_a_package_is_packed_once_it_has_learned(tmp_path: Path) -> None:
    """A packed model whose encoder learned needs no package, and is not mistaken for one on the package's
    weights."""
    base = preset("tenet_lite0")
    own = replace(tiny_recipe(), model=replace(base, encoder=replace(base.encoder, frozen=False)))
    detector = build_detector(own.model).eval()
    with torch.no_grad():
        for name, parameter in detector.named_parameters():
            if name.startswith("encoder.backbone.") and parameter.requires_grad:
                parameter.mul_(1.1)
    written = save(tmp_path, 1, detector, torch.optim.SGD([torch.zeros(1)], 0.1), own)
    packed = pack(load(written), tmp_path / "model")
    scene = torch.rand(3, 64, 64) * 255
    with torch.no_grad():
        [one], [two] = detector.encode_images([scene]), load_detector(packed).encode_images([scene])
    assert one.maps.raw5 is not None
    assert two.maps.raw5 is not None
    assert torch.allclose(one.maps.raw5, two.maps.raw5, atol=0.05 * float(one.maps.raw5.abs().max()))
    with pytest.raises(ConfigError, match=r"the encoder of .* learned; set model.encoder.weights = \"none\""):
        start_from(build_detector(base), str(packed), [])
    started = build_detector(replace(base, encoder=replace(base.encoder, weights="none")))
    assert start_from(started, str(packed), [])


def test_a_learned_encoder_is_packed_whole_and_frozen(root: Path, tmp_path: Path) -> None:
    own = recipe(keep_maps=1.0)
    trained = train(own, root, tmp_path / "run").eval()
    checkpoints = sorted((tmp_path / "run" / "checkpoints").glob("*.json"))
    packed = pack(load(checkpoints[-1]), tmp_path / "model")
    again = load_detector(packed)
    assert again.config.encoder.frozen
    assert again.config.encoder.weights == "none"
    assert not any(p.requires_grad for n, p in again.named_parameters() if n.startswith("encoder.backbone."))
    scene = torch.rand(3, 64, 96) * 255
    with torch.no_grad():
        [one], [two] = trained.encode_images([scene]), again.encode_images([scene])
    assert one.maps.raw5 is not None
    assert two.maps.raw5 is not None
    assert torch.allclose(one.maps.raw5, two.maps.raw5, rtol=0.05, atol=0.05 * float(one.maps.raw5.std()))
