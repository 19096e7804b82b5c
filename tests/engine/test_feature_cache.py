"""Cached = uncached, to half precision; what is stale or broken is found and made anew."""

from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch
from tiny_runs import TINY, tiny_recipe, train

from tenet.data.dataset import Dataset
from tenet.data.episodes import EpisodeSource
from tenet.data.formats import read_dataset
from tenet.engine.batch import episode_losses
from tenet.engine.cached_episodes import CachedEpisodes, cached_losses
from tenet.engine.feature_cache import FeatureCache, cache_key
from tenet.engine.jobs import Options, open_cache
from tenet.engine.locks import claimed
from tenet.engine.view_episodes import ViewEpisodes
from tenet.errors import ConfigError
from tenet.models.build import build_detector
from tenet.models.detector import TENET
from tenet.presets import ablations


@pytest.fixture
def dataset(root: Path) -> Dataset:
    return read_dataset(root / "annotations.json")


@pytest.fixture(params=["paper", "neck and cosine prior"])
def detector(request: pytest.FixtureRequest) -> TENET:
    torch.manual_seed(0)
    config = TINY
    if request.param != "paper":
        config = replace(config, neck=True, head=replace(config.head, cosine_prior=True))
    return build_detector(config).eval()


def views_of(dataset: Dataset) -> ViewEpisodes:
    settings = replace(tiny_recipe().episodes, aspect=(0.75, 1.33), query_sizes=(48, 64))
    return ViewEpisodes(EpisodeSource(dataset, settings), 2, 2)


def test_cached_is_uncached(dataset: Dataset, detector: TENET, tmp_path: Path) -> None:
    views = views_of(dataset)
    cache = FeatureCache(tmp_path, detector, views)
    wanted = views.all_views()
    for view in (wanted[0], wanted[-1]):
        look = views.look(view)
        picture = torch.from_numpy(look.picture).permute(2, 0, 1).float()[None]
        with torch.no_grad():
            exact = detector.encoder.stages(picture)
        found = cache[view]
        assert np.array_equal(found.boxes, look.boxes)
        assert found.size == look.picture.shape[:2]
        torch.testing.assert_close(found.stages.c4, exact.c4, rtol=1e-3, atol=1e-3)
        assert found.stages.c5 is not None
        assert exact.c5 is not None
        torch.testing.assert_close(found.stages.c5, exact.c5, rtol=1e-3, atol=1e-3)
    numbers = range(3)
    torch.manual_seed(0)
    cached = cached_losses(detector, [CachedEpisodes(cache)[n] for n in numbers])
    torch.manual_seed(0)
    exact_losses = episode_losses(detector, [views[n] for n in numbers])
    assert cached.keys() == exact_losses.keys()
    for name in cached:
        torch.testing.assert_close(cached[name], exact_losses[name], rtol=0.02, atol=0.01)


def test_turned_and_recoloured_views_are_others(dataset: Dataset) -> None:
    detector, keys = build_detector(tiny_recipe().model), set()
    for change in ({}, {"turn": 0.5}, {"recolour": 0.5}, {"recolour": 0.6}):
        settings = replace(tiny_recipe().episodes, **change)
        keys.add(cache_key(detector, ViewEpisodes(EpisodeSource(dataset, settings), 1, 1)))
    assert len(keys) == 4


def test_cut_outs_and_mosaics_are_views(dataset: Dataset, tmp_path: Path) -> None:
    """They keep the labels of all their pictures, and one that changed makes every mosaic of it stale."""
    detector = build_detector(TINY).eval()
    settings = replace(tiny_recipe().episodes, zoom=(0.5, 0.9), mosaic=0.5, others="any")
    views = ViewEpisodes(EpisodeSource(dataset, settings), 2, 1)
    members = [len(views.records(view)) for view in views.all_views() if view.box < 0]
    assert {1, 4} == set(members)
    cache = FeatureCache(tmp_path, detector, views)
    cache.fill()
    for number in range(6):
        cached, drawn = CachedEpisodes(cache)[number], views[number]
        assert np.array_equal(cached.target.boxes.numpy(), drawn.boxes)
        assert np.array_equal(cached.target.ways.numpy(), drawn.ways)
        assert np.array_equal(cached.target.ignore.numpy(), drawn.ignore)
    [mosaic, *_] = [view for view in views.all_views() if len(views.records(view)) == 4]
    last = views.records(mosaic)[-1]
    changed = replace(last, pixels=last.picture()[::-1].copy())
    records = tuple(changed if record is last else record for record in dataset.records)
    fresh = ViewEpisodes(EpisodeSource(replace(dataset, records=records), settings), 2, 1)
    assert mosaic in FeatureCache(tmp_path, detector, fresh).missing(fresh.all_views())


def test_two_fill_one_folder(dataset: Dataset, tmp_path: Path) -> None:
    detector = build_detector(TINY).eval()
    views = views_of(dataset)
    one, other = FeatureCache(tmp_path, detector, views), FeatureCache(tmp_path, detector, views)
    both = one.fill(part=(0, 2)) + other.fill(part=(1, 2))
    assert both == len(views.all_views())
    assert FeatureCache(tmp_path, detector, views).missing(views.all_views()) == []


def test_seeds_share_views_and_pools(dataset: Dataset) -> None:
    settings = tiny_recipe().episodes
    one, other = (EpisodeSource(dataset, settings, seed, queries=2) for seed in (0, 1))
    assert one.query_rows() == other.query_rows()
    assert len(one.query_rows()) < len(EpisodeSource(dataset, settings).query_rows())
    view = ViewEpisodes(one, 2, 2).all_views()[0]
    looks = [ViewEpisodes(source, 2, 2).look(view) for source in (one, other)]
    assert np.array_equal(looks[0].picture, looks[1].picture)


def test_filled_once_then_only_what_is_stale(dataset: Dataset, tmp_path: Path) -> None:
    detector = build_detector(TINY).eval()
    views = views_of(dataset)
    assert FeatureCache(tmp_path, detector, views).fill() == len(views.all_views())
    assert FeatureCache(tmp_path, detector, views).fill() == 0
    first = dataset.records[views.source.query_rows()[0]]
    changed = replace(first, pixels=first.picture()[::-1].copy())
    records = tuple(changed if record is first else record for record in dataset.records)
    fresh = views_of(replace(dataset, records=records))
    stale = FeatureCache(tmp_path, detector, fresh).missing(fresh.all_views())
    assert stale
    assert {view.picture for view in stale} == {first.id}


def test_broken_maps_are_made_anew(dataset: Dataset, tmp_path: Path) -> None:
    detector = build_detector(TINY).eval()
    views = views_of(dataset)
    cache = FeatureCache(tmp_path, detector, views)
    cache.fill()
    view = views.all_views()[0]
    before = cache[view].stages.c4.clone()
    shard = cache.folder / "00000.bin"
    content = bytearray(shard.read_bytes())
    content[10] ^= 255
    shard.write_bytes(content)
    assert torch.equal(FeatureCache(tmp_path, detector, views)[view].stages.c4, before)
    shard.write_bytes(content[: len(content) // 2])
    truncated = FeatureCache(tmp_path, detector, views)
    assert truncated.fill() > 0
    assert torch.equal(truncated[view].stages.c4, before)
    (cache.folder / "00000.json").write_text("[[")
    assert torch.equal(FeatureCache(tmp_path, detector, views)[view].stages.c4, before)


def test_another_encoder_or_transform_has_another_key(dataset: Dataset) -> None:
    torch.manual_seed(0)
    one, other = build_detector(TINY), build_detector(TINY)
    views = views_of(dataset)
    assert cache_key(one, views) != cache_key(other, views)
    bigger = EpisodeSource(dataset, replace(views.source.settings, support_size=64))
    assert cache_key(one, views) != cache_key(one, ViewEpisodes(bigger, 2, 2))


def test_an_encoder_that_learns_cannot_be_cached(dataset: Dataset, tmp_path: Path) -> None:
    learning = build_detector(replace(TINY, encoder=replace(TINY.encoder, frozen=False)))
    with pytest.raises(ConfigError, match="frozen = true"):
        FeatureCache(tmp_path, learning, views_of(dataset))


def test_a_run_with_the_cache(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    train(tiny_recipe(cache=True, iterations=3, shot_pool=3), root, tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints" / "step_00000003.json").is_file()
    assert list((tmp_path / "runs" / "cache").glob("*/*.bin"))


def test_a_short_run_needs_few_views(dataset: Dataset) -> None:
    views = ViewEpisodes(views_of(dataset).source, 50, 50)
    few = views.views_of(3)
    assert 3 <= len(few) <= 3 * (1 + 2 * 2)
    assert set(few) <= set(views.all_views())
    assert len(views.views_of(10**6)) == len(views.all_views())
    for episodes in (3, 10**6):
        alone = views.views_of(episodes, with_shots=False)
        assert alone == [view for view in views.views_of(episodes) if view.box < 0]


def test_variants_of_one_encoder_share_a_cache(dataset: Dataset) -> None:
    """Ablations fill it once: with the cosine prior or without, whatever the heads."""
    keys = set()
    for model in ablations(TINY)["ancestors"].values():
        torch.manual_seed(0)
        keys.add(cache_key(build_detector(model), views_of(dataset)))
    assert len(keys) == 1
    torch.manual_seed(0)
    neck = build_detector(replace(TINY, neck=True))
    assert cache_key(neck, views_of(dataset)) not in keys, "queries of a neck have one map more"


def test_only_who_wants_the_same_maps_waits(
    dataset: Dataset, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A run waits, and says so, while another fills the same cache; one with other maps does not."""
    detector, views = build_detector(TINY).eval(), views_of(dataset)
    options = Options(out=tmp_path, cache=tmp_path / "cache")
    key = cache_key(detector, views)
    with claimed(options.cache / "another.lock"):
        open_cache(detector, views, options, 2)
    assert capfd.readouterr().err == ""
    with claimed(options.cache / f"{key}.lock"):
        run = Thread(target=open_cache, args=(detector, views, options, 2))
        run.start()
        run.join(0.5)
        assert run.is_alive()
        assert f"{key}: another run fills this cache" in capfd.readouterr().err
    run.join(60)
    assert not run.is_alive()
