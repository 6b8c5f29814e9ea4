"""The tables of the master's store and their versions: the records of a cluster, apart from those in the targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    inspect,
    text,
)
from sqlalchemy.dialects import mysql

METADATA = MetaData()
VERSION = 2
"""Version of the tables below. A later one adds its step to `UPGRADES`."""


def _add_relay_kept(connection: Connection) -> None:
    """Add `relay_kept`. In version 1 a relay that was resumed was kept from then on."""
    known = {column["name"] for column in inspect(connection).get_columns("unshard_sources")}
    if "relay_kept" not in known:
        connection.execute(text("ALTER TABLE unshard_sources ADD COLUMN relay_kept BOOLEAN NOT NULL DEFAULT 1"))


UPGRADES: Mapping[int, Callable[[Connection], None]] = {1: _add_relay_kept}
"""The steps that bring the tables from version k to k + 1, by k.

Each may run twice, and a master of version k that leads meanwhile can go on.
"""


def _name(length: int = 255) -> String:
    """Return the type of a name that is compared byte by byte, as SQLite compares anyway."""
    kind = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin")
    return String(length).with_variant(kind, "mysql", "mariadb")


def _text() -> Text:
    kind = mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin")
    return Text().with_variant(kind, "mysql", "mariadb")


def _seconds() -> Float[float]:
    """Return the type for seconds of Unix time, with fractions."""
    return Float(53)


VALUES = Table(
    "unshard_values",
    METADATA,
    Column("name", _name(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)
"""Numbers by name.

`version` of the tables; `epoch`: the last one given to a bound; `cluster`: drawn once, identifies this store;
`revision`: the highest of a dropped subtask.
"""

LEADER = Table(
    "unshard_leader",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", _name(), nullable=False),
    Column("addr", _name(), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("until", _seconds(), nullable=False),
)
"""One row: who leads, in which epoch, until when by the database's clock."""

MASTERS = Table(
    "unshard_masters",
    METADATA,
    Column("name", _name(), primary_key=True),
    Column("addr", _name(), nullable=False),
    Column("seen", _seconds(), nullable=False),
    Column("evicted", Boolean, nullable=False),
)

WORKERS = Table(
    "unshard_workers",
    METADATA,
    Column("name", _name(), primary_key=True),
    Column("addr", _name(), nullable=False),
)

SOURCES = Table(
    "unshard_sources",
    METADATA,
    Column("name", _name(64), primary_key=True),
    Column("text", _text(), nullable=False),
    Column("enabled", Boolean, nullable=False),
    Column("relay_stage", _name(16), nullable=False),
    Column("last_worker", _name(), nullable=False),
    Column("relay_kept", Boolean, nullable=False, server_default=text("1")),
)
"""`text`: the source file as the user wrote it. `last_worker`: who served it last, hence has its relay and dumps.

`relay_kept`: whether a paused relay is kept, also without a task, once it is resumed.
"""

BOUNDS = Table(
    "unshard_bounds",
    METADATA,
    Column("source", _name(64), primary_key=True),
    Column("worker", _name(), nullable=False, unique=True),
    Column("epoch", BigInteger, nullable=False),
)

TASKS = Table(
    "unshard_tasks",
    METADATA,
    Column("name", _name(64), primary_key=True),
    Column("text", _text(), nullable=False),
)

SUBTASKS = Table(
    "unshard_subtasks",
    METADATA,
    Column("task", _name(64), primary_key=True),
    Column("source", _name(64), primary_key=True),
    Column("stage", _name(16), nullable=False),
    Column("revision", BigInteger, nullable=False),
    Column("start", _text(), nullable=False),
    Column("brief", _text(), nullable=False),
)
"""`start`: where it begins in place of `meta`, as JSON, or empty. `brief`: the worker's last report, as JSON."""

TEMPLATES = Table(
    "unshard_templates",
    METADATA,
    Column("name", _name(64), primary_key=True),
    Column("text", _text(), nullable=False),
)

TEXTS = Table(
    "unshard_texts",
    METADATA,
    Column("name", _name(64), primary_key=True),
    Column("text", _text(), nullable=False),
)
"""Texts by name: `topology`, for users with tools of their own; `attempt of TASK`, as in `orders.attempt_of`."""
