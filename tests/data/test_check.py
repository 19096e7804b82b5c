"""Every defect is found and named; a repaired copy has none and keeps the rest."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_sets import OBJECT, coco_document, save_picture, voc_xml

from tenet.cli import main
from tenet.data.check import KINDS, check_scan, report_text
from tenet.data.formats import read_dataset, scan_path
from tenet.data.repair import repair, repaired_path

Change = Callable[[dict[str, Any]], object]


def kinds(path: Path, pixels: bool = True) -> dict[str, int]:
    return check_scan(scan_path(path), pixels).kinds()


def annotate(row: int, **fields: object) -> Change:
    return lambda document: document["annotations"][row].update(fields)


def append(name: str, entry: object) -> Change:
    return lambda document: document[name].append(entry)


COCO_DEFECTS: list[tuple[str, Change]] = [
    ("outside-box", annotate(0, bbox=[30, 20, 20, 20])),
    ("outside-box", annotate(0, bbox=[100, 100, 20, 20])),
    ("empty-box", annotate(0, bbox=[3, 3, 0, 5])),
    ("empty-box", annotate(0, bbox=[3, 3, -4, 5])),
    ("not-a-box", annotate(0, bbox=[float("nan"), 1, 2, 3])),
    ("not-a-box", annotate(0, bbox=[1, 2, 3])),
    ("not-a-box", annotate(0, bbox=None)),
    ("unknown-class", annotate(0, category_id=99)),
    ("unknown-image", annotate(0, image_id=99)),
    ("duplicate-id", annotate(1, id=1)),
    ("duplicate-id", append("images", coco_document()["images"][0])),
    ("duplicate-id", append("images", {"id": 7, "file_name": "sub/b.png", "width": 40, "height": 30})),
    ("duplicate-id", append("categories", {"id": 3, "name": "cow"})),
    ("malformed", append("annotations", {"id": 8})),
    ("malformed", append("images", {"id": 8})),
    ("malformed", append("categories", {"id": 8})),
    ("missing-picture", lambda document: document["images"][1].update(file_name="gone.png")),
    ("unsafe-path", lambda document: document["images"][1].update(file_name="../../x.png")),
    ("size-mismatch", lambda document: document["images"][0].update(width=44)),
    ("size-mismatch", lambda document: document["images"][0].update(width=80, height=60)),
]


@pytest.mark.parametrize(("kind", "change"), COCO_DEFECTS)
def test_each_coco_defect_is_found_and_repaired(
    kind: str, change: Change, coco_file: Callable[..., Path], tmp_path: Path
) -> None:
    path = coco_file(change)
    before = path.read_bytes()
    scan = scan_path(path)
    report = check_scan(scan)
    assert set(report.kinds()) == {kind}
    done = repair(scan, report.defects, tmp_path / "fixed")
    assert done
    fixed = repaired_path(scan, tmp_path / "fixed")
    assert kinds(fixed) == {}
    assert path.read_bytes() == before
    document = json.loads(fixed.read_text())
    assert document["info"] == {"note": "kept"}
    assert document["images"][0]["flickr"] == "kept"
    dropped = len(json.loads(before)["annotations"]) - len(document["annotations"])
    assert dropped == sum("left out" in line and "annotation" in line for line in done) + sum(
        int(line.split("with its ")[1].split()[0]) for line in done if "with its" in line
    )
    assert len(read_dataset(fixed)) >= 1


def test_every_kind_is_documented() -> None:
    found = {kind for kind, _ in COCO_DEFECTS} | {"unreadable-picture", "unreadable-file"}
    assert found == set(KINDS)


def test_a_sound_set_has_no_defect(
    coco_file: Callable[..., Path], voc_folder: Path, yolo_folder: Path
) -> None:
    for path in (coco_file(), voc_folder, yolo_folder):
        assert kinds(path) == {}


def test_boxes_of_a_scaled_set_are_scaled_with_it(coco_file: Callable[..., Path], tmp_path: Path) -> None:
    path = coco_file(lambda document: document["images"][0].update(width=80, height=60))
    scan = scan_path(path)
    repair(scan, check_scan(scan).defects, tmp_path / "fixed")
    record = read_dataset(tmp_path / "fixed" / "set.json").records[0]
    assert np.allclose(record.target.boxes[0], [0.5, 1, 5.5, 11])


def test_unreadable_pictures_need_pixels(coco_file: Callable[..., Path], tmp_path: Path) -> None:
    path = coco_file()
    (path.parent / "images" / "a.png").write_bytes(b"no picture")
    assert kinds(path) == {"unreadable-picture": 1}
    assert kinds(path, pixels=False) == {}
    scan = scan_path(path)
    done = repair(scan, check_scan(scan).defects, tmp_path / "fixed")
    assert "left out with its 2 boxes: unreadable-picture" in done[0]
    assert [record.id for record in read_dataset(tmp_path / "fixed" / "set.json").records] == ["9"]


def test_voc_defects_are_found_and_repaired(voc_folder: Path, tmp_path: Path) -> None:
    outside = OBJECT.format(name="cat", difficult=0, x1=30, y1=20, x2=60, y2=50)
    empty = OBJECT.format(name="cat", difficult=0, x1=9, y1=9, x2=5, y2=12)
    nameless = OBJECT.format(name="", difficult=0, x1=2, y1=2, x2=9, y2=9)
    broken = OBJECT.format(name="cat", difficult=0, x1="wide", y1=2, x2=9, y2=9)
    text = voc_xml(outside + empty + nameless + broken)
    (voc_folder / "Annotations" / "000005.xml").write_text(text)
    (voc_folder / "Annotations" / "000007.xml").write_text("<annotation>")
    (voc_folder / "Annotations" / "000008.xml").write_text(voc_xml("", filename="000008.png"))
    scan = scan_path(voc_folder)
    report = check_scan(scan)
    expected = {
        "outside-box",
        "empty-box",
        "unknown-class",
        "not-a-box",
        "unreadable-file",
        "missing-picture",
    }
    assert set(report.kinds()) == expected
    done = repair(scan, report.defects, tmp_path / "fixed")
    assert len(done) == len(report.defects) == 6
    assert kinds(tmp_path / "fixed") == {}
    dataset = read_dataset(tmp_path / "fixed")
    assert [record.id for record in dataset.records] == ["000005"]
    assert dataset.records[0].target.boxes.tolist() == [[29, 19, 40, 30]]
    assert "<source>kept</source>" in (tmp_path / "fixed" / "Annotations" / "000005.xml").read_text()
    lists = tmp_path / "fixed" / "ImageSets" / "Main"
    assert (lists / "cat_train.txt").read_text() == "000005  1\n"


def test_yolo_defects_are_found_and_repaired(yolo_folder: Path, tmp_path: Path) -> None:
    labels = yolo_folder / "labels" / "train"
    (labels / "a.txt").write_text("1 0.5 0.5 0.2 0.2\n7 0.5 0.5 0.1 0.1\n0 0.9 0.5 0.4 0.2\n0 0.5\nnan x\n")
    (labels / "orphan.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    save_picture(yolo_folder / "images" / "train" / "b.bmp")
    scan = scan_path(yolo_folder)
    report = check_scan(scan)
    alone = dict.fromkeys(("unknown-class", "outside-box", "missing-picture", "duplicate-id"), 1)
    assert report.kinds() == {"malformed": 2, **alone}
    assert any("line 2" in defect.where for defect in report.defects if defect.kind == "unknown-class")
    repair(scan, report.defects, tmp_path / "fixed")
    assert kinds(tmp_path / "fixed") == {}
    record = read_dataset(tmp_path / "fixed").records[0]
    assert np.allclose(record.target.boxes, [[16, 12, 24, 18], [28, 12, 40, 18]], atol=1e-3)


def test_an_empty_set_is_reported_and_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    path.write_text(json.dumps({"images": [], "annotations": [], "categories": []}))
    assert "0 pictures" in report_text(check_scan(scan_path(path)))


def test_command_exit_codes_json_and_histogram(
    coco_file: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = coco_file(name="sound.json")
    assert main(["data", "check", str(sound), "--histogram", str(tmp_path / "h.png")]) == 0
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")
    assert "no defect" in capsys.readouterr().out
    broken = coco_file(annotate(0, bbox=[3, 3, 0, 5]), name="broken.json")
    assert main(["data", "check", str(broken), "--json", "-"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["kinds"] == {"empty-box": 1}
    assert report["boxes_per_class"] == {"cat": 2, "dog": 1}
    assert report["defects"][0]["repair"] == "drop box"
    assert main(["data", "check", str(broken), "--fix", str(tmp_path / "fixed")]) == 0
    assert "left out: empty-box" in capsys.readouterr().out
    assert main(["data", "check", str(tmp_path / "absent.json")]) == 1
    assert "expected a COCO or FSOD JSON file" in capsys.readouterr().err
    assert main(["data", "check", str(sound), "--json", str(sound / "below.json")]) == 1
    assert "expected to write there" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main(["data", "check"])
    assert stop.value.code == 2


def test_turned_pictures_annotated_as_stored_are_remarked(tmp_path: Path) -> None:
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 8
    save_picture(tmp_path / "images" / "a.png")
    Image.open(tmp_path / "images" / "a.png").save(tmp_path / "images" / "a.jpg", exif=exif)
    document = coco_document()
    document["images"] = [{"id": 7, "file_name": "a.jpg", "width": 40, "height": 30}]
    document["annotations"] = document["annotations"][:1]
    (tmp_path / "set.json").write_text(json.dumps(document))
    report = check_scan(scan_path(tmp_path / "set.json"))
    assert report.defects == ()
    assert "1 pictures are turned by EXIF" in report.notes[0]
