"""Pictures in, boxes of the user's pixels out: one, many, folders, streams."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_bank import FakeBank, PiecesRuntime, scene
from fake_runtime import FakeRuntime
from odd_files import turn_video, write_video
from PIL import Image
from predictor_parts import GREEN, MIDDLE, RED, same

from tenet.errors import InputError
from tenet.looks.sizes import SeenSize
from tenet.pictures import read_picture
from tenet.predictor import CLASSES_AT_ONCE, WORKING_PIXELS, Tenet
from tenet.structures import ClassFeatures, Detections


@pytest.fixture
def model() -> Tenet:
    return Tenet(FakeRuntime())


@pytest.fixture
def bank(model: Tenet) -> FakeBank:
    return FakeBank(model.runtime, red=MIDDLE, green=MIDDLE)  # type: ignore[arg-type]


def pictures() -> list[np.ndarray]:
    """Of mixed sizes; the last shows nothing."""
    return [
        scene(640, 480, RED, GREEN),
        scene(500, 700, ("green", (30, 40, 90, 110))),
        scene(1600, 1200, ("red", (800, 600, 950, 760))),
        scene(640, 480, GREEN),
        scene(64, 48),
    ]


@pytest.mark.parametrize("size", ["auto", "original", 320, 777, 1280])
def test_boxes_are_in_the_users_pixels(size: int | str, model: Tenet, bank: FakeBank) -> None:
    found = model.detect(scene(640, 480, RED, GREEN), bank, size=size)
    assert sorted(found.names.tolist()) == ["green", "red"]
    for name, box in (RED, GREEN):
        np.testing.assert_allclose(found.boxes[found.names == name][0], box, atol=2)


def test_any_kind_of_picture_gives_the_same(model: Tenet, bank: FakeBank, tmp_path: Path) -> None:
    array = scene(640, 480, RED, GREEN)
    Image.fromarray(array).save(tmp_path / "a.png")
    expected = model.detect(array, bank)
    path = tmp_path / "a.png"
    turned = np.ascontiguousarray(array[:, :, ::-1])  # as OpenCV reads it
    for source in (path, str(path), path.read_bytes(), Image.open(path), turned[:, :, ::-1]):
        same(model.detect(source, bank), expected)


def odd_pictures(folder: Path) -> dict[str, Path]:
    """Files whose pixels are not simply what is stored."""
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter
    array = scene(640, 480, RED, GREEN)
    Image.fromarray(array).save(folder / "turned.png", exif=exif)
    Image.fromarray(array[:, :, 0].astype(np.uint16) * 257).save(folder / "deep.png")
    Image.fromarray(np.dstack([array, array[:, :, 1]])).save(folder / "clear.png")
    Image.fromarray(array).quantize(16).save(folder / "palette.png", transparency=0)
    Image.fromarray(array).convert("CMYK").save(folder / "print.tif")
    return {path.stem: path for path in folder.iterdir()}


def test_a_pil_picture_is_its_file(model: Tenet, bank: FakeBank, tmp_path: Path) -> None:
    for name, path in odd_pictures(tmp_path).items():
        expected = read_picture(path)
        for opened in (Image.open(path), Image.open(path)):
            before = opened.copy()
            np.testing.assert_array_equal(read_picture(opened), expected, name)
            assert opened.size == before.size
            same(model.detect(opened, bank), model.detect(path, bank))
    assert read_picture(Image.open(tmp_path / "turned.png")).shape == (640, 480, 3)
    assert read_picture(Image.open(tmp_path / "deep.png")).max() == 230


def test_boxes_are_clipped_to_the_picture(model: Tenet, bank: FakeBank) -> None:
    found = model.detect(scene(641, 479, ("red", (600, 400, 641, 479))), bank)
    assert found.boxes[0, 2] <= 641
    assert found.boxes[0, 3] <= 479


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_a_list_is_its_pictures_one_by_one(batch: int, model: Tenet, bank: FakeBank) -> None:
    found = model.detect(pictures(), bank, batch=batch)
    assert len(found) == len(pictures())
    for one, picture in zip(found, pictures(), strict=True):
        same(one, model.detect(picture, bank))
    assert model.detect([], bank) == []


def test_one_encoding_a_picture_and_none_of_shots(bank: FakeBank) -> None:
    runtime = FakeRuntime()
    Tenet(runtime).detect(pictures(), bank)
    assert runtime.encoded_images == len(pictures())
    assert runtime.encoded_shots == 0
    assert sorted(bank.asked) == ["green", "red"]  # each class fetched once for all pictures


def test_a_stream_is_what_detect_gives(model: Tenet, bank: FakeBank) -> None:
    expected = model.detect(pictures(), bank)
    for source in (pictures(), iter(pictures()), tuple(pictures())):
        frames = list(model.stream(source, bank, batch=2))
        assert [frame.number for frame in frames] == list(range(len(expected)))
        for frame, one in zip(frames, expected, strict=True):
            same(frame.detections, one)
    every = list(model.stream(pictures(), bank, every=2))
    assert [frame.number for frame in every] == [0, 2, 4]


def test_a_stream_takes_no_more_than_it_gives(model: Tenet, bank: FakeBank) -> None:
    taken = 0

    def camera() -> Iterator[np.ndarray]:
        nonlocal taken
        while True:
            taken += 1
            yield scene(64, 48)

    stream = model.stream(camera(), bank)
    for wanted in (1, 2, 3):
        next(stream)
        assert taken == wanted


def test_restricting_classes_is_filtering(model: Tenet, bank: FakeBank) -> None:
    picture = scene(640, 480, RED, GREEN)
    both = model.detect(picture, bank)
    for name in ("red", "green"):
        only = model.detect(picture, bank, classes=[name])
        assert only.classes == (name,)
        np.testing.assert_allclose(only.boxes, both.boxes[both.names == name], atol=2)
        same(only, model.detect(picture, bank, classes=name))
    assert both.classes == bank.names
    assert model.detect(picture, bank, classes=("green", "red", "green")).classes == ("green", "red")


def test_labels_are_right_when_classes_have_different_sizes() -> None:
    runtime = PiecesRuntime()
    sizes = {"red": SeenSize((400, 300), (640, 480)), "green": SeenSize((40, 40), (640, 480))}
    bank = FakeBank(runtime, **sizes)
    picture = scene(640, 480, ("red", (20, 30, 400, 330)), ("green", (500, 400, 540, 440)))
    found = Tenet(runtime).detect(picture, bank)
    assert runtime.encoded_images == 2  # one for each group
    assert sorted(found.names.tolist()) == ["green", "red"]
    np.testing.assert_allclose(found.boxes[found.names == "red"][0], (20, 30, 400, 330), atol=2)
    np.testing.assert_allclose(found.boxes[found.names == "green"][0], (500, 400, 540, 440), atol=2)


def test_small_things_in_a_large_picture_are_found_in_tiles() -> None:
    runtime = PiecesRuntime()
    size = (2200, 1300)
    bank = FakeBank(runtime, red=SeenSize((24, 24), size), blue=SeenSize((20, 20), size))
    rng = np.random.default_rng(0)
    corners = [
        (x + int(rng.integers(0, 60)), y + int(rng.integers(0, 60)))
        for x in range(5, 2000, 173)
        for y in range(5, 1200, 173)
    ]
    things = [
        (name, (x, y, x + 24, y + 20))
        for (x, y), name in zip(corners, ["red", "blue", "red"] * 99, strict=False)
    ]
    large = ("red", (2110, 700, 2190, 1290))
    picture = scene(*size, *things, large)
    found = Tenet(runtime).detect(picture, bank)
    assert runtime.encoded_images > 4
    assert len(found) == len(things) + 1  # each once, and the one that is larger than any overlap
    for name, box in (*things, large):
        errors = np.abs(found.boxes[found.names == name] - np.array(box)).max(1)
        assert errors.min() < 4, (name, box)


def test_tiles_can_be_turned_off(bank: FakeBank) -> None:
    runtime = PiecesRuntime()
    small = FakeBank(runtime, red=SeenSize((24, 24)))
    Tenet(runtime).detect(scene(3000, 2000), small, tiles=False)
    assert runtime.encoded_images == 1


def test_thousands_of_classes_are_matched_a_few_at_a_time() -> None:
    class Counting(FakeRuntime):
        most = 0

        def match(self, images: object, classes: list) -> list[Detections]:  # type: ignore[override]
            self.most = max(self.most, len(classes))
            return super().match(images, classes)  # type: ignore[arg-type]

    class Many(FakeBank):
        names = tuple(f"class {row}" for row in range(300))

        def features(self, name: str):  # type: ignore[no-untyped-def]
            return super().features({"class 3": "red", "class 200": "green"}.get(name, "blue"))

        def seen(self, name: str) -> list[SeenSize]:
            return [MIDDLE]

    runtime = Counting()
    bank = Many(runtime)
    bank.names = Many.names
    found = Tenet(runtime).detect(scene(640, 480, RED, GREEN), bank, size=160)
    assert sorted(found.names.tolist()) == ["class 200", "class 3"]
    assert (runtime.most, runtime.encoded_images) == (CLASSES_AT_ONCE, 1)


def test_a_score_does_not_depend_on_the_place_in_the_bank() -> None:
    """Classes compete, and all that look alike meet: those of other heats too."""

    class Rivals(FakeRuntime):
        def match(self, images: Any, classes: Any) -> list[Detections]:
            """Whatever looks alike shares its score."""
            return [
                replace(found, scores=found.scores / max(1, len(found)))
                for found in super().match(images, classes)
            ]

    class Named(FakeBank):
        """Classes named by their place and their colour."""

        def __init__(self, runtime: FakeRuntime, names: list[str]) -> None:
            super().__init__(runtime)
            self.names = tuple(names)

        def features(self, name: str) -> ClassFeatures:
            return super().features(name.split()[1])

        def seen(self, name: str) -> list[SeenSize]:
            return [MIDDLE]

    runtime = Rivals()
    picture = scene(300, 200, ("red", (20, 30, 90, 100)))
    scores = set()
    for place in (0, 5, CLASSES_AT_ONCE - 1, CLASSES_AT_ONCE, CLASSES_AT_ONCE + 7):
        names = ["blue"] * (CLASSES_AT_ONCE + 8)
        names[2] = names[place] = "red"
        bank = Named(runtime, [f"{row} {name}" for row, name in enumerate(names)])
        found = Tenet(runtime).detect(picture, bank, threshold=0.0)
        assert set(found.names.tolist()) == {
            f"{row} {name}" for row, name in enumerate(names) if name == "red"
        }
        scores |= {round(score, 3) for score in found.scores.tolist()}
    assert scores == {0.45}
    assert len(Tenet(runtime).detect(scene(300, 200), bank, threshold=0.0)) == 0


def test_threshold_of_the_model_unless_another_is_asked(model: Tenet, bank: FakeBank) -> None:
    picture = scene(640, 480, RED)
    assert len(model.detect(picture, bank)) == 1  # the fake runtime scores .9 and asks for .5
    assert len(model.detect(picture, bank, 0.95)) == 0
    assert len(model.detect(picture, bank, threshold=0)) == 1
    model.runtime.threshold = 0.95  # type: ignore[misc]
    assert len(model.detect(picture, bank)) == 0


def test_numbers_of_numpy_are_numbers(model: Tenet, bank: FakeBank) -> None:
    options = {"size": np.int64(320), "batch": np.int32(2), "limit": np.uint8(1)}
    found = model.detect([scene(640, 480, RED, GREEN)], bank, np.float32(0.5), **options)  # type: ignore
    assert len(found[0]) == 1


def test_a_video(model: Tenet, bank: FakeBank, tmp_path: Path) -> None:
    film = write_video(tmp_path / "film.mp4")
    frames = list(model.stream(film, bank))
    assert [frame.number for frame in frames] == list(range(7))
    assert [frame.time for frame in frames] == pytest.approx([number / 10 for number in range(7)])
    lefts = [float(frame.detections.boxes[0, 0]) for frame in frames]
    assert lefts == pytest.approx([20 + 20 * number for number in range(7)], abs=6)
    third = list(model.stream(film, bank, every=3))
    assert [frame.number for frame in third] == [0, 3, 6]
    same(third[1].detections, frames[3].detections)


def test_a_video_of_a_telephone_is_upright(model: Tenet, bank: FakeBank, tmp_path: Path) -> None:
    turn_video(write_video(tmp_path / "film.mp4", frames=2))
    first = next(model.stream(tmp_path / "film.mp4", bank))
    assert first.picture is not None
    assert first.picture.shape == (320, 240, 3)
    # The thing at (20, 100, 70, 150) of the stored 320 x 240, turned clockwise.
    np.testing.assert_allclose(first.detections.boxes[0], (240 - 150, 20, 240 - 100, 70), atol=6)


def test_leaving_a_video_early_closes_it(model: Tenet, bank: FakeBank, tmp_path: Path) -> None:
    before = threading.active_count()
    stream = model.stream(write_video(tmp_path / "film.mp4"), bank)
    next(stream)
    assert threading.active_count() == before + 1  # the one that decodes ahead
    stream.close()
    assert threading.active_count() == before


def test_inputs_are_not_changed(model: Tenet, bank: FakeBank) -> None:
    picture = scene(640, 480, RED)
    before = picture.copy()
    model.detect([picture, picture], bank)
    np.testing.assert_array_equal(picture, before)


def test_a_progress_bar_only_where_it_is_asked_for(
    model: Tenet, bank: FakeBank, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.fromarray(scene(64, 48)).save(tmp_path / "a.png")
    model.detect(tmp_path, bank)
    assert capsys.readouterr().err == ""
    model.detect(tmp_path, bank, progress=True)
    assert "0/1" in capsys.readouterr().err


def test_loading_asks_the_runtime_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import ModuleType

    module = ModuleType("tenet.runtime.loading")
    module.load_runtime = lambda name=None: FakeRuntime(f"weights of {name}")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tenet.runtime.loading", module)
    assert Tenet.load("tenet_lite0").runtime.fingerprint == "weights of tenet_lite0"
    assert Tenet.load().runtime.fingerprint == "weights of None"
    assert Tenet.load().name == "fake"
    assert repr(Tenet.load()) == "Tenet('fake')"


def test_a_name_is_no_network() -> None:
    with pytest.raises(InputError, match=r"expected a network, got 'tenet_lite2'; .* Tenet.load\(name\)"):
        Tenet("tenet_lite2")  # type: ignore[arg-type]


def test_large_working_pictures_go_to_the_network_by_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by pixels, not by the number of pictures alone; results are those of each alone."""
    runtime, counts = FakeRuntime(), []
    encode = runtime.encode_images

    def counting(pictures: list[np.ndarray]) -> list[np.ndarray]:
        counts.append((len(pictures), sum(one.shape[0] * one.shape[1] for one in pictures)))
        return encode(pictures)

    monkeypatch.setattr(runtime, "encode_images", counting)
    model, bank = Tenet(runtime), FakeBank(runtime, red=MIDDLE, green=MIDDLE)
    many = [*pictures(), *pictures()]
    together = model.detect(many, bank, size=1500, batch=8)
    assert sum(number for number, _ in counts) == len(many)
    assert all(number == 1 or pixels <= WORKING_PIXELS for number, pixels in counts)
    assert max(number for number, _ in counts) > 1
    for one, found in zip(many, together, strict=True):
        same(found, model.detect(one, bank, size=1500))
    counts.clear()
    model.detect(many[:8], bank, size=480, batch=8)
    assert [number for number, _ in counts] == [8]
