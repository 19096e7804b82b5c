"""The bank's file: damage is told, saving loses nothing, many classes open at once."""

import json
import os
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bank_parts import THING, colour_bank, picture, same_banks
from fake_runtime import FakeRuntime
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import tenet.bank
import tenet.banks.bank_file
from tenet.bank import ClassBank
from tenet.banks.bank_file import BankFile, Maker, write_bank
from tenet.banks.stored_class import PARTS, store
from tenet.errors import DataError, InputError, TenetError


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "a.bank"
    colour_bank().save(path)
    return path


def read_everything(path: Path) -> ClassBank:
    bank = ClassBank.load(path, FakeRuntime())
    for name in bank:
        bank.features(name), bank.thumbnails(name), bank.registration(name)
    return bank


def test_the_file_is_plain_safetensors(saved: Path) -> None:
    tensors = load_file(saved)
    assert tensors["phi"].dtype == tensors["psi"].dtype == tensors["raw"].dtype == np.float16
    assert tensors["phi"].shape == (6, 3, 1, 1)
    assert tensors["rank"].tolist() == [-1, 1, -1, 1, 1, 1]
    assert tensors["shots"].tolist() == [1, 2, 3]
    assert len(tensors) < 25
    with safe_open(saved, framework="np") as file:
        told = file.metadata()
    assert (told["format"], told["model"], told["fingerprint"]) == ("tenet-bank-1", "fake", "fake-1")


def test_a_flipped_byte_is_told_or_changes_nothing(saved: Path, tmp_path: Path) -> None:
    content, whole = saved.read_bytes(), colour_bank()
    places = np.random.default_rng(0).integers(0, len(content), 150).tolist()
    header = 8 + struct.unpack("<Q", content[:8])[0]
    places += [0, 3, 7, *range(8, header, 5), header, len(content) - 1]
    told = []
    damaged = tmp_path / "damaged.bank"
    for place in places:
        damaged.write_bytes(content[:place] + bytes([content[place] ^ 0x15]) + content[place + 1 :])
        try:
            bank = read_everything(damaged)
        except TenetError as error:
            told.append(str(error))
        else:
            assert same_banks(bank, whole)
    assert len(told) > 0.95 * len(places)
    assert all(message.startswith(str(damaged)) and "\n" not in message for message in told)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.999])
def test_a_file_cut_short(saved: Path, share: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(
        DataError, match=r"a\.bank: expected a bank of `tenet register`, but it is .*cut short"
    ):
        ClassBank.open(saved)


def test_damage_in_one_class_leaves_the_others(saved: Path) -> None:
    content = saved.read_bytes()
    crop = ClassBank.open(saved).shots("green")[0].crop
    at = content.index(crop) + len(crop) // 2
    saved.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    bank = ClassBank.load(saved, FakeRuntime())
    with pytest.raises(DataError, match=r"a\.bank: green: expected its crops as they were written"):
        bank.thumbnails("green")
    assert len(bank.thumbnails("blue")) == 3
    before = saved.read_bytes()
    with pytest.raises(DataError, match="green"):
        bank.save(saved)
    assert saved.read_bytes() == before
    bank.remove("green")
    bank.save(saved)
    assert read_everything(saved).names == ("red", "blue")


def test_other_files_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "weights.safetensors"
    save_file({"w": np.zeros(3, np.float32)}, other)
    with pytest.raises(DataError, match="a safetensors file of something else"):
        ClassBank.open(other)
    save_file({"w": np.zeros(3, np.float32)}, other, {"format": "tenet-bank-2"})
    with pytest.raises(DataError, match="update tenet"):
        ClassBank.open(other)
    save_file({"w": np.zeros(3, np.float32)}, other, {"format": "tenet-bank-1"})
    with pytest.raises(DataError, match="damaged"):
        ClassBank.open(other)
    with pytest.raises(DataError, match="expected the file of a bank, got a folder"):
        ClassBank.open(tmp_path)
    with pytest.raises(DataError, match="no such file; make one with `tenet register`"):
        ClassBank.open(tmp_path / "absent.bank")


def forge(path: Path, **changed: Any) -> None:
    """The same bank with other index tensors, and a digest that agrees with them."""
    tensors = load_file(path)
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    tensors |= changed
    index = {name: array for name, array in tensors.items() if name not in PARTS}
    metadata["digest"] = tenet.banks.bank_file._digest(metadata, index)
    save_file(tensors, path, metadata)


def text(content: str) -> Any:
    return np.frombuffer(content.encode(), np.uint8)


@pytest.mark.parametrize(
    "changed",
    [
        {"names": text("not json")},
        {"names": text("[" * 100_000)},
        {"names": text('{"a": 1}')},
        {"names": text("5")},
        {"names": text('["red", "green"]')},
        {"names": text('["red", "green", "green"]')},
        {"names": text('["red", "green", 7]')},
        {"names": text('["red", "green", "../../etc"]')},
        {"names": np.array([0xFF, 0xFE, 0x00], np.uint8)},
        {"shots": np.array([0, 3, 3])},
        {"shots": np.array([1, 2, 2**62])},
        {"shots": np.array([-1, 4, 3])},
        {"shots": np.array([1, 2, 3, 0])},
        {"objectness_sizes": np.array([0, 3, 2**62])},
        {"objectness_sizes": np.array([-3, 6, 3])},
        {"checks": np.zeros((3, 2), np.uint32)},
        {"crop_bytes": np.array([2**40, 1, 1, 1, 1, 1])},
        {"crop_bytes": np.array([0, 1, 1, 1, 1, 1])},
        {"scene_bytes": np.array([-5, 1, 1, 1, 1, 1])},
        {"box": np.zeros((6, 3), np.float32)},
        {"rank": np.zeros(5, np.int64)},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_an_index_that_makes_no_sense(saved: Path, changed: dict[str, Any]) -> None:
    forge(saved)
    assert read_everything(saved).names == ("red", "green", "blue")  # forging by itself does no harm
    forge(saved, **changed)
    with pytest.raises(DataError, match="damaged") as caught:
        ClassBank.open(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("field", "first"), [("crop_bytes", 0), ("scene_bytes", -5)])
def test_lengths_that_add_up_and_make_no_sense(saved: Path, field: str, first: int) -> None:
    sizes = load_file(saved)[field].copy()
    sizes[1], sizes[2] = first, sizes[1] + sizes[2] - first  # the two shots of one class
    forge(saved, **{field: sizes})
    with pytest.raises(DataError, match="a shot without a crop"):
        ClassBank.open(saved)


def test_its_own_file_is_let_go_of_before_it_is_replaced(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows replaces no file that is open."""
    monkeypatch.setattr(tenet.banks.bank_file, "WINDOWS", True)
    bank = ClassBank.load(saved, FakeRuntime())
    old, handles, replace = bank._file, [], os.replace
    assert old is not None

    def watched(source: str, target: Path) -> None:
        handles.append(old._handle)
        replace(source, target)

    monkeypatch.setattr("os.replace", watched)
    assert old._handle is not None
    bank.save(saved)
    assert handles == [None]
    assert len(bank.features("blue")) == 3


def test_a_save_that_fails_leaves_the_old_file(
    saved: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = saved.read_bytes()
    bank = ClassBank.load(saved, FakeRuntime())
    bank.register("red", [picture(seed=3)])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(DataError, match="No space left on device"):
        bank.save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.bank"]
    monkeypatch.undo()
    assert len(bank.features("blue")) == 3
    bank.save(saved)
    assert len(read_everything(saved).features("red")) == 2


def test_a_file_replaced_behind_our_back(saved: Path) -> None:
    file = BankFile(saved)
    file.close()
    assert len(file.classes["blue"].features()) == 3
    file.close()
    ClassBank(FakeRuntime()).save(saved)
    with pytest.raises(DataError, match="was replaced since it was loaded; load it anew"):
        file.classes["blue"].features()


def test_what_another_saved_meanwhile_is_not_lost(saved: Path) -> None:
    mine, theirs = (ClassBank.load(saved, FakeRuntime()) for _ in range(2))
    theirs.register("theirs", [(picture("red", seed=7), THING)])
    theirs.save(saved)
    mine.register("mine", [(picture("red", seed=8), THING)])
    with pytest.raises(DataError, match="changed by another since it was loaded") as told:
        mine.save(saved)
    assert "\n" not in str(told.value)
    assert "theirs" in ClassBank.open(saved)
    mine.save(saved.with_name("b.bank"))
    again = ClassBank.load(saved, FakeRuntime())
    again.merge(ClassBank.open(saved.with_name("b.bank")))
    again.save(saved)
    again.rename("mine", "ours")
    again.save(saved)  # what we saved ourselves is no change of another
    assert {"theirs", "ours"} <= set(ClassBank.open(saved).names)


def test_a_class_registered_during_a_save_stays(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = ClassBank.load(saved, FakeRuntime())
    write = tenet.bank.write_bank

    def slow(*args: Any, **named: Any) -> None:
        write(*args, **named)
        bank.register("late", [(picture("blue", seed=9), THING)])

    with monkeypatch.context() as patch:
        patch.setattr(tenet.bank, "write_bank", slow)
        bank.save(saved)
    assert "late" in bank
    assert "late" not in ClassBank.open(saved)
    bank.save(saved)
    assert "late" in read_everything(saved)


def test_features_of_other_shapes_are_not_mixed(tmp_path: Path) -> None:
    bank = colour_bank()
    narrow = bank.features("red")
    narrow = type(narrow)(narrow.psi, narrow.psi, narrow.phi[:, :2], narrow.raw)
    classes = {"red": store(bank.shots("red"), bank.features("red")), "n": store(bank.shots("red"), narrow)}
    with pytest.raises(InputError, match="n: expected phi of shape"):
        write_bank(tmp_path / "a.bank", Maker("fake", "fake-1", 32), classes, None)
    assert not list(tmp_path.iterdir())


def test_ten_thousand_classes(tmp_path: Path) -> None:
    bank = ClassBank(FakeRuntime())
    bank.register("thing", [picture(), (picture(seed=1), THING)])
    one = store(bank.shots("thing"), bank.features("thing"))
    path = tmp_path / "many.bank"
    names = [f"class {row}" for row in range(10_000)]
    write_bank(path, Maker("fake", "fake-1", 32), dict.fromkeys(names, one), None)
    start = time.perf_counter()
    loaded = ClassBank.load(path, FakeRuntime())
    seconds = time.perf_counter() - start
    assert loaded.names == tuple(names)
    assert len(loaded.features("class 7777")) == 2
    assert loaded.shots("class 9999") == bank.shots("thing")
    assert seconds < 5
    # Opening reads the index and not the features and pictures: a header of twenty tensors.
    with path.open("rb") as stream:
        assert len(json.loads(stream.read(struct.unpack("<Q", stream.read(8))[0]))) < 25


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no file that is open")
def test_a_bank_that_took_classes_over_outlives_their_file(saved: Path, tmp_path: Path) -> None:
    """The one saves itself over the file that the other still reads a class from."""
    one, other = ClassBank.load(saved, FakeRuntime()), ClassBank(FakeRuntime())
    other.merge(one)
    one.register("further", [picture("blue", seed=9)])
    one.save(saved)
    for name in other:
        assert np.array_equal(other.features(name).phi, one.features(name).phi)
    other.save(tmp_path / "other.bank")
    assert list(ClassBank.load(tmp_path / "other.bank", FakeRuntime())) == list(other)
