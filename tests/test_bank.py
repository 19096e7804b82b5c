"""ClassBank: laws of registering, adding, removing, merging, saving."""

import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bank_parts import (
    THING,
    RecordingRuntime,
    colour_bank,
    picture,
    same_banks,
    same_features,
)
from fake_runtime import FakeRuntime
from PIL import Image

from tenet.bank import ClassBank
from tenet.errors import InputError, WeightsError
from tenet.looks.sizes import LARGEST, SeenSize, working_size
from tenet.predictor import Tenet


def test_every_kind_of_shot_is_the_same_shot(tmp_path: Path) -> None:
    pixels = picture()
    file = tmp_path / "shot.png"
    Image.fromarray(pixels).save(file)
    kinds: list[Any] = [pixels, Image.fromarray(pixels), file, str(file), file.read_bytes()]
    bank = ClassBank(FakeRuntime())
    for row, kind in enumerate(kinds):
        bank.register(f"crop {row}", [kind])
        bank.register(f"box {row}", [(kind, THING)])
        bank.register(f"single {row}", kind)
        bank.register(f"pair {row}", (kind, np.array(THING)))
    for row in range(len(kinds)):
        assert bank.shots(f"crop {row}") == bank.shots(f"single {row}") == bank.shots("crop 0")
        assert bank.shots(f"box {row}") == bank.shots(f"pair {row}") == bank.shots("box 0")


def test_a_tenet_or_its_runtime() -> None:
    runtime = FakeRuntime()
    assert ClassBank(Tenet(runtime)).runtime is ClassBank(runtime).runtime is runtime
    with pytest.raises(InputError, match=r"expected a model of Tenet\.load"):
        ClassBank("tenet_lite0")


def test_what_a_shot_tells() -> None:
    runtime = RecordingRuntime()
    bank = ClassBank(runtime)
    pixels = picture(width=320, height=200)
    bank.register("red", [pixels, (pixels, THING)])
    seen = [SeenSize((320, 200)), SeenSize((60, 60), (320, 200))]
    assert bank.seen("red") == seen
    bare, boxed = runtime.calls[0]
    assert bare.scene is None
    assert bare.crop.shape == boxed.crop.shape == (32, 32, 3)
    assert bare.box.tolist() == [0, 6, 32, 26]  # the whole picture, letterboxed
    width, height = working_size((320, 200), seen)
    assert boxed.scene is not None
    assert boxed.scene.shape == (height, width, 3)
    scale = np.array([width / 320, height / 200] * 2)
    np.testing.assert_allclose(boxed.scene_box, np.array(THING) * scale, rtol=1e-5)
    middle = boxed.scene[round(60 * scale[1]), round(70 * scale[0])]
    assert np.abs(middle.astype(int) - (200, 20, 20)).max() < 12


def test_registering_encodes_once_and_asking_never() -> None:
    runtime = FakeRuntime()
    bank = colour_bank(runtime)
    assert runtime.encoded_shots == 1 + 2 + 3
    assert runtime.encoded_images == 0
    for name in bank:
        bank.features(name), bank.thumbnails(name), bank.seen(name), bank.registration(name)
    assert runtime.encoded_shots == 6


def test_adding_is_registering_together_and_leaves_others_alone() -> None:
    shots = [(picture("red", seed=seed, width=160 + 400 * seed), THING) for seed in range(3)]
    runtime = RecordingRuntime()
    steps, once = ClassBank(runtime), ClassBank(RecordingRuntime())
    other = [(picture("blue"), THING)]
    once.register("red", shots)
    once.register("blue", other)
    steps.register("red", shots[:1])
    steps.register("blue", other)
    blue, red = steps.features("blue"), steps.features("red")
    answer = steps.register("red", shots[1:])
    assert (answer.added, answer.shots) == (2, 3)
    assert same_banks(steps, once)
    assert steps.features("blue") is blue
    assert (len(red), len(steps.features("red"))) == (1, 3)
    assert [len(call) for call in runtime.calls] == [1, 1, 3]


def test_a_new_shot_changes_the_working_size_of_the_old_ones() -> None:
    runtime = RecordingRuntime()
    bank = ClassBank(runtime)
    bank.register("red", [(picture(), THING)])
    bank.register("red", [(picture(width=1200, height=900), THING)])
    before, after = (call[0].scene for call in runtime.calls)
    assert before is not None
    assert after is not None
    assert after.shape[1] > before.shape[1]


def test_removing_a_shot_undoes_adding_it() -> None:
    shots = [(picture(seed=seed), THING) for seed in range(3)]
    bank, without = ClassBank(RecordingRuntime()), ClassBank(RecordingRuntime())
    bank.register("red", shots)
    bank.remove("red", 1)
    without.register("red", [shots[0], shots[2]])
    assert same_banks(bank, without)
    for wrong in (2, -1, 7, "1", 0.5):
        with pytest.raises(InputError, match="expected a shot from 0 to 1"):
            bank.remove("red", wrong)  # type: ignore[arg-type]
    bank.remove("red", 0)
    with pytest.raises(InputError, match="remove the class"):
        bank.remove("red", 0)
    bank.remove("red")
    assert bank.names == ()
    with pytest.raises(InputError, match="the bank is empty"):
        bank.features("red")


def test_replace_forgets_the_old_shots() -> None:
    bank, fresh = ClassBank(FakeRuntime()), ClassBank(FakeRuntime())
    bank.register("red", [picture("blue"), picture("green")])
    bank.register("red", [picture("red")], replace=True)
    fresh.register("red", [picture("red")])
    assert same_banks(bank, fresh)


def test_a_shot_given_twice_counts_once() -> None:
    runtime = FakeRuntime()
    bank = ClassBank(runtime)
    answer = bank.register("red", [picture(), (picture(), THING), picture()])
    assert answer.shots == 2  # the crop and the box are two things, the third is the first
    assert any("same as shot 0" in note for note in answer.notes)
    again = bank.register("red", [(picture(), THING)])
    assert (again.shots, again.added) == (2, 0)
    assert any("same as shot 1" in note for note in again.notes)
    assert runtime.encoded_shots == 2


def test_rename_keeps_the_place_and_the_class() -> None:
    bank, other = colour_bank(), colour_bank()
    bank.rename("green", "lime")
    assert bank.names == ("red", "lime", "blue")
    assert same_features(bank.features("lime"), other.features("green"))
    with pytest.raises(InputError, match="name that is free"):
        bank.rename("red", "blue")
    with pytest.raises(InputError, match="slash"):
        bank.rename("red", "a/b")
    bank.rename("red", "red")
    bank.rename("lime", "green")
    assert same_banks(bank, other)


def test_renaming_while_others_register_loses_nothing() -> None:
    bank = colour_bank()
    stop = threading.Event()

    def rename() -> None:
        while not stop.is_set():
            bank.rename("green", "lime")
            bank.rename("lime", "green")

    thread = threading.Thread(target=rename)
    thread.start()
    for number in range(60):
        bank.register(f"class {number}", [(picture("red", seed=number), THING)])
    stop.set()
    thread.join()
    assert set(bank.names) == {"red", "green", "blue", *(f"class {number}" for number in range(60))}


def test_the_number_of_a_shot_may_be_numpys() -> None:
    bank = ClassBank(RecordingRuntime())
    bank.register("red", [(picture("red", seed=seed), THING) for seed in range(3)])
    bank.remove("red", np.int64(1))  # as `Detections.shots` gives it
    assert len(bank.shots("red")) == 2
    with pytest.raises(InputError, match="expected a shot from 0 to 1, got True"):
        bank.remove("red", True)


def test_merging_is_registering_everything_in_one() -> None:
    shots = [(picture("red", seed=seed), THING) for seed in range(3)]
    runtime = RecordingRuntime()
    one, other, whole = ClassBank(runtime), ClassBank(RecordingRuntime()), ClassBank(RecordingRuntime())
    one.register("red", shots[:2])
    other.register("red", shots[1:])  # shot 1 is in both
    other.register("blue", [picture("blue")])
    whole.register("red", shots)
    whole.register("blue", [picture("blue")])
    before = other.shots("red")
    answers = one.merge(other)
    assert same_banks(one, whole)
    assert list(answers) == ["red"]
    assert answers["red"].added == 1
    assert [len(call) for call in runtime.calls] == [2, 3]  # blue came encoded
    assert other.shots("red") == before
    assert one.merge(whole) == {}


def test_banks_of_two_models_are_not_merged() -> None:
    one, other = colour_bank(), colour_bank(RecordingRuntime("fake-2"))
    with pytest.raises(WeightsError, match=r"fake \(fake-1\), got model fake \(fake-2\); rebuild"):
        one.merge(other)
    assert one.names == ("red", "green", "blue")


@pytest.mark.parametrize("keep", [0, 1, 3])
def test_saved_is_unsaved(tmp_path: Path, keep: int) -> None:
    bank = colour_bank()
    for name in bank.names[keep:]:
        bank.remove(name)
    path = tmp_path / "new folder" / "a.bank"
    bank.save(path)
    runtime = FakeRuntime()
    loaded = ClassBank.load(path, runtime)
    assert same_banks(loaded, bank)
    assert runtime.encoded_shots == 0
    loaded.save(tmp_path / "b.bank")
    assert (tmp_path / "b.bank").read_bytes() == path.read_bytes()


def test_a_bank_that_is_saved_to_its_own_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.bank"
    colour_bank().save(path)
    bank, reader = ClassBank.load(path, RecordingRuntime()), ClassBank.open(path)
    bank.remove("red")
    bank.register("blue", [picture("blue", seed=9)])
    bank.save(path)
    assert bank.names == ClassBank.open(path).names == ("green", "blue")
    assert len(bank.features("blue")) == 4
    bank.register("red", [picture("red")])
    bank.save(path)
    assert same_banks(bank, ClassBank.load(path, RecordingRuntime()))
    assert len(reader.features("blue")) == 3  # who opened the old file still reads the old one


def test_another_models_bank_is_refused_or_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "a.bank"
    colour_bank().save(path)
    stranger = RecordingRuntime("fake-2")
    stranger.support_size = 48
    with pytest.raises(
        WeightsError, match=r"a\.bank: expected a bank of model fake \(fake-2\), got one of .*1"
    ):
        ClassBank.load(path, stranger)
    with pytest.raises(WeightsError, match="an earlier version made it: encode its stored shots anew"):
        ClassBank.load(path, stranger)
    stranger.name = "other"
    with pytest.raises(WeightsError, match="load it with the model that made it, or encode"):
        ClassBank.load(path, stranger)
    rebuilt = ClassBank.load(path, stranger, rebuild=True)
    assert [len(call) for call in stranger.calls] == [1, 2, 3]
    assert all(shot.crop.shape == (48, 48, 3) for call in stranger.calls for shot in call)
    assert ClassBank.open(path).fingerprint == "fake-1"
    rebuilt.save(path)
    again = ClassBank.load(path, stranger)
    assert same_banks(again, rebuilt)
    assert again.shots("blue") == colour_bank().shots("blue")
    same = RecordingRuntime("fake-2")
    ClassBank.load(path, same, rebuild=True)
    assert same.calls == []


def test_rebuilt_is_registered_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.bank"
    colour_bank().save(path)
    rebuilt = ClassBank.load(path, RecordingRuntime("fake-2"), rebuild=True)
    assert same_banks(rebuilt, colour_bank(RecordingRuntime("fake-2")))


def test_without_a_model_one_can_read_and_put_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.bank"
    colour_bank().save(path)
    bank = ClassBank.open(path)
    assert bank.shot_count == 6
    assert len(bank.thumbnails("blue")) == 3
    bank.remove("red")
    bank.rename("blue", "navy")
    bank.save(path)
    assert ClassBank.load(path, FakeRuntime()).names == ("green", "navy")
    call: Callable[[], object]
    for call in (lambda: bank.register("red", [picture()]), lambda: bank.remove("navy", 0)):
        with pytest.raises(InputError, match=r"opened for reading; use ClassBank\.load"):
            call()


def test_a_huge_picture_is_not_stored_at_full_size() -> None:
    pixels = np.zeros((5000, 8000, 3), np.uint8)
    pixels[1000:3000, 2000:4000] = 200
    bank = ClassBank(FakeRuntime())
    bank.register("white", [(pixels, (2000, 1000, 4000, 3000)), pixels])
    boxed, bare = bank.shots("white")
    scene = Image.open(BytesIO(boxed.scene))
    assert scene.size == (LARGEST, LARGEST * 5 // 8)
    assert boxed.scene_box == pytest.approx((240, 120, 480, 360))
    assert len(boxed.scene) + len(bare.crop) < 100_000
    assert bare.scene == b""


def test_features_of_many_classes_do_not_pile_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tenet.bank.KEPT", 2)
    colour_bank().save(tmp_path / "a.bank")
    bank = ClassBank.load(tmp_path / "a.bank", FakeRuntime())
    first = bank.features("red")
    assert bank.features("red") is first
    bank.features("green"), bank.features("blue")
    assert bank.features("red") is not first
    assert same_features(bank.features("red"), first)
