"""The tables of the store, the same for SQLite and PostgreSQL.

A class's row holds what was computed from its shots; a shot's row holds what was given. `version` grows with
every change of a class: who computed from an older one may not write.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA = 2
"""Of these tables; a store of another one is refused."""

metadata = MetaData()
# SQLite counts a primary key up by itself only if it is an INTEGER.
_Key = BigInteger().with_variant(Integer, "sqlite")

facts = Table(
    "tenet_facts",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", BigInteger, nullable=False),
)
classes = Table(
    "tenet_classes",
    metadata,
    Column("id", _Key, primary_key=True, autoincrement=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("version", BigInteger, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("features", LargeBinary, nullable=False),
    Column("checksum", BigInteger, nullable=False),
    Column("created", Float, nullable=False),
    sqlite_autoincrement=True,
)
shots = Table(
    "tenet_shots",
    metadata,
    Column("id", _Key, primary_key=True, autoincrement=True),
    Column("class_id", _Key, ForeignKey("tenet_classes.id", ondelete="CASCADE"), nullable=False),
    Column("source", LargeBinary(16), nullable=False),
    Column("crop", LargeBinary, nullable=False),
    Column("box", Text, nullable=False),
    Column("scene", LargeBinary, nullable=False),
    Column("scene_box", Text, nullable=True),
    Column("thing_width", Float, nullable=False),
    Column("thing_height", Float, nullable=False),
    Column("picture_width", Integer, nullable=False),
    Column("picture_height", Integer, nullable=False),
    Column("created", Float, nullable=False),
    UniqueConstraint("class_id", "source"),
    sqlite_autoincrement=True,
)
jobs = Table(
    "tenet_jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("state", String(12), nullable=False),
    Column("options", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("owner", String(32), nullable=False),
    Column("lease", Float, nullable=False),
)
job_pictures = Table(
    "tenet_job_pictures",
    metadata,
    Column("id", _Key, primary_key=True, autoincrement=True),
    Column("job_id", String(32), ForeignKey("tenet_jobs.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("state", String(12), nullable=False),
    Column("file", LargeBinary, nullable=True),
    Column("result", Text, nullable=False),
    sqlite_autoincrement=True,
)
Index("tenet_shots_of_class", shots.c.class_id)
Index("tenet_pictures_of_job", job_pictures.c.job_id, job_pictures.c.state)
