"""Episodes: the laws of spec 9, and that seed and index alone decide."""

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tenet.cli import main
from tenet.data.dataset import Dataset
from tenet.data.episode_settings import EpisodeSettings
from tenet.data.episodes import Episode, EpisodeSource, PictureSource, support_set
from tenet.data.formats import read_dataset
from tenet.data.loader import load
from tenet.data.shots import draw_shots
from tenet.data.synthetic import synthetic_dataset, write_synthetic
from tenet.errors import ConfigError, DataError, InputError

SMALL = {"query_sizes": (96,), "query_longer": 160, "support_size": 48, "min_shot_side": 8}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return synthetic_dataset(images=30, classes=8, size=(96, 72))


def same(a: Episode, b: Episode) -> bool:
    arrays = ("query", "boxes", "ways", "ignore", "crops", "crop_boxes", "shot_mask")
    texts = ("classes", "query_id", "shot_ids")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays) and all(
        getattr(a, name) == getattr(b, name) for name in texts
    )


def test_contrastive_episodes(dataset: Dataset) -> None:
    source = EpisodeSource(dataset, EpisodeSettings(shots=3, **SMALL))  # type: ignore[arg-type]
    for index in range(30):
        episode = source[index]
        record = next(record for record in dataset.records if record.id == episode.query_id)
        shown = {dataset.classes[label] for label in record.target.labels}
        assert episode.classes[0] in shown
        assert episode.classes[1] not in shown
        assert 0 in episode.ways
        assert 1 not in episode.ways
        assert len(episode.boxes) == len(record.target)
        assert episode.crops.shape == (2, 3, 48, 48, 3)
        assert min(episode.query.shape[:2]) == 96
        for way, shots in enumerate(episode.shot_ids):
            assert len(set(shots)) == len(shots) == episode.shot_mask[way].sum()
            assert all(picture != episode.query_id for picture, _ in shots)
        # torch warns of arrays that cannot be written to, and a set's own pixels must never be.
        assert episode.query.flags.writeable
        assert not np.shares_memory(episode.query, record.picture())
        height, width = episode.query.shape[:2]
        assert (episode.boxes >= 0).all()
        assert (episode.boxes <= [width, height, width, height]).all()


def test_boxes_lie_on_the_objects_of_the_query(dataset: Dataset) -> None:
    plain = EpisodeSource(dataset, EpisodeSettings(shots=1, flip=0, **SMALL))[3]  # type: ignore[arg-type]
    mirrored = EpisodeSource(dataset, EpisodeSettings(shots=1, flip=1, **SMALL))[3]  # type: ignore[arg-type]
    width = plain.query.shape[1]
    assert np.array_equal(mirrored.query, plain.query[:, ::-1])
    assert np.allclose(mirrored.boxes[:, 0], width - plain.boxes[:, 2])
    assert np.array_equal(mirrored.crops, plain.crops[:, :, :, ::-1])
    assert np.allclose(mirrored.crop_boxes[..., 0], 48 - plain.crop_boxes[..., 2])


def test_queries_are_turned_and_recoloured_as_often_as_asked(dataset: Dataset) -> None:
    plain, turned, recoloured = (
        EpisodeSource(dataset, EpisodeSettings(shots=1, flip=0, **SMALL, **change))[3]  # type: ignore[arg-type]
        for change in ({}, {"turn": 1.0}, {"recolour": 1.0})
    )
    assert turned.query.shape[:2] in (plain.query.shape[:2], plain.query.shape[1::-1])
    assert not np.array_equal(turned.query, plain.query)
    assert len(turned.boxes) == len(plain.boxes)
    assert (turned.boxes[:, 2:] > turned.boxes[:, :2]).all()
    assert np.array_equal(recoloured.boxes, plain.boxes)
    assert not np.array_equal(recoloured.query, plain.query)
    with pytest.raises(ConfigError, match=r"episodes.turn: expected from 0 to 1, got 2"):
        EpisodeSettings(turn=2)


def test_any_ways_label_every_class_of_the_episode(dataset: Dataset) -> None:
    settings = EpisodeSettings(ways=8, shots=1, others="any", **SMALL)  # type: ignore[arg-type]
    episode = EpisodeSource(dataset, settings)[0]
    record = next(record for record in dataset.records if record.id == episode.query_id)
    names = [dataset.classes[label] for label in record.target.labels]
    assert [episode.classes[way] for way in episode.ways] == names


def test_uneven_shots(dataset: Dataset) -> None:
    source = EpisodeSource(dataset, EpisodeSettings(shots=4, min_shots=1, **SMALL))  # type: ignore[arg-type]
    counts = {int(row.sum()) for index in range(25) for row in source[index].shot_mask}
    assert counts == {1, 2, 3, 4}
    few = EpisodeSource(dataset, EpisodeSettings(shots=500, **SMALL))[0]  # type: ignore[arg-type]
    assert 0 < few.shot_mask.sum() < few.shot_mask.size
    assert few.crops[~few.shot_mask].max() == 0


def test_sampling(dataset: Dataset) -> None:
    rare = dataset.classes[0]
    often = [record for record in dataset.records if 0 not in record.target.labels]
    seldom = [record for record in dataset.records if 0 in record.target.labels][:2]
    skewed = Dataset("skewed", dataset.classes, (*often, *seldom))
    shares = {}
    for sampling in ("balanced", "frequency"):
        source = EpisodeSource(skewed, EpisodeSettings(sampling=sampling, **SMALL))  # type: ignore[arg-type]
        drawn = [source.draw_classes(np.random.default_rng(n))[1][0] for n in range(800)]
        shares[sampling] = drawn.count(0) / 800
    assert shares["balanced"] == pytest.approx(1 / 8, abs=0.04), rare
    assert shares["frequency"] < 0.6 * shares["balanced"]


def test_multi_scale_and_aspect(dataset: Dataset) -> None:
    settings = EpisodeSettings(
        shots=1,
        query_sizes=(64, 80, 96),
        query_longer=200,
        support_size=48,
        min_shot_side=8,
        aspect=(0.75, 4 / 3),
        support_aspect=(0.75, 4 / 3),
    )
    episodes = [EpisodeSource(dataset, settings)[index] for index in range(20)]
    assert {min(episode.query.shape[:2]) for episode in episodes} == {64, 80, 96}
    aspects = [episode.query.shape[1] / episode.query.shape[0] / (96 / 72) for episode in episodes]
    assert min(aspects) < 0.9
    assert max(aspects) > 1.1
    assert 0.73 < min(aspects) <= max(aspects) < 1.37


def test_shot_lists_are_kept_to(dataset: Dataset) -> None:
    shots = draw_shots(dataset, 2, seed=0, min_side=8)
    source = EpisodeSource(dataset, EpisodeSettings(shots=5, **SMALL), shots=shots)  # type: ignore[arg-type]
    allowed = {(ref.picture, ref.box_id) for refs in shots.classes.values() for ref in refs}
    for index in range(10):
        used = {shot for way in source[index].shot_ids for shot in way}
        assert used <= allowed
    other = synthetic_dataset(images=4, classes=8, size=(96, 72), seed=3)
    with pytest.raises(DataError, match="give the set that they were drawn from"):
        EpisodeSource(other, EpisodeSettings(**SMALL), shots=shots)  # type: ignore[arg-type]


def test_a_test_run_has_its_shots_and_the_other_pictures(dataset: Dataset) -> None:
    shots = draw_shots(dataset, 3, seed=0, min_side=8)
    support = support_set(dataset, shots, size=48)
    assert set(support) == set(dataset.classes)
    crops, boxes = support[dataset.classes[0]]
    assert crops.shape == (3, 48, 48, 3)
    assert boxes.shape == (3, 4)
    test = dataset.without(shots.pictures())
    assert {record.id for record in test.records}.isdisjoint(shots.pictures())
    assert len(test) == len(dataset) - len(shots.pictures())
    assert dataset.renamed({dataset.classes[0]: "thing"}).classes == ("thing", *dataset.classes[1:])


def test_pictures_for_a_test_run(tmp_path: Path) -> None:
    stored = read_dataset(write_synthetic(tmp_path, images=3, classes=3, size=(96, 72)))
    source = PictureSource(stored, shorter=36, longer=60)
    assert source[0].shape == (36, 48, 3)
    loaded = list(load(source, range(3), workers=1))
    assert all(np.array_equal(loaded[row], source[row]) for row in range(3))


def test_nothing_but_seed_and_index_decides(dataset: Dataset) -> None:
    settings = EpisodeSettings(shots=2, **SMALL)  # type: ignore[arg-type]
    source = EpisodeSource(dataset, settings, seed=4)
    later = source[5]
    _ = [source[index] for index in range(3)]
    assert same(source[5], later)
    assert same(pickle.loads(pickle.dumps(source))[5], later)
    assert not same(EpisodeSource(dataset, settings, seed=5)[5], later)
    assert not same(source[6], later)
    with pytest.raises(InputError, match="at least 0"):
        source[-1]


def test_any_number_of_workers_gives_the_same(tmp_path: Path) -> None:
    stored = read_dataset(write_synthetic(tmp_path, images=12, classes=4, size=(96, 72)))
    source = EpisodeSource(stored, EpisodeSettings(shots=2, **SMALL), seed=1)  # type: ignore[arg-type]
    indices = [3, 1, 4, 1, 5, 9, 2, 6]
    expected = [source[index] for index in indices]
    for workers in (0, 1, 2):
        loaded = list(load(source, indices, workers))
        assert len(loaded) == len(indices)
        assert all(same(a, b) for a, b in zip(loaded, expected, strict=True)), workers
    stored.records[0].path.write_bytes(b"no picture any more")
    with pytest.raises(DataError, match=r"000001\.png"):
        list(load(source, range(40), workers=2))


class Deadly:
    """A source whose third item kills its process."""

    def __getitem__(self, index: int) -> int:
        if index == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


class Slow:
    """A source that says who makes its items."""

    def __getitem__(self, index: int) -> int:
        time.sleep(0.01)
        return os.getpid()


def test_a_worker_that_dies_is_a_data_error() -> None:
    with pytest.raises(DataError, match="one died"):
        list(load(Deadly(), range(5), workers=1))


def test_leaving_early_stops_the_workers() -> None:
    stream = load(Slow(), range(10_000), workers=1)
    worker = next(stream)
    stream.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    with pytest.raises(InputError, match="workers"):
        list(load(Slow(), range(2), workers=-1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"ways": 0},
        {"shots": 0},
        {"min_shots": 9},
        {"others": "some"},
        {"sampling": "random"},
        {"query_sizes": ()},
        {"query_sizes": (2000,)},
        {"flip": 2},
        {"aspect": (2, 1)},
    ],
)
def test_settings_check_themselves(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="episodes"):
        EpisodeSettings(**wrong)  # type: ignore[arg-type]


def test_sets_without_episodes_are_refused(dataset: Dataset) -> None:
    with pytest.raises(DataError, match="found none"):
        EpisodeSource(dataset.subset([dataset.records[0].id]))
    with pytest.raises(DataError, match="expected at least 20 classes"):
        EpisodeSource(dataset, EpisodeSettings(ways=20, **SMALL))  # type: ignore[arg-type]
    crowded = [record.id for record in dataset.records if len(set(record.target.labels)) > 1]
    with pytest.raises(DataError, match="fewer ways"):
        EpisodeSource(dataset.subset(crowded), EpisodeSettings(ways=8, **SMALL))[0]  # type: ignore[arg-type]


def test_bench_prints_its_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_synthetic(tmp_path, images=12, classes=4, size=(96, 72))
    arguments = ["--data", str(path), "--episodes", "4", "--step-ms", "1", "--query-size", "64"]
    assert main(["bench", "data", *arguments, "--workers", "0", "--json", "-"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    for wrong in (["--workers", "a"], ["--batch", "0"]):
        with pytest.raises(SystemExit):
            main(["bench", "data", *wrong])
    assert row["workers"] == 0
    assert row["episodes_per_second"] > 0
    assert 0 <= row["wait_share"] <= 1


def test_data_and_scores_load_no_torch() -> None:
    names = "data.episodes data.loader data.formats data.check data.repair data.splits data.synthetic"
    names += (
        " commands.data commands.score commands.bench scoring.coco scoring.voc scoring.curves data.convert"
    )
    code = "import sys\n" + "".join(f"import tenet.{name}\n" for name in names.split())
    code += "import tenet.cli; tenet.cli.build_parser('data'); tenet.cli.build_parser('score')\n"
    code += "loaded = {'torch', 'matplotlib'} & set(sys.modules)\nsys.exit(str(loaded) if loaded else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
