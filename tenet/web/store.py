"""What the service keeps of classes: every shot, its thumbnail and its scene, and the classes' features."""

import json
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from tenet.banks.class_names import check_name
from tenet.banks.stored_class import StoredClass
from tenet.banks.stored_shots import Box, StoredShot
from tenet.errors import InputError
from tenet.looks.sizes import SeenSize
from tenet.structures import ClassFeatures
from tenet.web.database import Database
from tenet.web.failures import ChangedError, NotFoundError
from tenet.web.packed_features import pack, unpack
from tenet.web.tables import classes, facts, shots


@dataclass(frozen=True)
class ClassHead:
    """A class without its shots and features."""

    id: int
    name: str
    version: int
    fingerprint: str


@dataclass(frozen=True)
class ShotHead:
    """A shot without its pictures. `scene_box` is xyxy in pixels of the kept scene; None: a bare crop."""

    id: int
    seen: SeenSize
    scene_box: Box | None


class ClassStore:
    """Classes and their shots in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def revision(self) -> int:
        """Another number after every change of any class."""
        with self.database.reading() as connection:
            return int(connection.execute(_REVISION).scalar_one())

    def heads(self) -> tuple[int, list[ClassHead]]:
        """The revision, and all classes in the order in which they came."""
        columns = (classes.c.id, classes.c.name, classes.c.version, classes.c.fingerprint)
        with self.database.reading() as connection:
            revision = int(connection.execute(_REVISION).scalar_one())
            rows = connection.execute(sql.select(*columns).order_by(classes.c.id)).all()
        return revision, [ClassHead(*row) for row in rows]

    def count(self) -> int:
        """How many classes there are."""
        with self.database.reading() as connection:
            return int(connection.execute(sql.select(sql.func.count()).select_from(classes)).scalar_one())

    def head(self, name: str) -> ClassHead | None:
        """A class by its name."""
        if not _possible(name):
            return None
        columns = (classes.c.id, classes.c.name, classes.c.version, classes.c.fingerprint)
        with self.database.reading() as connection:
            row = connection.execute(sql.select(*columns).where(classes.c.name == name)).first()
        return None if row is None else ClassHead(*row)

    def shot_heads(self, head: ClassHead) -> list[ShotHead]:
        """The shots of a class as of that version, in the order in which they came."""
        columns = (shots.c.id, shots.c.scene_box, *_SIZES)
        with self.database.reading() as connection:
            _check_version(connection, head)
            rows = connection.execute(_of(head, *columns)).mappings().all()
        return [ShotHead(row["id"], _seen(row), _box(row["scene_box"])) for row in rows]

    def shots(self, head: ClassHead) -> list[tuple[int, StoredShot]]:
        """Everything that is kept of them, each with its id."""
        with self.database.reading() as connection:
            _check_version(connection, head)
            rows = connection.execute(_of(head, shots)).mappings().all()
        return [(row["id"], _stored_shot(row)) for row in rows]

    def features(self, head: ClassHead) -> ClassFeatures:
        """Of that version."""
        columns = (classes.c.version, classes.c.features, classes.c.checksum)
        with self.database.reading() as connection:
            row = connection.execute(sql.select(*columns).where(classes.c.id == head.id)).first()
        if row is None or row.version != head.version:
            raise _changed(head)
        return unpack(row.features, row.checksum, head.name)

    def picture(self, name: str, shot: int, kind: str) -> bytes:
        """The JPEG of a shot: its `crop` or its `scene`."""
        _check_possible(name)
        column = {"crop": shots.c.crop, "scene": shots.c.scene}[kind]
        found = sql.select(column).join(classes).where(classes.c.name == name, shots.c.id == shot)
        with self.database.reading() as connection:
            jpeg = connection.execute(found).scalar()
        if not jpeg:
            raise NotFoundError(f"{name}, shot {shot}: expected a shot with a {kind}, found none")
        return bytes(jpeg)

    # ---- changes: each is one transaction

    def create(self, name: str, given: Sequence[StoredShot], stored: StoredClass, fingerprint: str) -> None:
        """A new class."""
        row = {"name": name, "version": 1, "created": time.time(), **_computed(stored, fingerprint)}
        try:
            with self.database.writing() as connection:
                key = connection.execute(sql.insert(classes).values(row)).inserted_primary_key
                assert key is not None
                _insert_shots(connection, key[0], given)
                _bump(connection)
        except IntegrityError as error:
            raise ChangedError(f"{name}: somebody else made this class just now; ask again") from error

    def update(
        self,
        head: ClassHead,
        stored: StoredClass,
        fingerprint: str,
        add: Sequence[StoredShot] = (),
        drop: Iterable[int] = (),
    ) -> None:
        """A class with shots more or less, and the features that follow; refused if it changed since."""
        with self.database.writing() as connection:
            changed = {"version": head.version + 1, **_computed(stored, fingerprint)}
            same = (classes.c.id == head.id, classes.c.version == head.version)
            if connection.execute(sql.update(classes).where(*same).values(changed)).rowcount != 1:
                raise _changed(head)
            gone = list(drop)
            if gone:
                own = (shots.c.class_id == head.id, shots.c.id.in_(gone))
                connection.execute(sql.delete(shots).where(*own))
            _insert_shots(connection, head.id, add)
            _bump(connection)

    def rename(self, name: str, new: str) -> None:
        """Call a class otherwise."""
        _check_possible(name)
        values = {"name": new, "version": classes.c.version + 1}
        try:
            with self.database.writing() as connection:
                done = connection.execute(sql.update(classes).where(classes.c.name == name).values(values))
                if done.rowcount != 1:
                    raise no_class(name)
                _bump(connection)
        except IntegrityError as error:
            raise InputError(f"{new}: expected a name that is free, but there is such a class") from error

    def remove(self, name: str) -> None:
        """Forget a class with all its shots."""
        _check_possible(name)
        with self.database.writing() as connection:
            if connection.execute(sql.delete(classes).where(classes.c.name == name)).rowcount != 1:
                raise no_class(name)
            _bump(connection)


_REVISION = sql.select(facts.c.value).where(facts.c.name == "revision")
_SIZES = (
    shots.c.thing_width,
    shots.c.thing_height,
    shots.c.picture_width,
    shots.c.picture_height,
    sql.func.length(shots.c.scene).label("scene_bytes"),
)


def no_class(name: str) -> NotFoundError:
    """The error of a class that is not there."""
    return NotFoundError(f"{name[:100]}: expected a class of this store, found none of that name")


def _possible(name: str) -> bool:
    """Whether a class may be called so; PostgreSQL must not be asked for others, it knows no NUL in texts."""
    try:
        check_name(name)
    except InputError:
        return False
    return True


def _check_possible(name: str) -> None:
    if not _possible(name):
        raise no_class(name)


def _changed(head: ClassHead) -> ChangedError:
    return ChangedError(f"{head.name}: the class changed while it was used; ask again")


def _of(head: ClassHead, *columns: Any) -> Any:
    return sql.select(*columns).where(shots.c.class_id == head.id).order_by(shots.c.id)


def _check_version(connection: Connection, head: ClassHead) -> None:
    version = connection.execute(sql.select(classes.c.version).where(classes.c.id == head.id)).scalar()
    if version != head.version:
        raise _changed(head)


def _bump(connection: Connection) -> None:
    connection.execute(sql.update(facts).where(facts.c.name == "revision").values(value=facts.c.value + 1))


def _computed(stored: StoredClass, fingerprint: str) -> dict[str, Any]:
    packed = pack(stored)
    return {"features": packed, "checksum": zlib.crc32(packed), "fingerprint": fingerprint}


def _insert_shots(connection: Connection, class_id: int, given: Sequence[StoredShot]) -> None:
    now = time.time()
    rows = [
        {
            "class_id": class_id,
            "source": one.source,
            "crop": one.crop,
            "box": json.dumps(one.box),
            "scene": one.scene,
            "scene_box": None if one.scene_box is None else json.dumps(one.scene_box),
            "thing_width": one.seen.thing[0],
            "thing_height": one.seen.thing[1],
            "picture_width": one.seen.picture[0],
            "picture_height": one.seen.picture[1],
            "created": now,
        }
        for one in given
    ]
    # One by one: their ids keep the order in which they were given.
    for row in rows:
        connection.execute(sql.insert(shots).values(row))


def _stored_shot(row: Any) -> StoredShot:
    box = _box(row["box"])
    assert box is not None
    return StoredShot(
        bytes(row["crop"]), box, _seen(row), bytes(row["source"]), bytes(row["scene"]), _box(row["scene_box"])
    )


def _seen(row: Any) -> SeenSize:
    scene = row["scene_bytes"] if "scene_bytes" in row else len(row["scene"])
    return SeenSize(
        (row["thing_width"], row["thing_height"]), (row["picture_width"], row["picture_height"]), scene
    )


def _box(text: str | None) -> Box | None:
    if text is None:
        return None
    x1, y1, x2, y2 = json.loads(text)
    return x1, y1, x2, y2
