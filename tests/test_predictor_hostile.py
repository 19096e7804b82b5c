"""What the predictor refuses, in one line: pictures, banks, numbers, folders with bad files."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_bank import FakeBank, PiecesRuntime, scene
from fake_runtime import FakeRuntime
from odd_files import png_header, write_video
from PIL import Image
from predictor_parts import GREEN, MIDDLE, RED, same

from tenet.errors import DataError, InputError, TenetError, WeightsError
from tenet.looks.frames import FolderDetections
from tenet.looks.sizes import SeenSize
from tenet.predictor import Tenet


@pytest.fixture
def model() -> Tenet:
    return Tenet(FakeRuntime())


@pytest.fixture
def bank(model: Tenet) -> FakeBank:
    return FakeBank(model.runtime, red=MIDDLE, green=MIDDLE)  # type: ignore[arg-type]


def test_a_pil_picture_that_cannot_be_decoded(model: Tenet, bank: FakeBank, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    whole = (tmp_path / "a.png").read_bytes()
    truncated = Image.open(io.BytesIO(whole[: len(whole) // 2]))
    floats = Image.fromarray(np.ones((9, 9), np.float32))
    closed = Image.open(tmp_path / "a.png")
    closed.close()
    for picture, says in ((truncated, "truncated"), (floats, "8- or 16-bit"), (closed, "cannot be decoded")):
        with pytest.raises(DataError, match=f"picture 0: expected .*{says}") as refused:
            model.detect(picture, bank)
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), "high", True])
def test_a_threshold_that_is_none(threshold: object, model: Tenet, bank: FakeBank) -> None:
    with pytest.raises(InputError, match="threshold: expected a score from 0 to 1"):
        model.detect(scene(64, 48), bank, threshold)  # type: ignore[arg-type]


def test_unknown_classes_name_the_nearest(model: Tenet, bank: FakeBank) -> None:
    with pytest.raises(InputError, match="got 'gren'; it has green"):
        model.detect(scene(64, 48), bank, classes=["red", "gren"])
    with pytest.raises(InputError, match="at least one"):
        model.detect(scene(64, 48), bank, classes=[])


@pytest.mark.parametrize("wrong", [None, "things.bank", Path("things.bank"), {"red": []}, [], scene(9, 9)])
def test_what_is_no_bank(wrong: Any, model: Tenet) -> None:
    kind = type(wrong).__name__
    for look in (model.detect, model.stream):
        with pytest.raises(InputError, match=rf"bank: expected a ClassBank, got {kind}; .*ClassBank\.load"):
            look(scene(64, 48), wrong)


def test_banks_that_cannot_be_used(model: Tenet) -> None:
    with pytest.raises(InputError, match="empty bank"):
        model.detect(scene(64, 48), FakeBank(model.runtime))  # type: ignore[arg-type]
    with pytest.raises(WeightsError, match=r"other-2.*rebuild=True"):
        model.detect(scene(64, 48), FakeBank(FakeRuntime("other-2"), red=MIDDLE))
    reading = FakeBank(model.runtime, red=MIDDLE)  # type: ignore[arg-type]
    reading.runtime = None  # type: ignore[assignment]
    with pytest.raises(InputError, match=r"ClassBank\.load"):
        model.detect(scene(64, 48), reading)  # type: ignore[arg-type]


def folder_with_bad_files(folder: Path) -> None:
    (folder / "deep").mkdir()
    Image.fromarray(scene(640, 480, RED)).save(folder / "b.png")
    Image.fromarray(scene(640, 480, GREEN)).save(folder / "deep" / "a.jpg", quality=95)
    whole = (folder / "b.png").read_bytes()
    (folder / "a-truncated.png").write_bytes(whole[: len(whole) // 2])
    (folder / "c-none.jpg").write_text("not a picture")
    (folder / "empty.png").write_bytes(b"")
    (folder / ".hidden.png").write_bytes(whole)
    (folder / "notes.txt").write_text("of no concern")


def test_a_folder_with_bad_files(model: Tenet, bank: FakeBank, tmp_path: Path) -> None:
    folder_with_bad_files(tmp_path)
    found = model.detect(tmp_path, bank)
    assert isinstance(found, FolderDetections)
    assert [path.name for path in found] == ["b.png", "a.jpg"]
    same(found[tmp_path / "b.png"], model.detect(tmp_path / "b.png", bank))
    same(found[str(tmp_path / "b.png")], found[tmp_path / "b.png"])  # type: ignore[index]
    assert {path.name for path in found.failed} == {"a-truncated.png", "c-none.jpg", "empty.png"}
    assert all(path.name in message for path, message in found.failed.items())
    assert "2 pictures, 2 detections, 3 failed" in repr(found)
    frames = list(model.stream(tmp_path, bank))
    assert len(frames) == 5
    assert sum(frame.error is not None for frame in frames) == 3


def test_a_stream_stops_at_a_bad_picture_unless_told_otherwise(
    model: Tenet, bank: FakeBank, tmp_path: Path
) -> None:
    folder_with_bad_files(tmp_path)
    paths = [tmp_path / "b.png", tmp_path / "c-none.jpg", tmp_path / "b.png"]
    stream = model.stream(paths, bank)
    assert len(next(stream).detections) == 1
    with pytest.raises(DataError, match=r"c-none\.jpg"):
        next(stream)
    kept = list(model.stream(paths, bank, keep_going=True))
    assert [frame.error is None for frame in kept] == [True, False, True]


HOSTILE = {
    "text": (b"not a picture", "expected a picture"),
    "nothing": (b"", "expected a picture"),
    "bomb": (png_header(60_000, 60_000), "million pixels"),
    "30,000 px square": (png_header(30_000, 30_000), "million pixels"),
    "no such file": ("/nowhere/at/all.png", "no such file"),
    "no pixels": (np.zeros((0, 10, 3), np.uint8), "at least 1 x 1"),
    "floats": (np.zeros((10, 10, 3)), "uint8"),
    "a batch": (np.zeros((2, 10, 10, 3), np.uint8), r"\(H, W, 3\)"),
    "a number": (7, "source: expected"),
    "nobody": (None, "source: expected"),
    "a generator": ((picture for picture in [1]), "stream"),
    "a set of numbers": ([np.zeros((9, 9, 3), np.uint8), 7], "picture 1: expected a path, bytes"),
    "a film": ("film.mp4", "stream"),
    "a film in a list": (["film.mp4"], "got a video; give it by itself"),
    "a folder in a list": ([Path("/")], "got a folder; give it by itself"),
    "base64": ("iVBORw0KGgo" * 1000, "got text of 11000 letters"),
    "too long a name": ("a" * 300 + ".png", "expected a picture"),
    "a null byte": ("a\0.png", "expected a picture"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_bad_pictures(name: str, model: Tenet, bank: FakeBank) -> None:
    source, message = HOSTILE[name]
    with pytest.raises(TenetError, match=message) as refused:
        model.detect(source, bank)
    assert "\n" not in str(refused.value)


def test_a_panorama_of_30_000_pixels_is_looked_at(bank: FakeBank) -> None:
    runtime = PiecesRuntime()
    things = FakeBank(runtime, red=SeenSize((60, 60)))
    picture = scene(30_000, 200, ("red", (100, 50, 160, 110)), ("red", (29_000, 20, 29_060, 80)))
    found = Tenet(runtime).detect(picture, things)
    assert sorted(found.boxes[:, 0].round().tolist()) == pytest.approx([100, 29_000], abs=3)


@pytest.mark.parametrize("shape", [(1, 1), (1, 500), (500, 1)])
def test_the_smallest_pictures(shape: tuple[int, int], model: Tenet, bank: FakeBank) -> None:
    assert len(model.detect(np.zeros((*shape, 3), np.uint8), bank)) == 0


def test_an_empty_folder(model: Tenet, bank: FakeBank, tmp_path: Path) -> None:
    for look in (model.detect, model.stream):
        with pytest.raises(DataError, match=r"expected pictures .* found none"):
            look(tmp_path, bank)


@pytest.mark.parametrize("option", ["batch", "limit", "every"])
def test_counts_are_whole_numbers(option: str, model: Tenet, bank: FakeBank) -> None:
    for value in (0, -1, 1.5, "2"):
        with pytest.raises(InputError, match=f"{option}: expected a whole number"):
            model.stream(scene(9, 9), bank, **{option: value})  # type: ignore[arg-type]


def test_videos_that_are_none(model: Tenet, bank: FakeBank, tmp_path: Path) -> None:
    whole = write_video(tmp_path / "film.mp4").read_bytes()
    play_list = b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfilm.mp4\n#EXT-X-ENDLIST\n"
    contents = {"text": b"no film" * 99, "empty": b"", "half": whole[: len(whole) // 2], "list": play_list}
    for name, content in contents.items():
        path = tmp_path / f"{name}.mp4"
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"{name}.mp4: expected a video") as refused:
            list(model.stream(path, bank))
        assert "\n" not in str(refused.value)
    with pytest.raises(DataError, match="no such file"):
        list(model.stream(tmp_path / "gone.mp4", bank))
