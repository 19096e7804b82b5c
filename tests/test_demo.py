"""The demonstration: pictures that may be shipped, boxes that are right, and a table that tells the truth."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.bank import ClassBank
from tenet.cli import main
from tenet.demo import FOLDER, SCENES, Example, Scene
from tenet.demo.collage import SIZES, make_collage
from tenet.demo.limits import hard_scenes
from tenet.demo.outcome import Outcome, judge
from tenet.demo.poster import poster, sentence
from tenet.looks.merging import iou
from tenet.pictures import read_picture
from tenet.predictor import Tenet
from tenet.structures import Detections

PICTURES = sorted(path.name for path in FOLDER.iterdir() if path.suffix in (".jpg", ".png"))
COINS = SCENES[0]


def detections(scene: Scene, things: tuple[Example, ...], scores: list[float] | None = None) -> Detections:
    """These very things, as if found."""
    boxes = np.array([thing.box for thing in things], np.float32).reshape(-1, 4)
    labels = np.array([scene.classes.index(thing.name) for thing in things], np.int64)
    sure = np.array(scores or np.linspace(0.9, 0.5, len(things)), np.float32)
    return Detections(boxes, sure, labels, labels * 0, scene.classes)


def test_every_picture_has_a_source_and_all_are_small() -> None:
    sources = (FOLDER / "SOURCES.md").read_text()
    assert len(PICTURES) >= 8
    assert all(f"`{name}`" in sources for name in PICTURES)
    rows = [line for line in sources.splitlines() if line.startswith("| `")]
    doubtful = [row for row in rows if not re.search("CC0|public domain|that of its parts", row)]
    assert [row.split("`")[1] for row in doubtful] == ["coins.png"]  # for which the file gives reasons
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 5_000_000
    used = {scene.file for scene in SCENES} | {shot.file for scene in SCENES for shot in scene.shots}
    assert used <= set(PICTURES)


def test_pictures_are_package_data() -> None:
    text = (FOLDER.parent.parent / "pyproject.toml").read_text()
    for kind in ("*.jpg", "*.png", "SOURCES.md"):
        assert f'"demo/{kind}"' in text


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_boxes_are_inside_and_shots_are_not_to_be_found(scene: Scene) -> None:
    for thing in (*scene.shots, *scene.truth):
        height, width = read_picture(thing.path).shape[:2]
        x1, y1, x2, y2 = thing.box
        assert 0 <= x1 < x2 <= width
        assert 0 <= y1 < y2 <= height
    own = [shot.box for shot in scene.shots if shot.file == scene.file]
    boxes = np.array([*own, *(thing.box for thing in scene.truth)], np.float32).reshape(-1, 4)
    shared = iou(boxes, boxes) - np.eye(len(boxes))
    assert shared.max(initial=0) < 0.1
    assert all(thing.file == scene.file for thing in scene.truth)


def test_the_scenes_cover_what_they_should() -> None:
    assert any(len(scene.classes) > 1 for scene in SCENES)
    assert any(not scene.truth for scene in SCENES)
    assert any(len(scene.shots) == 1 for scene in SCENES)
    assert len({scene.name for scene in SCENES}) == len(SCENES)


def test_the_collage_is_made_of_the_photographs_beside_it() -> None:
    made, shipped = make_collage(FOLDER), read_picture(FOLDER / "collage.jpg")
    assert made.shape == shipped.shape
    assert np.abs(made.astype(int) - shipped).mean() < 3  # JPEG
    for name, size in SIZES.items():
        with Image.open(FOLDER / name) as photograph:
            assert photograph.size == size


def test_boxes_of_the_collage_hold_what_was_shown() -> None:
    """Each box of the collage, brought to the size of the shot, looks like it, as it is or mirrored."""
    scene = next(scene for scene in SCENES if scene.name == "collage")
    picture = Image.open(scene.path)
    shots = {shot.name: _small(Image.open(shot.path), shot.box) for shot in scene.shots}
    for thing in scene.truth:
        cut = _small(picture, thing.box)
        alike = {
            name: max(float(np.corrcoef(one.ravel(), cut.ravel())[0, 1]) for one in (shot, shot[:, ::-1]))
            for name, shot in shots.items()
        }
        assert alike[thing.name] > 0.95
        assert min(alike.values()) < 0.6


def _small(picture: Image.Image, box: tuple[float, float, float, float]) -> np.ndarray:
    return np.asarray(picture.convert("L").resize((48, 36), Image.Resampling.BOX, box), np.float64)


def test_boxes_of_hard_scenes_hold_coins(tmp_path: Path) -> None:
    """Every box is lit, or dark in the negative, otherwise than its picture's ground; and inside it."""
    scenes = {scene.name: scene for scene in hard_scenes(tmp_path)}
    assert [len(scene.truth) for scene in scenes.values()] == [216, 24, 24, 24, 24, 1]
    for scene in scenes.values():
        grey = read_picture(scene.path).mean(-1)
        for thing in scene.truth:
            x1, y1, x2, y2 = (round(side) for side in thing.box)
            assert 0 <= x1 < x2 <= grey.shape[1]
            assert 0 <= y1 < y2 <= grey.shape[0]
            if scene.name != "part":
                wide = grey[max(0, y1 - 3) : y2 + 3, max(0, x1 - 3) : x2 + 3]
                rim = (wide.sum() - grey[y1:y2, x1:x2].sum()) / (wide.size - (y2 - y1) * (x2 - x1))
                lighter = grey[y1:y2, x1:x2].mean() - rim
                assert (lighter < 0) == (scene.name == "turned")


def test_what_was_missed_is_told_and_drawn() -> None:
    some = judge(COINS, detections(COINS, COINS.truth[2:]))
    assert some.lost == COINS.truth[:2]
    none_lost = replace(some, lost=())
    found = detections(COINS, COINS.truth[2:])
    assert (poster([(COINS, found, some)], "") != poster([(COINS, found, none_lost)], "")).any()


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_finding_all_is_all_right(scene: Scene) -> None:
    everything = detections(scene, scene.truth)
    assert judge(scene, everything) == Outcome(len(scene.shots), len(scene.truth), len(scene.truth), 0)
    nothing = judge(scene, Detections.empty(scene.classes))
    assert (nothing.found, nothing.missed) == (0, len(scene.truth))


def test_a_shot_found_again_counts_as_nothing() -> None:
    again = judge(COINS, detections(COINS, COINS.shots))
    assert (again.right, again.false, again.missed) == (0, 0, 21)


def test_finding_a_thing_twice_is_false_once() -> None:
    twice = judge(COINS, detections(COINS, (COINS.truth[0], COINS.truth[0])))
    assert (twice.right, twice.false) == (1, 1)


def test_the_wrong_class_and_the_wrong_place_are_false() -> None:
    scene = next(scene for scene in SCENES if scene.name == "collage")
    names = {"cat": "cup", "cup": "cat"}
    swapped = tuple(replace(thing, name=names[thing.name]) for thing in scene.truth)
    assert judge(scene, detections(scene, swapped)).right == 0
    aside = tuple(replace(t, box=(t.box[0], t.box[1], t.box[2] + 80, t.box[3] + 80)) for t in COINS.truth[:3])
    moved = judge(COINS, detections(COINS, aside))
    assert (moved.right, moved.false) == (0, 3)


def test_the_picture_holds_every_scene() -> None:
    results = [
        (scene, detections(scene, scene.truth), judge(scene, detections(scene, scene.truth)))
        for scene in SCENES
    ]
    whole = poster(results, "title")
    one = poster(results[:1], "title")
    assert whole.shape[1] == one.shape[1]
    assert whole.shape[0] > one.shape[0] * 1.5
    bare = [(scene, Detections.empty(scene.classes), outcome) for scene, _, outcome in results]
    assert (poster(bare, "title") != whole).any()


def test_words() -> None:
    assert sentence(Outcome(3, 21, 20, 0)) == "20 of 21 found, none false"
    assert sentence(Outcome(2, 0, 0, 1)) == "nothing is there, 1 false"


def test_what_the_shipped_model_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The README's `make demo`: most coins, and hardly anything where there is nothing."""
    assert main(["demo", "--out", str(tmp_path / "demo.png")]) == 0
    rows = counts(capsys.readouterr().out)
    assert rows["coins"]["right"] >= 12
    assert rows["coins"]["false"] < rows["coins"]["right"]
    assert rows["absent"]["false"] <= 1
    with Image.open(tmp_path / "demo.png") as picture:
        assert picture.width > 1000


def counts(shown: str) -> dict[str, dict[str, int]]:
    """The table of `tenet demo`: scene → column → number."""
    columns = ("shots", "there", "found", "right", "missed", "false")
    rows = {line.split()[0]: line.split()[1:7] for line in shown.splitlines() if line.strip()}
    assert rows["scene"] == list(columns)
    return {scene.name: dict(zip(columns, map(int, rows[scene.name]), strict=True)) for scene in SCENES}


@pytest.fixture
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tenet, "load", staticmethod(lambda name=None: Tenet(FakeRuntime())))


@pytest.mark.usefixtures("_fake")
def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    registered: list[tuple[str, int]] = []
    register = ClassBank.register

    def listening(self: ClassBank, name: str, shots: list[object]) -> object:
        registered.append((name, len(shots)))
        return register(self, name, shots)

    monkeypatch.setattr(ClassBank, "register", listening)
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert registered == [("coin", 3), ("cat", 1), ("cup", 1), ("star", 1), ("cat", 1), ("cup", 1)]
    for scene in SCENES:
        shots, there, found, right, missed, false = counts(shown)[scene.name].values()
        assert (shots, there) == (len(scene.shots), len(scene.truth))
        assert found == right + false
        assert there == right + missed
    assert "picture: demo-output/demo.png" in shown
    with Image.open("demo-output/demo.png") as picture:
        assert picture.width > 1000


@pytest.mark.usefixtures("_fake")
def test_hard_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--hard", "--out", str(tmp_path / "hard.png")]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^wide +3 +216 ", shown, re.MULTILINE)
    assert re.search(r"^part +1 +1 ", shown, re.MULTILINE)
    assert [path.name for path in tmp_path.iterdir()] == ["hard.png"]


@pytest.mark.usefixtures("_fake")
@pytest.mark.parametrize("words", [["--out", "x.gif"], ["--out", "."], ["--threshold", "2"]])
def test_errors_are_one_line(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo.png"), *words]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not list(tmp_path.iterdir())
