"""`tenet register`, end to end in a temporary folder, with a fake network."""

import json
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import numpy as np
import pytest
from bank_parts import COLOURS, THING, RecordingRuntime, picture
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.bank import ClassBank
from tenet.cli import main
from tenet.commands.banks import parse_shot
from tenet.errors import InputError
from tenet.looks.sizes import SeenSize
from tenet.predictor import Tenet

X, Y, W, H = THING[0], THING[1], THING[2] - THING[0], THING[3] - THING[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with pictures; models are fakes."""
    asked: dict[str | None, str] = {None: "fake-1", "other": "fake-2"}
    monkeypatch.setattr(Tenet, "load", lambda name=None: Tenet(RecordingRuntime(asked[name])))
    monkeypatch.chdir(tmp_path)
    for colour in COLOURS:
        for seed in range(3):
            Image.fromarray(picture(colour, seed=seed)).save(tmp_path / f"{colour}{seed}.png")
    return tmp_path


def coco(folder: Path, classes: tuple[str, ...] = tuple(COLOURS)) -> Path:
    """A COCO set of the folder's pictures: class k is colour k, three boxes of each; "empty" has none."""
    images, boxes = [], []
    for label, colour in enumerate(COLOURS):
        for seed in range(3):
            number = len(images) + 1
            images.append({"id": number, "file_name": f"{colour}{seed}.png", "width": 160, "height": 120})
            box = {"id": number, "image_id": number, "category_id": label + 1, "bbox": [X, Y, W, H]}
            boxes.append({**box, "area": W * H, "iscrowd": 0})
    categories = [{"id": row + 1, "name": name} for row, name in enumerate((*classes, "empty"))]
    path = folder / "set.json"
    path.write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))
    return path


def loaded(path: str = "a.bank") -> ClassBank:
    return ClassBank.load(path, FakeRuntime())


def test_crops_and_boxes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["register", "a.bank", "red", "red0.png", f"red1.png:{X},{Y},{W},{H}"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("red: 2 shots, good. The detector sees 1 of 1")
    assert said.err == ""
    assert loaded().seen("red") == [SeenSize((160, 120)), SeenSize((W, H), (160, 120))]
    in_python = ClassBank(RecordingRuntime())
    in_python.register("red", ["red0.png", ("red1.png", THING)])
    assert loaded().shots("red") == in_python.shots("red")


def test_a_folder_is_its_crops(folder: Path) -> None:
    (folder / "crops").mkdir()
    for seed in range(3):
        (folder / f"red{seed}.png").rename(folder / "crops" / f"{seed}.png")
    assert main(["register", "a.bank", "red", "crops", "green0.png"]) == 0
    in_python = ClassBank(RecordingRuntime())
    in_python.register("red", [*(f"crops/{seed}.png" for seed in range(3)), "green0.png"])
    assert loaded().shots("red") == in_python.shots("red")


def test_corners_in_the_place_of_a_width_are_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["register", "a.bank", "red", "red0.png:100,60,150,110"]) == 1
    told = capsys.readouterr().err
    assert "if these are corners, write 100,60,50,50" in told
    assert told.count("\n") == 1
    assert not Path("a.bank").exists()
    assert main(["register", "a.bank", "red", "red0.png:100,60,62,62"]) == 0  # a little outside is cut


def test_two_commands_at_once_lose_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second waits until the first has saved, even where there was no bank before."""
    register = ClassBank.register
    begun = Event()

    def slow(self: ClassBank, name: str, *args: Any, **named: Any) -> Any:
        begun.set()
        sleep(0.3)
        return register(self, name, *args, **named)

    monkeypatch.setattr(ClassBank, "register", slow)
    first = Thread(target=main, args=(["register", "a.bank", "red", "red0.png"],))
    first.start()
    assert begun.wait(30)
    assert main(["register", "a.bank", "blue", "blue0.png"]) == 0
    first.join()
    assert set(loaded().names) == {"red", "blue"}


def test_adding_replacing_and_a_second_class(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["red", "red0.png"], ["blue", "blue0.png"], ["red", "red1.png", "red0.png"]):
        assert main(["register", "a.bank", *words]) == 0
    assert "same as shot 0 and was left out" in capsys.readouterr().out
    assert [len(loaded().seen(name)) for name in ("red", "blue")] == [2, 1]
    assert main(["register", "a.bank", "red", "red2.png", "--replace"]) == 0
    assert len(loaded().seen("red")) == 1


def test_json_for_pipes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shot = f"red1.png:{X},{Y},{W},{H}"
    assert main(["register", "a.bank", "red", shot, "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bank"] == "a.bank"
    assert told["classes"]["red"]["verdict"] == "good"
    assert main(["register", "a.bank", "red", "red0.png", "--json", "answer.json"]) == 0
    assert json.loads(Path("answer.json").read_text())["classes"]["red"]["shots"] == 2
    assert "red: 2 shots" in capsys.readouterr().out


def test_paths_with_colons(folder: Path) -> None:
    assert parse_shot(r"C:\pictures\a.jpg") == (Path(r"C:\pictures\a.jpg"), None)
    assert parse_shot(r"C:\pictures\a.jpg:1,2,3,4") == (Path(r"C:\pictures\a.jpg"), (1, 2, 4, 6))
    assert parse_shot("12:30:05.png") == (Path("12:30:05.png"), None)
    assert parse_shot("12:30:05.png:1.5,2,3,4") == (Path("12:30:05.png"), (1.5, 2, 4.5, 6))
    assert parse_shot("a,b/c:d/e.png") == (Path("a,b/c:d/e.png"), None)
    assert parse_shot("-5.jpg:-3,-4,10,10") == (Path("-5.jpg"), (-3, -4, 7, 6))
    odd = Path("shot:1,2,3,4")
    odd.write_bytes(Path("red0.png").read_bytes())
    assert parse_shot(str(odd)) == (odd, None)
    for wrong in ("a.jpg:1,2,3", "a.jpg:1,2,3,4,5", "a.jpg:1,2,x,4", "a.jpg:1,2,0,4", "a.jpg:1,2,3,-4"):
        with pytest.raises(InputError, match="expected"):
            parse_shot(wrong)
    with pytest.raises(InputError, match="w and h above 0"):
        parse_shot("a.jpg:1,2,nan,4")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["red", "absent.jpg"], "absent.jpg: expected a picture, but there is no such file"),
        (["red", "x" * 5000], "but there is no such file"),
        (["red", "empty folder"], "expected pictures (.jpg"),
        (["red", "red0.png:1-2-3-4"], "red0.png:1-2-3-4: expected IMAGE:x,y,w,h, four numbers in pixels"),
        (["red", "red0.png", "broken.jpg"], "red, shot 1: broken.jpg: expected a picture"),
        (["red", "red0.png:1,2,3"], "four numbers"),
        (["red", "red0.png:500,500,20,20"], "red, shot 0: expected a box with at least"),
        (["red", "red0.png:nan,2,3,4"], "four finite numbers"),
        (["a/b", "red0.png"], "class name"),
        (["", "red0.png"], "class name"),
        (["red"], "expected NAME and at least one IMAGE"),
        ([], "expected NAME and at least one IMAGE"),
        (["red", "red0.png", "--shots", "5"], "--from"),
        (["red", "red0.png", "--from", "set.json", "--shots", "5"], "expected no NAME"),
        (["--from", "set.json"], "expected --shots N"),
        (["--from", "absent.json", "--shots", "1"], "absent.json"),
        (["--from", "set.json", "--shots", "1", "--classes", "nothing"], "expected some of red, green, blue"),
        (["--from", "set.json", "--shots", "1", "--min-side", "900"], "expected boxes to draw shots from"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    coco(folder)
    Path("empty folder").mkdir()
    Path("broken.jpg").write_bytes(b"no picture")
    assert main(["register", "a.bank", *words]) == 1
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1
    assert lines[0].startswith("tenet register: ")
    assert message in lines[0]
    assert said.out == ""
    assert not Path("a.bank").exists()


def test_a_bank_of_another_model_is_refused_with_the_remedy(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["register", "a.bank", "red", "red0.png"]) == 0
    before = Path("a.bank").read_bytes()
    assert main(["register", "a.bank", "red", "red1.png", "--model", "other"]) == 1
    assert "`tenet classes a.bank --rebuild --model other`" in capsys.readouterr().err
    assert Path("a.bank").read_bytes() == before


def test_a_file_that_is_no_bank_is_not_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(name: object = None) -> Tenet:
        raise AssertionError("the model was loaded for a file that is no bank")

    monkeypatch.setattr(Tenet, "load", never)
    before = Path("red1.png").read_bytes()
    assert main(["register", "red1.png", "red", "red0.png"]) == 1
    assert "red1.png: expected a bank" in capsys.readouterr().err
    assert Path("red1.png").read_bytes() == before


def test_a_whole_set(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coco(folder)
    assert main(["register", "a.bank", "--from", "set.json", "--shots", "2"]) == 0
    said = capsys.readouterr()
    assert said.err == "note: empty has 0 of 2 shots\n"
    assert len(said.out.splitlines()) == 3
    bank = loaded()
    assert bank.names == ("red", "green", "blue")
    assert all(len(bank.seen(name)) == 2 for name in bank)
    for name, colour in COLOURS.items():
        assert np.abs(bank.features(name).raw - colour).max() < 12
        assert bank.seen(name)[0] == SeenSize((W, H), (160, 120))


def test_a_set_is_drawn_by_seed(folder: Path) -> None:
    coco(folder)
    words = ["--from", "set.json", "--shots", "1", "--classes", "red,blue", "--seed"]
    for bank, seed in (("a.bank", "0"), ("b.bank", "0"), ("c.bank", "1"), ("d.bank", "2")):
        assert main(["register", bank, *words, seed]) == 0
    contents = [Path(f"{letter}.bank").read_bytes() for letter in "abcd"]
    assert contents[0] == contents[1]
    assert len(set(contents)) > 1
    assert loaded().names == ("red", "blue")


def test_one_bad_picture_among_many(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coco(folder)
    Path("green1.png").write_bytes(Path("green1.png").read_bytes()[:300])
    assert main(["register", "a.bank", "--from", "set.json", "--shots", "3"]) == 1
    said = capsys.readouterr()
    assert "green: not registered: " in said.err
    assert "green1.png" in said.err
    assert loaded().names == ("red", "blue")
    assert len(said.out.splitlines()) == 2


def test_names_of_a_set_with_slashes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coco(folder, ("Cabinet/shelf", "b", "c"))
    assert main(["register", "a.bank", "--from", "set.json", "--shots", "1"]) == 0
    assert loaded().names == ("Cabinet-shelf", "b", "c")
    coco(folder, ("a/b", "a-b", "c"))
    assert main(["register", "b.bank", "--from", "set.json", "--shots", "1"]) == 1
    assert "a/b, a-b" in capsys.readouterr().err


def test_other_formats(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coco(folder)
    banks: dict[str, Any] = {}
    for layout in ("voc", "yolo", "fsod"):
        assert main(["data", "convert", "set.json", layout, "--to", layout]) == 0
        source = next(Path(layout).rglob("*.json"), Path(layout))
        assert main(["register", f"{layout}.bank", "--from", str(source), "--shots", "3"]) == 0
        banks[layout] = loaded(f"{layout}.bank")
    capsys.readouterr()
    for bank in banks.values():
        assert set(bank.names) == set(COLOURS)
        assert all(bank.seen(name) == [SeenSize((W, H), (160, 120))] * 3 for name in bank)
