"""`tenet detect` from end to end in a temporary folder: what it prints and writes, and its exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from detect_parts import GREEN, RED, photos_and_bank
from fake_bank import scene
from odd_files import png_header, write_video
from PIL import Image

from tenet.cli import main
from tenet.commands.detect_sources import find_sources
from tenet.errors import DataError
from tenet.results import from_coco, from_csv, from_voc, from_yolo

CLASSES = ("red", "green")


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    photos_and_bank(monkeypatch, tmp_path)


def bad_files() -> None:
    whole = Path("photos/both.png").read_bytes()
    Path("photos/half.png").write_bytes(whole[: len(whole) // 2])
    Path("photos/text.jpg").write_text("no picture")
    Path("photos/bomb.png").write_bytes(png_header(60_000, 60_000))


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "things.bank", "photos"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0].split() == ["picture", "class", "score", "x", "y", "w", "h"]
    [red] = [line.split() for line in lines if " red " in line]
    assert red[:3] == ["photos/both.png", "red", "0.90"]
    assert [int(value) for value in red[3:]] == pytest.approx([100, 120, 70, 60], abs=2)
    assert "photos/zero.png  –" in lines
    assert lines[-1] == "3 found in 3 pictures (1 without)"


def test_nothing_found_says_what_to_try(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "things.bank", "photos/zero.png"]) == 0
    summary = capsys.readouterr().out.splitlines()[-2:]
    assert summary[0] == "0 found in 1 picture (1 without)"
    assert summary[1] == "nothing has a score of 0.50; --threshold 0.1 shows what is less sure"
    assert main(["detect", "things.bank", "photos/zero.png", "--threshold", "0.1"]) == 0
    assert "less sure" not in capsys.readouterr().out


def test_json_on_stdout_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "things.bank", "photos/both.png", "--json", "-", "--classes", "green,red"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["model"], document["threshold"], document["classes"]) == ("fake", 0.5, ["green", "red"])
    [picture] = document["pictures"]
    assert (picture["picture"], picture["width"], picture["height"]) == ("photos/both.png", 640, 480)
    boxes = {one["class"]: one["box"] for one in picture["detections"]}
    assert boxes["red"] == pytest.approx([100, 120, 70, 60], abs=2)
    assert boxes["green"] == pytest.approx([300, 200, 60, 70], abs=2)
    assert {one["shot"] for one in picture["detections"]} == {0}
    assert document["failed"] == []


def test_json_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "things.bank", "photos", "--json", "out/found.json", "--threshold", "0.95"]) == 0
    assert "0 found in 3 pictures" in capsys.readouterr().out
    document = json.loads(Path("out/found.json").read_text())
    assert document["threshold"] == 0.95
    assert [len(one["detections"]) for one in document["pictures"]] == [0, 0, 0]


def test_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "things.bank", "photos", "--out", "found"]) == 0
    out = Path("found")
    assert {path.name for path in (out / "annotated").iterdir()} == {"both.jpg", "one.jpg", "zero.jpg"}
    drawn = np.array(Image.open(out / "annotated/both.jpg")).astype(int)
    assert np.abs(drawn - scene(640, 480, ("red", RED), ("green", GREEN))).max() > 60
    results = from_coco(json.loads((out / "results.json").read_text()))
    assert [(one.file_name, len(one.detections)) for one in results] == [
        ("photos/both.png", 2),
        ("photos/one.png", 1),
        ("photos/zero.png", 0),
    ]
    with Image.open(out / "contact_sheet.jpg") as sheet:
        assert min(sheet.size) > 100
    assert "photos/both.png" in (out / "report.html").read_text()
    printed = capsys.readouterr().out
    assert all(str(out / name) in printed for name in ("annotated", "results.json", "report.html"))


def test_our_own_output_is_not_looked_at_again() -> None:
    for _ in range(2):
        assert main(["detect", "things.bank", "photos", "--out", "photos/found"]) == 0
    assert len(from_coco(json.loads(Path("photos/found/results.json").read_text()))) == 3


def test_other_formats() -> None:
    for layout in ("yolo", "voc", "csv"):
        assert main(["detect", "things.bank", "photos", "--out", "found", "--format", layout]) == 0
    expected = from_coco(json.loads(Path("found/results.json").read_text()))[0].detections
    classes = Path("found/classes.txt").read_text().split()
    copies = [
        from_yolo(Path("found/labels/both.txt").read_text(), 640, 480, classes),
        from_voc(Path("found/Annotations/both.xml").read_text(), CLASSES).detections,
        from_csv(Path("found/results.csv").read_text(), CLASSES)[0].detections,
    ]
    for copy in copies:
        np.testing.assert_allclose(copy.boxes, expected.boxes, atol=0.01)
        assert copy.names.tolist() == expected.names.tolist()


def test_some_files_fail_and_the_others_are_done(capsys: pytest.CaptureFixture[str]) -> None:
    bad_files()
    assert main(["detect", "things.bank", "photos", "gone.jpg", "none/*.jpg", "--json", "-"]) == 3
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert [one["picture"] for one in document["pictures"]] == [
        f"photos/{n}.png" for n in ("both", "one", "zero")
    ]
    assert len(document["failed"]) == 5
    lines = err.splitlines()
    assert len(lines) == 5
    for name in ("gone.jpg", "none/*.jpg", "photos/half.png", "photos/text.jpg", "photos/bomb.png"):
        assert sum(line.startswith("tenet detect: ") and name in line for line in lines) == 1, name


@pytest.mark.parametrize(
    "words",
    [
        ["gone.jpg"],
        ["empty"],
        ["none/*.png"],
        ["photos/both.png", "--classes", "blue"],
        ["photos/both.png", "--threshold", "7"],
        ["photos/both.png", "--size", "7"],
        ["photos/both.png", "--format", "csv"],
        ["photos/both.png", "--out", "things.bank"],
    ],
)
def test_nothing_done_is_an_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert main(["detect", "things.bank", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tenet detect: ")
    assert "expected" in err
    assert err.count("\n") == 1


def test_all_files_fail(capsys: pytest.CaptureFixture[str]) -> None:
    bad_files()
    assert main(["detect", "things.bank", "photos/half.png", "photos/text.jpg", "--out", "found"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert not Path("found/results.json").exists()


@pytest.mark.parametrize("where", ["photos", "things.bank/found.json"])
def test_json_that_cannot_be_written_is_refused_before_the_work(
    where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["detect", "things.bank", "photos", "--json", where, "--out", "found"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tenet detect: --json: expected a file that can be written")
    assert not Path("found").exists()


def test_json_that_fails_in_the_end_loses_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(document: object, where: str) -> None:
        raise DataError(f"{where}: expected to write there, but it cannot be done (no space)")

    monkeypatch.setattr("tenet.commands.detect.emit_json", full)
    assert main(["detect", "things.bank", "photos", "--json", "a.json", "--out", "found"]) == 1
    out, err = capsys.readouterr()
    assert "3 found in 3 pictures" in out
    assert "no space" in err
    assert len(from_coco(json.loads(Path("found/results.json").read_text()))) == 3


def test_a_folder_that_fails_in_the_end_loses_no_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> list[str]:
        raise DataError("found: expected to write there, but it cannot be done (no space)")

    monkeypatch.setattr("tenet.commands.detect_output.Output.finish", full)
    assert main(["detect", "things.bank", "photos", "--json", "-", "--out", "found"]) == 1
    out, err = capsys.readouterr()
    assert len(json.loads(out)["pictures"]) == 3
    assert "no space" in err


def test_a_drawing_that_cannot_be_written_loses_no_detections(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(path: Path, content: bytes) -> None:
        if path.name == "one.jpg":
            raise DataError(f"{path}: expected to write there, but it cannot be done (no space)")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    monkeypatch.setattr("tenet.commands.detect_output.write_bytes", full)
    assert main(["detect", "things.bank", "photos", "--json", "a.json", "--out", "found"]) == 3
    out, err = capsys.readouterr()
    assert "3 found in 3 pictures (1 without); 1 failed" in out
    assert "one.jpg: expected to write there" in err
    assert {path.name for path in Path("found/annotated").iterdir()} == {"both.jpg", "zero.jpg"}
    assert len(json.loads(Path("a.json").read_text())["pictures"]) == 3
    assert "photos/one.png" in Path("found/report.html").read_text()


def test_without_the_package_for_videos_the_pictures_are_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("film.mp4").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "av", None)
    assert main(["detect", "things.bank", "film.mp4", "photos", "--json", "found.json"]) == 3
    out, err = capsys.readouterr()
    assert "3 found in 3 pictures (1 without); 1 failed" in out
    assert err.startswith("tenet detect: film.mp4: Reading videos needs optional packages; install")
    document = json.loads(Path("found.json").read_text())
    assert [one["picture"] for one in document["failed"]] == ["film.mp4"]
    assert main(["detect", "things.bank", "film.mp4"]) == 1


def test_files_of_a_folder_that_are_left_out_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("photos/a.HEIC").write_bytes(b"")
    Path("photos/.hidden.heic").write_bytes(b"")
    assert main(["detect", "things.bank", "photos"]) == 0
    assert capsys.readouterr().err == "tenet detect: 1 file left out: .heic (convert to JPEG)\n"
    for name in ("b.heic", "film.mp4", "notes.txt"):
        Path(f"photos/{name}").write_bytes(b"")
    [note] = find_sources(["photos", "./photos", "phot*"]).left_out
    assert note == ("4 files left out: .heic (convert to JPEG), .mp4 (name a video by itself), .txt")
    assert find_sources(["photos/*.png"]).left_out == []
    assert find_sources(["photos"], leave_out=Path("photos")).left_out == []
    Path("telephone").mkdir()
    Path("telephone/a.heic").write_bytes(b"")
    assert main(["detect", "things.bank", "telephone"]) == 1
    assert "convert to JPEG" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["large", "-3", "3.5"])
def test_a_size_that_is_none_is_wrong_use(size: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["detect", "things.bank", "photos", "--size", size])
    assert stop.value.code == 2


def test_videos(capsys: pytest.CaptureFixture[str]) -> None:
    write_video(Path("film.mp4"), frames=7)
    Path("none.mp4").write_text("no film")
    words = ["film.mp4", "none.mp4", "photos/one.png", "--every", "3", "--json", "-", "--out", "found"]
    assert main(["detect", "things.bank", *words]) == 3
    out, err = capsys.readouterr()
    assert "none.mp4: expected a video" in err
    pictures = json.loads(out)["pictures"]
    assert [one["picture"] for one in pictures] == [
        "photos/one.png",
        *(f"film.mp4_{n:06d}.jpg" for n in (0, 3, 6)),
    ]
    assert [(one["video"], one["frame"], one["time"]) for one in pictures[1:]] == [
        ("film.mp4", 0, 0.0),
        ("film.mp4", 3, 0.3),
        ("film.mp4", 6, 0.6),
    ]
    assert len(list(Path("found/annotated").iterdir())) == 4


def test_hostile_file_names(capsys: pytest.CaptureFixture[str]) -> None:
    content = Path("photos/both.png").read_bytes()
    for name in (b"photos/\x1b[2J.png", b"photos/\xff.png", "photos/été [1] <b>.png".encode()):
        Path(os.fsdecode(name)).write_bytes(content)
    for layout in ("voc", "csv"):
        assert main(["detect", "things.bank", "photos", "--out", "found", "--format", layout]) == 0
    assert "\x1b" not in capsys.readouterr().out
    names = [one.file_name for one in from_coco(json.loads(Path("found/results.json").read_text()))]
    assert "photos/été [1] <b>.png" in names
    assert (
        from_voc(Path("found/Annotations/été [1] <b>.xml").read_text()).file_name == "photos/été [1] <b>.png"
    )
    assert main(["detect", "things.bank", "photos/été [1] <b>.png"]) == 0  # brackets are no pattern here


def test_a_picture_wider_than_a_jpeg_can_be() -> None:
    Image.fromarray(scene(66_000, 40)).save("photos/wide.png")
    assert main(["detect", "things.bank", "photos/wide.png", "--size", "960", "--out", "found"]) == 0
    with Image.open("found/annotated/wide.jpg") as drawn:
        assert drawn.width > 60_000


def test_sources() -> None:
    Path("film.MP4").write_bytes(b"")
    pictures, videos, failed, left_out = find_sources(
        ["photos/o*.png", "photos", "film.MP4", "photos/one.png", "./photos"]
    )
    assert [path.name for path in pictures] == ["one.png", "both.png", "zero.png"]
    assert (videos, failed, left_out) == ([Path("film.MP4")], {}, [])
    assert len(find_sources(["**/*.png"])[0]) == 3
    assert len(find_sources(["phot*"])[0]) == 3


def test_help_needs_no_network_and_no_bank() -> None:
    check = (
        "import sys; from tenet.cli import build_parser; build_parser('detect').format_help(); "
        "sys.exit(any(name in sys.modules for name in ('torch', 'numpy', 'PIL')))"
    )
    root = str(Path(__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": root}
    assert subprocess.run([sys.executable, "-c", check], check=False, env=environment).returncode == 0
