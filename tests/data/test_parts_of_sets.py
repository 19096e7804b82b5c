"""A path may name a part of a set: an image set of a devkit, a folder of a YOLO export."""

from collections.abc import Callable
from pathlib import Path

import pytest
from small_sets import save_picture

from tenet.data.dataset import Dataset
from tenet.data.formats import read_dataset, scan_path, split_part
from tenet.engine.training_set import read_sets
from tenet.errors import DataError, InputError

LAYOUTS = ("images/{part}", "{part}/images")


def write_yolo_parts(folder: Path, layout: str, names: str = "names: [cat, dog]\n") -> Path:
    """Two pictures in train, one in valid and one in test, each with a box."""
    for seed, file in enumerate(("train/a", "train/b", "valid/c", "test/d")):
        part, stem = file.split("/")
        pictures = folder / layout.format(part=part)
        save_picture(pictures / f"{stem}.png", seed=seed)
        label = folder / layout.replace("images", "labels").format(part=part) / f"{stem}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text(f"{seed % 2} 0.5 0.5 0.5 0.2\n")
    if names:
        (folder / "data.yaml").write_text(names)
    return folder


def ids(dataset: Dataset) -> list[str]:
    return [record.id for record in dataset.records]


def test_a_part_of_a_devkit_is_an_image_set(voc_folder: Path) -> None:
    part = read_dataset(f"{voc_folder}:train")
    assert part.name == read_dataset(voc_folder, image_set="train").name == "VOC2007_train"
    assert ids(part) == ["000005"]
    assert ids(read_dataset(f"{voc_folder}/:train")) == ["000005"]  # as completion by the shell leaves it
    assert len(read_dataset(voc_folder)) == 2
    with pytest.raises(DataError, match="expected an image set among cat_train, train; got test"):
        read_dataset(f"{voc_folder}:test")
    with pytest.raises(InputError, match="expected one part, got the image set 'train' as well"):
        read_dataset(f"{voc_folder}:train", image_set="train")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_part_of_a_yolo_folder(layout: str, tmp_path: Path) -> None:
    folder = write_yolo_parts(tmp_path / "my_yolo", layout)
    whole = read_dataset(folder)
    parts = [read_dataset(f"{folder}:{part}") for part in ("test", "train", "valid")]
    assert [part.name for part in parts] == ["my_yolo_test", "my_yolo_train", "my_yolo_valid"]
    assert ids(parts[1]) == ["train/a", "train/b"]
    records = [record for part in parts for record in part.records]
    assert [(record.id, record.file_name) for record in records] == [
        (record.id, record.file_name) for record in whole.records
    ]
    assert all(len(record.target) == 1 and record.picture().shape == (30, 40, 3) for record in records)
    assert ids(read_dataset(folder, image_set="valid")) == ["valid/c"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("part", ["val", "..", "images", "labels"])
def test_an_unknown_part_names_those_that_are_there(layout: str, part: str, tmp_path: Path) -> None:
    folder = write_yolo_parts(tmp_path / "my_yolo", layout)
    with pytest.raises(DataError, match=r"my_yolo: expected a part among test, train, valid; got"):
        read_dataset(f"{folder}:{part}")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_part_with_pictures_elsewhere(layout: str, tmp_path: Path) -> None:
    folder = write_yolo_parts(tmp_path / "my_yolo", layout)
    moved = tmp_path / "pictures"
    (folder / ("images" if layout == "images/{part}" else "train/images")).rename(moved)
    part = read_dataset(f"{folder}:train", images=moved)
    assert ids(part) == ["train/a", "train/b"]
    assert [len(record.target) for record in part.records] == [1, 1]


def test_a_folder_without_parts(yolo_folder: Path) -> None:
    with pytest.raises(DataError, match=r"expected a part among train; got test"):
        read_dataset(f"{yolo_folder}:test")
    flat = yolo_folder.parent / "flat"
    save_picture(flat / "images" / "a.png")
    (flat / "labels").mkdir()
    (flat / "classes.txt").write_text("cat\n")
    with pytest.raises(DataError, match=r"expected a part among none; got a"):
        read_dataset(f"{flat}:a")


def test_the_folder_of_a_part_has_the_names_above_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_yolo_parts(tmp_path / "my_yolo", "{part}/images")
    part = read_dataset(folder / "train")
    assert (part.classes, ids(part)) == (("cat", "dog"), ["a", "b"])
    monkeypatch.chdir(folder / "train")
    assert read_dataset(".").classes == ("cat", "dog")
    (folder / "train" / "classes.txt").write_text("hat\nlog\n")
    assert read_dataset(folder / "train").classes == ("hat", "log")


def test_no_names_anywhere(tmp_path: Path) -> None:
    folder = write_yolo_parts(tmp_path / "my_yolo", "{part}/images", names="")
    with pytest.raises(
        DataError, match=r"train: expected data\.yaml with `names`, there or one folder above"
    ):
        read_dataset(folder / "train")


def test_json_files_have_no_parts(coco_file: Callable[..., Path]) -> None:
    path = coco_file()
    for given in (lambda: scan_path(Path(f"{path}:train")), lambda: scan_path(path, image_set="train")):
        with pytest.raises(InputError, match=r"set\.json, part 'train': expected .*, got coco, .*no parts"):
            given()


def test_a_colon_in_a_name_is_a_name(tmp_path: Path) -> None:
    folder = write_yolo_parts(tmp_path / "my:yolo", "{part}/images")
    write_yolo_parts(tmp_path / "my", "{part}/images")
    assert split_part(folder) == (folder, None)
    assert len(read_dataset(folder)) == 4
    assert ids(read_dataset(f"{folder}:test")) == ["test/d"]
    assert read_dataset(f"{folder}:test").name == "my:yolo_test"


@pytest.mark.parametrize("path", ["absent:test", "VOC2007:", ":test", "a:b/absent"])
def test_what_is_no_part_is_a_path(path: str, voc_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(voc_folder.parent)
    assert split_part(Path(path)) == (Path(path), None)
    with pytest.raises(DataError, match="found nothing"):
        read_dataset(path)


def test_recipes_name_parts(tmp_path: Path) -> None:
    write_yolo_parts(tmp_path / "my_yolo", "{part}/images")
    train, test = read_sets(["my_yolo:train", "my_yolo:test"], tmp_path)
    assert (ids(train), ids(test)) == (["train/a", "train/b"], ["test/d"])
    with pytest.raises(DataError, match=r"data\.train: expected data at .*absent:train, found nothing"):
        read_sets(["absent:train"], tmp_path)
    with pytest.raises(InputError, match="expected one part"):
        read_sets(["my_yolo:train"], tmp_path, "trainval")
