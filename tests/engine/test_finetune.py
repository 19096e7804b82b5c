"""Fine-tuning on a user's own set, in any layout, and on one shot."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bank_parts import THING, picture
from fake_runtime import FakeRuntime
from tiny_runs import tiny_recipe, train, write_recipe

from tenet.bank import ClassBank
from tenet.banks.as_dataset import dataset_of
from tenet.cli import main
from tenet.data.convert import convert
from tenet.data.dataset import Dataset
from tenet.data.episode_settings import EpisodeSettings
from tenet.data.episodes import EpisodeSource
from tenet.data.formats import read_dataset, scan_path
from tenet.data.shots import ShotList, candidates, draw_shots, read_shots
from tenet.engine.checkpoint import find, load, load_detector
from tenet.engine.finetune import finetune, finetune_run, shots_of_user
from tenet.engine.jobs import Options
from tenet.engine.meta_train import new_detector
from tenet.engine.start_from import start_from
from tenet.errors import ConfigError, InputError
from tenet.predictor import Tenet
from tenet.recipe import Recipe
from tenet.runtime.calibration import Calibration
from tenet.runtime.loading import load_runtime, model_file


@pytest.fixture
def trained(root: Path, tmp_path: Path) -> Path:
    train(tiny_recipe(iterations=2), root, tmp_path / "trained")
    return tmp_path / "trained"


FAST = ("--set", "finetune.iterations=3", "--set", "finetune.batch=2")


@pytest.mark.parametrize("layout", ["coco", "voc", "yolo"])
def test_a_users_own_set(trained: Path, root: Path, tmp_path: Path, layout: str) -> None:
    dataset = read_dataset(root / "annotations.json")
    data = root / "annotations.json"
    if layout != "coco":
        data = tmp_path / layout
        convert(scan_path(root / "annotations.json"), layout, data)
    two = ",".join(dataset.classes[:2])
    out = tmp_path / "mine"
    words = ["finetune", trained, "--data", data, "--classes", two, "--shots", 2, "--out", out, *FAST]
    assert main([str(word) for word in words]) == 0
    shots = read_shots(out / "shots.json", read_dataset(data))
    assert [len(refs) for refs in shots.classes.values()] == [2, 2]
    assert not (out / "cache").exists()
    before, after = load_detector(trained).state_dict(), load_detector(out).state_dict()
    moved = [name for name in before if not torch.equal(before[name], after[name])]
    assert moved
    assert not any(name.startswith("encoder.backbone") for name in moved)
    assert load(next((out / "checkpoints").glob("*.json"))).split["novel"] == sorted(dataset.classes[:2])


def test_one_shot_and_one_class(root: Path, tmp_path: Path) -> None:
    """The only shot of a class is query and support at once."""
    recipe = tiny_recipe()
    table = recipe.to_dict()
    table["finetune"] |= {"iterations": 2, "shots": 1}
    recipe = type(recipe).from_dict(table)
    dataset = read_dataset(root / "annotations.json")
    shots = shots_of_user(dataset, [dataset.classes[1]], 1, recipe)
    detector = new_detector(recipe, root)
    assert finetune(detector, recipe, dataset, shots) is detector
    assert not detector.training


def test_pictures_keep_their_colours_and_way_up(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a recipe turns or recolours would look unlike the pictures in which things are to be found."""
    table = tiny_recipe().to_dict()
    table["episodes"] |= {"zoom": [0.4, 1.0], "mosaic": 0.5, "turn": 0.3, "recolour": 0.4}
    table["finetune"] |= {"iterations": 1, "shots": 2}
    recipe = Recipe.from_dict(table)
    seen = spy_on_sources(monkeypatch)
    dataset = read_dataset(root / "annotations.json")
    shots = shots_of_user(dataset, None, 2, recipe)
    finetune(new_detector(recipe, root), recipe, dataset, shots)
    [(_, settings)] = seen
    assert (settings.zoom, settings.mosaic, settings.turn, settings.recolour) == ((0.4, 1.0), 0.5, 0.0, 0.0)


Seen = list[tuple[Dataset, EpisodeSettings]]


def spy_on_sources(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The queries and settings that fine-tuning learns from."""
    seen: Seen = []

    def source(pictures: Dataset, settings: EpisodeSettings, *rest: Any, **more: Any) -> EpisodeSource:
        seen.append((pictures, settings))
        return EpisodeSource(pictures, settings, *rest, **more)

    monkeypatch.setattr("tenet.engine.finetune.EpisodeSource", source)
    return seen


@pytest.mark.parametrize("complete", [False, True])
def test_what_is_known_of_the_shots_pictures(
    root: Path, monkeypatch: pytest.MonkeyPatch, complete: bool
) -> None:
    """By the protocol the shots alone; where pictures are annotated whole, all of their boxes."""
    recipe = short(tiny_recipe())
    seen = spy_on_sources(monkeypatch)
    dataset = read_dataset(root / "annotations.json")
    shots = shots_of_user(dataset, None, 1, recipe)
    finetune(new_detector(recipe, root), recipe, dataset, shots, complete=complete)
    [(queries, _)] = seen
    known = sum(len(record.target) for record in queries.records)
    annotated = sum(len(record.target) for record in dataset.subset(shots.pictures()).records)
    drawn = sum(len(refs) for refs in shots.classes.values())
    assert drawn < annotated
    assert known == (annotated if complete else drawn)


def test_every_box_is_a_shot_by_default(trained: Path, root: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "mine", root / "annotations.json"
    words = ["finetune", trained, "--data", data, "--out", out, *FAST]
    assert main([str(word) for word in words]) == 0
    dataset = read_dataset(data)
    shots = read_shots(out / "shots.json", dataset)
    assert {name: len(refs) for name, refs in shots.classes.items()} == dataset.class_counts()


@pytest.mark.parametrize("share", [0.25, 0.75])
def test_the_mean_with_what_was_known_before(root: Path, share: float) -> None:
    """`average` takes that share of what was learned."""
    dataset = read_dataset(root / "annotations.json")
    shots = shots_of_user(dataset, None, 2, short(tiny_recipe()))
    before = new_detector(tiny_recipe(), root).state_dict()
    alone, mixed = (
        finetune(new_detector(recipe, root), recipe, dataset, shots).state_dict()
        for recipe in (short(tiny_recipe(), average=1.0), short(tiny_recipe(), average=share))
    )
    moved = [name for name in before if not torch.equal(before[name], alone[name])]
    assert moved
    for name in moved:
        torch.testing.assert_close(mixed[name], share * alone[name] + (1 - share) * before[name])


@pytest.mark.parametrize(("per_picture", "steps"), [(3, 3), (20, 7), (0, 7)])
def test_few_pictures_are_not_learned_by_heart(
    root: Path, tmp_path: Path, per_picture: int, steps: int
) -> None:
    """One shot of one class is one picture: so many steps at most."""
    recipe = tiny_recipe()
    recipe = replace(recipe, finetune=replace(recipe.finetune, iterations=7, per_picture=per_picture))
    dataset = read_dataset(root / "annotations.json")
    shots = shots_of_user(dataset, [dataset.classes[0]], 1, recipe)
    finetune_run(new_detector(recipe, root), recipe, dataset, shots, Options(tmp_path / "run", root))
    assert load(find(tmp_path / "run")).step == steps


def test_a_run_is_the_same_as_the_function(root: Path, tmp_path: Path) -> None:
    """Its last checkpoint is the mean, and scores mean what they meant before."""
    recipe = short(tiny_recipe())
    dataset = read_dataset(root / "annotations.json")
    shots = shots_of_user(dataset, None, 2, recipe)
    wanted = finetune(new_detector(recipe, root), recipe, dataset, shots).state_dict()
    curve = Calibration((0.1, 0.5), (0.2, 0.9), 0.4).to_json()
    options = Options(tmp_path / "run", root)
    finetune_run(new_detector(recipe, root), recipe, dataset, shots, options, calibration=curve)
    found = load_detector(tmp_path / "run").state_dict()
    assert wanted.keys() == found.keys()
    for name, value in wanted.items():
        torch.testing.assert_close(found[name], value)
    assert load_runtime(tmp_path / "run").calibration.to_json() == curve


def test_a_shipped_model_learns_a_users_set(root: Path, tmp_path: Path) -> None:
    """The command of the README, with the model that comes with the package."""
    out = tmp_path / "mine"
    words = ["finetune", "tenet_lite0", "--data", root / "annotations.json", "--shots", 1, "--out", out]
    quick = (
        "finetune.iterations=1",
        "finetune.batch=1",
        "finetune.micro_batch=1",
        "evaluate.min_shot_side=0",
    )
    assert main([*map(str, words), *(word for setting in quick for word in ("--set", setting))]) == 0
    shipped, mine = load_runtime("tenet_lite0"), load_runtime(out)
    assert mine.calibration == shipped.calibration
    assert mine.fingerprint != shipped.fingerprint
    told, before = (load(model_file(name)).split for name in (out, "tenet_lite0"))
    assert told["base"] == before["base"]
    assert told["novel"] == sorted(read_dataset(root / "annotations.json").classes)


def test_only_a_lonely_picture_is_held_in_memory(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A class whose shots are all in one picture needs that; a large set stays on disk."""
    recipe, dataset = short(tiny_recipe()), read_dataset(root / "annotations.json")
    refs = {name: own for name, own in draw_shots(dataset, 3, 0).classes.items() if own}
    first = next(iter(refs))
    refs[first] = refs[first][:1]
    seen = spy_on_sources(monkeypatch)
    finetune(new_detector(recipe, root), recipe, dataset, ShotList("drawn", 0, 3, refs))
    [(queries, _)] = seen
    assert [record.id for record in queries.records if record.pixels is not None] == [
        f"query/{refs[first][0].picture}"
    ]


def test_a_bank_is_a_set_of_its_shots_pictures(tmp_path: Path) -> None:
    """Each picture once, with the boxes that were shown; bare crops have none."""
    bank, one, other = ClassBank(FakeRuntime()), picture(seed=1), picture("green", seed=2)
    bank.register("red", [(one, THING), (one, (0, 0, 50, 40)), one[30:90, 40:100]])
    bank.register("green", [(other, THING), (one, (100, 60, 150, 110))])
    dataset = dataset_of(bank, "mine")
    assert dataset.classes == ("red", "green")
    assert [record.target.labels.tolist() for record in dataset.records] == [[0, 0, 1], [1]]
    first = dataset.records[0]
    scale = first.width / 160
    assert first.picture().shape == (first.height, first.width, 3)
    assert np.allclose(first.target.boxes[0], np.array(THING) * scale, atol=1)
    bare = ClassBank(FakeRuntime())
    bare.register("red", [one[30:90, 40:100]])
    with pytest.raises(InputError, match="got 1 bare crops"):
        dataset_of(bare, "bare")


def test_a_bank_teaches_its_model(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path, out = Tenet.load(trained), tmp_path / "my.bank", tmp_path / "mine"
    bank = ClassBank(model)
    for colour in ("red", "green"):
        bank.register(colour, [(picture(colour, seed=seed), THING) for seed in range(2)])
    bank.save(path)
    assert main([*map(str, ["finetune", trained, "--bank", path, "--out", out]), *FAST]) == 0
    assert "2 of red, 2 of green as shots, in 4 pictures" in capsys.readouterr().out
    learned = Tenet.load(out)
    again = ClassBank.load(path, learned, rebuild=True)
    learned.detect(picture("red", seed=9), again)
    for more, says in (
        (("--data", "x.json"), "give one of them"),
        (("--known", "shots"), "--known is for --data"),
    ):
        assert main(["finetune", str(trained), "--bank", str(path), *more]) == 1
        assert says in capsys.readouterr().err


def test_other_classes_of_a_set_are_no_background(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the shots' pictures all boxes are known, those of classes that are not learned too."""
    recipe, dataset = short(tiny_recipe()), read_dataset(root / "annotations.json")
    shots = shots_of_user(dataset, [dataset.classes[0]], 2, recipe)
    assert set(shots.classes) == {dataset.classes[0]}
    seen = spy_on_sources(monkeypatch)
    finetune(new_detector(recipe, root), recipe, dataset, shots, complete=True)
    [(queries, settings)] = seen
    assert {label for record in queries.records for label in record.target.labels.tolist()} > {0}
    assert settings.ways == 1


def test_what_was_learned_is_no_start_for_a_split_that_has_it_novel(
    trained: Path, root: Path, tmp_path: Path
) -> None:
    out, dataset = tmp_path / "mine", read_dataset(root / "annotations.json")
    words = ["finetune", trained, "--data", root / "annotations.json", "--shots", 2, "--out", out]
    assert main([*map(str, words), *FAST]) == 0
    detector = new_detector(tiny_recipe(), root)
    with pytest.raises(ConfigError, match="has not seen the split's novel classes"):
        start_from(detector, str(out), [dataset.classes[0]])


def test_what_was_learned_twice_is_known_of_both(
    trained: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fine-tuned on one class and then on another: the run has learned both, and its evaluation says so."""
    one, two = read_dataset(root / "annotations.json").classes[:2]
    start = trained
    for name, out in ((one, tmp_path / "one"), (two, tmp_path / "two")):
        words = ["finetune", start, "--data", root / "annotations.json", "--classes", name, "--shots", 2]
        assert main([*map(str, words), "--out", str(out), *FAST]) == 0
        start = out
    assert load(find(start)).split["learned"] == sorted([one, two])
    capsys.readouterr()
    words = ["evaluate", start, "--data", root / "annotations.json", "--shots", 1, "--seeds", 0, "--limit", 2]
    assert main([*map(str, words), "--workers", "0"]) in (0, 1)
    assert "was fine-tuned on" in capsys.readouterr().err


def test_a_class_of_small_boxes_is_told(
    trained: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Below the least side a box is no shot, and a class may be left with none."""
    dataset = read_dataset(root / "annotations.json")
    least = next(side for side in range(4, 200) if not all(candidates(dataset, side).values()))
    small = [name for name, refs in candidates(dataset, least).items() if not refs]
    words = ["finetune", trained, "--data", root / "annotations.json", "--out", tmp_path / "mine", *FAST]
    assert main([*map(str, words), "--set", f"evaluate.min_shot_side={least}"]) == 0
    told = capsys.readouterr().err
    assert all(told.count(f"{name} has no box that is large enough") == 1 for name in small)


def short(recipe: Recipe, **settings: Any) -> Recipe:
    return replace(recipe, finetune=replace(recipe.finetune, iterations=2, batch=2, **settings))


def test_too_few_shots_is_one_line(
    trained: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "finetune",
        trained,
        "--data",
        root / "annotations.json",
        "--shots",
        500,
        "--out",
        tmp_path / "x",
    ]
    assert main([str(word) for word in words]) == 1
    message = capsys.readouterr().err
    assert "expected 500 shots" in message
    assert "lower --shots" in message
    assert message.count("\n") == 1


def test_unknown_class_and_other_model(
    trained: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(root / "annotations.json")
    assert main(["finetune", str(trained), "--data", data, "--classes", "unicorn"]) == 1
    assert "unicorn" in capsys.readouterr().err
    assert main(["finetune", str(trained), "--data", data, "--set", "model.nms=0.1"]) == 1
    assert "the checkpoint's own model" in capsys.readouterr().err
    recipe = write_recipe(tmp_path, tiny_recipe())
    assert main(["finetune", str(recipe), "--data", str(tmp_path / "nowhere.json")]) == 1
    assert "found nothing" in capsys.readouterr().err
