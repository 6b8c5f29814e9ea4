"""The tables of the master's store and their versions: what is kept of a cluster besides what the targets hold."""

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
    """Of version 1 a relay that was resumed was kept from then on."""
    known = {column["name"] for column in inspect(connection).get_columns("unshard_sources")}
    if "relay_kept" not in known:
        connection.execute(text("ALTER TABLE unshard_sources ADD COLUMN relay_kept BOOLEAN NOT NULL DEFAULT 1"))


UPGRADES: Mapping[int, Callable[[Connection], None]] = {1: _add_relay_kept}
"""What brings the tables from version k to k + 1, by k. Each may be run twice, and a master of version k that leads
meanwhile goes on."""


def _name(length: int = 255) -> String:
    """A name compared byte by byte, as SQLite does anyway."""
    kind = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_bin")
    return String(length).with_variant(kind, "mysql", "mariadb")


def _text() -> Text:
    kind = mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin")
    return Text().with_variant(kind, "mysql", "mariadb")


def _seconds() -> Float[float]:
    """Seconds of Unix time, with fractions."""
    return Float(53)


VALUES = Table(
    "unshard_values",
    METADATA,
    Column("name", _name(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)
"""`version` of the tables; `epoch`: the last number given to a bound; `cluster`: drawn once, the name of this
store; `revision`: the highest of a dropped subtask."""

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
`relay_kept`: what a paused relay is once it is resumed."""

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
"""`start`: where it begins in place of `meta`, as JSON, or empty. `brief`: the worker's last word of it, as JSON."""

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
"""Texts by name: `topology`, where users have their own tools; `attempt of TASK`, as in `orders.attempt_of`."""
