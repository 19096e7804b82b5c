"""The store: what a bank of the same shots has, it has; nothing half-written, nobody's work lost."""

import sqlite3
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import sqlalchemy as sql
from bank_parts import RecordingRuntime, same_features
from web_parts import BOX, file, school

from tenet.bank import ClassBank
from tenet.errors import DataError, InputError, TenetError, WeightsError
from tenet.web.database import Database, store_url
from tenet.web.failures import ChangedError, NotFoundError, TooLargeError
from tenet.web.tables import classes


def test_a_store_knows_what_a_bank_knows(where: str) -> None:
    library, teacher = school(where, RecordingRuntime())
    bank = ClassBank(RecordingRuntime())
    for colour in ("red", "green"):
        shots = [(file(colour), BOX), file(colour, 1)]
        teacher.add(colour, shots[:1])
        answer = teacher.add(colour, shots[1:])
        bank.register(colour, shots[:1])
        assert answer == bank.register(colour, shots[1:])
    now = library.snapshot()
    assert now.names == bank.names
    for name in bank:
        assert same_features(now.features(name), bank.features(name))
        assert now.shots(name) == bank.shots(name)
        assert now.seen(name) == bank.seen(name)
        scenes = [size.scene for size in bank.seen(name)]
        assert any(scenes)
        assert [size.scene for size in now.seen(name)] == scenes
        assert now.registration(name) == bank.registration(name)


def test_it_is_there_after_opening_anew(where: str) -> None:
    library, teacher = school(where)
    teacher.add("red", [(file(), BOX)])
    before = library.snapshot()
    library.store.database.close()
    again = school(where)[0].snapshot()
    assert again.names == ("red",)
    assert same_features(again.features("red"), before.features("red"))


def test_a_shot_given_twice_is_kept_once(where: str) -> None:
    library, teacher = school(where)
    assert teacher.add("red", [file(), file()]).added == 1
    answer = teacher.add("red", [file()])
    assert (answer.added, answer.shots) == (0, 1)
    assert "left out" in answer.notes[0]
    assert len(library.snapshot().shot_heads("red")) == 1


def test_replace_forgets_the_old_shots(where: str) -> None:
    library, teacher = school(where)
    teacher.add("red", [file("red", 0), file("red", 1)])
    assert teacher.add("red", [file("red", 1)], replace=True).shots == 1
    assert len(library.snapshot().shot_heads("red")) == 1


def test_remove_a_shot_is_the_same_as_never_having_had_it(where: str) -> None:
    library, teacher = school(where, RecordingRuntime())
    teacher.add("red", [(file("red", seed), BOX) for seed in range(3)])
    middle = library.snapshot().shot_heads("red")[1].id
    teacher.remove_shot("red", middle)
    assert library.snapshot().registration("red").shots == 2
    bank = ClassBank(RecordingRuntime())
    bank.register("red", [(file("red", seed), BOX) for seed in (0, 2)])
    assert same_features(library.snapshot().features("red"), bank.features("red"))
    with pytest.raises(NotFoundError):
        teacher.remove_shot("red", middle)
    with pytest.raises(NotFoundError):
        teacher.remove_shot("blue", 1)
    teacher.remove_shot("red", library.snapshot().shot_heads("red")[0].id)
    with pytest.raises(InputError, match="remove the class"):
        teacher.remove_shot("red", library.snapshot().shot_heads("red")[0].id)


def test_rename_and_remove(where: str) -> None:
    library, teacher = school(where)
    teacher.add("red", [file("red")])
    teacher.add("blue", [file("blue")])
    teacher.rename("red", "crimson")
    assert library.snapshot().names == ("crimson", "blue")
    with pytest.raises(InputError, match="free"):
        teacher.rename("crimson", "blue")
    with pytest.raises(InputError, match="slash"):
        teacher.rename("crimson", "a/b")
    with pytest.raises(NotFoundError):
        teacher.rename("red", "green")
    teacher.remove("crimson")
    assert library.snapshot().names == ("blue",)
    with pytest.raises(NotFoundError):
        teacher.remove("crimson")


@pytest.mark.parametrize(
    "bad", [b"no picture", file()[:200], (file(), (5, 5, 5, 9)), (file(), (900, 1, 999, 9))]
)
def test_one_bad_shot_and_nothing_is_written(tmp_path: Path, bad: object) -> None:
    library, teacher = school(tmp_path / "store.db")
    with pytest.raises(TenetError, match="red, shot 1"):
        teacher.add("red", [file(), bad])
    assert library.snapshot().names == ()


def test_who_computed_from_an_older_version_may_not_write(where: str) -> None:
    library, teacher = school(where)
    teacher.add("red", [file("red", 0)])
    old = library.snapshot()
    old.features("red")
    stored = teacher._encode(old.shots("red"))
    teacher.add("red", [file("red", 1)])
    with pytest.raises(ChangedError):
        library.store.update(old.head("red"), stored, "fake-1")
    with pytest.raises(ChangedError):
        old.shots("red")
    assert len(library.snapshot().shot_heads("red")) == 2


def test_two_servers_teach_the_same_class_and_lose_nothing(where: str) -> None:
    errors: list[BaseException] = []

    def server(first: int) -> None:
        library, teacher = school(where)
        try:
            for seed in range(first, first + 6):
                while True:
                    try:
                        teacher.add("red", [file("red", seed)])
                        break
                    except ChangedError:
                        continue
        except BaseException as error:
            errors.append(error)
        finally:
            library.store.database.close()

    school(where)[0].store.database.close()
    threads = [Thread(target=server, args=(start,)) for start in (0, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    now = school(where)[0].snapshot()
    assert len(now.shot_heads("red")) == 12
    assert len(now.features("red")) == 12


def test_several_servers_start_together_on_an_empty_store(where: str) -> None:
    errors: list[BaseException] = []

    def start() -> None:
        try:
            Database(where).close()
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert school(where)[0].snapshot().names == ()


def test_a_snapshot_is_the_same_object_until_something_changes(tmp_path: Path) -> None:
    library, teacher = school(tmp_path / "store.db")
    teacher.add("red", [file("red")])
    first = library.snapshot()
    assert library.snapshot() is first
    teacher.add("blue", [file("blue")])
    assert library.snapshot() is not first
    assert first.names == ("red",)


def test_another_model_encodes_anew(where: str) -> None:
    library, teacher = school(where)
    teacher.add("red", [(file(), BOX)])
    library.store.database.close()
    other, retrained = school(where, RecordingRuntime("fake-2"))
    assert other.snapshot().names == ()
    assert retrained.rebuild() == []
    assert other.snapshot().names == ("red",)
    assert other.snapshot().features("red").closed_form is not None
    assert retrained.rebuild() == []


def test_damaged_features_are_noticed(where: str) -> None:
    library, teacher = school(where)
    teacher.add("red", [file()])
    with library.store.database.writing() as connection:
        packed = bytearray(connection.execute(sql.select(classes.c.features)).scalar_one())
        packed[-1] ^= 1
        connection.execute(sql.update(classes).values(features=bytes(packed)))
    with pytest.raises(DataError, match="damaged"):
        school(where)[0].snapshot().features("red")


def test_a_bank_goes_in_and_is_the_same(where: str, tmp_path: Path) -> None:
    bank = ClassBank(RecordingRuntime())
    bank.register("red", [(file("red"), BOX), file("red", 1)])
    bank.register("blue", [file("blue")])
    bank.save(tmp_path / "things.bank")
    library, teacher = school(where, RecordingRuntime())
    teacher.add("blue", [file("blue", 1)])
    assert teacher.take_bank(tmp_path / "things.bank") == {"red": 2, "blue": 1}
    now = library.snapshot()
    assert same_features(now.features("red"), bank.features("red"))
    assert len(now.features("blue")) == 2
    assert teacher.take_bank(tmp_path / "things.bank") == {"red": 0, "blue": 0}


def test_a_bank_of_another_model_is_refused_or_rebuilt(tmp_path: Path) -> None:
    bank = ClassBank(RecordingRuntime("other"))
    bank.register("red", [file("red")])
    bank.save(tmp_path / "things.bank")
    library, teacher = school(tmp_path / "store.db", RecordingRuntime())
    with pytest.raises(WeightsError, match="rebuild"):
        teacher.take_bank(tmp_path / "things.bank")
    assert library.snapshot().names == ()
    assert teacher.take_bank(tmp_path / "things.bank", rebuild=True) == {"red": 1}


def test_a_bank_that_lies_about_its_model_is_refused(tmp_path: Path) -> None:
    class Liar(RecordingRuntime):
        def encode_shots(self, shots):  # type: ignore[no-untyped-def]
            features = super().encode_shots(shots)
            wide = np.zeros((len(shots), 7), np.float32)
            return type(features)(wide, wide, features.phi, wide)

    bank = ClassBank(Liar())
    bank.register("red", [file("red")])
    bank.save(tmp_path / "things.bank")
    library, teacher = school(tmp_path / "store.db", RecordingRuntime())
    with pytest.raises(DataError, match="other shapes"):
        teacher.take_bank(tmp_path / "things.bank")
    assert library.snapshot().names == ()


def test_limits(tmp_path: Path) -> None:
    library, teacher = school(tmp_path / "store.db", shots=2, classes=1)
    with pytest.raises(TooLargeError, match="at most 2 shots"):
        teacher.add("red", [file("red", seed) for seed in range(3)])
    teacher.add("red", [file("red")])
    with pytest.raises(TooLargeError, match="takes no more"):
        teacher.add("blue", [file("blue")])
    assert library.snapshot().names == ("red",)


def test_sqlite_waits_for_the_disk(tmp_path: Path) -> None:
    database = Database(tmp_path / "store.db")
    with database.reading() as connection:
        told = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")
        ]
    assert told == ["wal", 2]


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("mysql://a@b/c", "postgresql://"),
        ("sqlite:///a.db", "postgresql://"),
        ("", "expected a file"),
        ("://", "expected"),
    ],
)
def test_a_store_of_no_kind_that_we_know(where: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        store_url(where)


def test_a_store_that_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database " * 100)
    with pytest.raises(DataError, match="expected a store") as caught:
        Database(tmp_path / "notes.txt")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError):
        Database(tmp_path)


def test_a_store_of_another_schema_is_refused(tmp_path: Path) -> None:
    Database(tmp_path / "store.db").close()
    with sqlite3.connect(tmp_path / "store.db") as connection:
        connection.execute("UPDATE tenet_facts SET value = 99 WHERE name = 'schema'")
    connection.close()
    with pytest.raises(DataError, match="schema 2, got 99"):
        Database(tmp_path / "store.db")


def test_a_password_is_never_shown() -> None:
    assert "secret" not in repr(store_url("postgresql://me:secret@localhost/x"))
    with pytest.raises(DataError) as caught:
        Database("postgresql://me:secret@127.0.0.1:1/x?connect_timeout=1")
    assert "secret" not in str(caught.value)
