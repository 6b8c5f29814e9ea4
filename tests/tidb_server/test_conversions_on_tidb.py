"""Conversions of types that are taken for equal on TiDB, with odd values of each type: against a real source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, nullcontext

import MySQLdb
import pytest

from support.alike_conversions import KINDS, values_of
from support.followed_on_tidb import OnTidb
from unshard.ddl.context import ROUND
from unshard.ddl.evaluate import definition_of
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.schema.definition import ColumnDefinition, Dialect
from unshard.schema.tidb_conversions import converts_alike
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

UNICODE = "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
ZONE = "+05:30"
"""The zone of the statements; the values are written in UTC."""


@pytest.fixture(scope="module")
def followed(source_server: MariadbServer, tidb: TidbServer) -> Iterator[OnTidb]:
    with closing(OnTidb(source_server, tidb, "conversions", UNICODE)) as made:
        for connection in (made.source, made.target):
            rows(connection, "SET NAMES utf8mb4")
        rows(made.target, f"USE {made.schema}")
        yield made


@pytest.fixture(scope="module")
def columns(followed: OnTidb) -> list[ColumnDefinition]:
    """A column of each type, as the source has it."""
    listed = ", ".join(f"c{number} {kind}" for number, kind in enumerate(KINDS))
    rows(followed.source, f"CREATE TABLE kinds ({listed})")
    found = read_table(followed.source, TableName(followed.schema, "kinds"))
    assert found is not None
    followed.run("DROP TABLE kinds")
    return list(definition_of(found, followed.traits.dialect).columns)


def test_some_are_equal(columns: list[ColumnDefinition]) -> None:
    pairs = sum(converts_alike(old, new) for old in columns for new in columns)
    assert pairs > 3 * len(columns)


@pytest.mark.parametrize("mode", ["", "STRICT_ALL_TABLES"])
@pytest.mark.parametrize("kind", KINDS)
def test_old_rows_have_the_values_of_the_source(
    kind: str, mode: str, followed: OnTidb, columns: list[ColumnDefinition]
) -> None:
    """Also where the source's session is strict: what it takes, TiDB takes."""
    old = columns[KINDS.index(kind)]
    alike = [number for number, new in enumerate(columns) if converts_alike(old, new)]
    assert alike
    _in_utc(followed)
    listed = ", ".join(f"c{number} {kind}" for number in alike)
    followed.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t (id INT PRIMARY KEY, {listed})")
    for number, value in enumerate(values_of(kind)):
        rows(followed.source, f"INSERT IGNORE INTO t VALUES ({number}, {', '.join([value] * len(alike))})")
    copied = rows(followed.source, f"SELECT id, {_shown(old, f'c{alike[0]}')} FROM t")
    for number, value in copied:
        value = bytes.fromhex(value).decode() if old.charset and isinstance(value, str) else value
        places = ", ".join(["%s"] * len(alike))
        rows(followed.target, f"INSERT INTO t VALUES ({number}, {places})", [value] * len(alike))
    rows(followed.target, "COMMIT")
    rounds = f",{ROUND}" if followed.traits.dialect is Dialect.MARIADB else ""
    rows(followed.source, f"SET time_zone = '{ZONE}', sql_mode = '{mode},ALLOW_INVALID_DATES{rounds}'")
    taken = [number for number in alike if mode == "" or _is_taken(followed, f"MODIFY c{number} {KINDS[number]}")]
    followed.run("ALTER TABLE t " + ", ".join(f"MODIFY c{number} {KINDS[number]}" for number in taken))
    assert followed.unlike == ()
    _in_utc(followed)
    found = []
    for number in taken:
        sql = f"SELECT id, {_shown(columns[number], f'c{number}')} FROM t ORDER BY id"
        pairs = zip(rows(followed.source, sql), rows(followed.target, sql), strict=True)
        found += [(KINDS[number], *pair) for pair in pairs if pair[0] != pair[1]]
    assert found == []


def test_a_statement_is_as_strict_as_it_was_on_the_source(followed: OnTidb) -> None:
    """A row that the source has not tells: TiDB cuts it, or refuses the statement."""
    _in_utc(followed)
    for mode, strict in (("", False), ("STRICT_TRANS_TABLES", True), ("STRICT_ALL_TABLES", True)):
        followed.run("DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9), t TIME)")
        rows(followed.target, "INSERT INTO t VALUES (1, 'too long', NULL)")
        rows(followed.target, "COMMIT")
        rows(followed.source, f"SET sql_mode = '{mode}'")
        followed.run("ALTER TABLE t MODIFY v VARCHAR(8), MODIFY t DATETIME")
        with pytest.raises(DdlError, match="DDL-008") if strict else nullcontext():
            followed.run("ALTER TABLE t MODIFY v VARCHAR(3)")
        assert rows(followed.target, "SELECT v FROM t") == [("too long" if strict else "too",)]
    followed.unlike = ()


def _in_utc(followed: OnTidb) -> None:
    for connection in (followed.source, followed.target):
        rows(connection, "SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'")


def _is_taken(followed: OnTidb, change: str) -> bool:
    """Whether the source takes the change of the table's rows, which it makes in a copy that no log has."""
    rows(followed.source, "DROP TEMPORARY TABLE IF EXISTS tried")
    rows(followed.source, "CREATE TEMPORARY TABLE tried AS SELECT * FROM t")
    try:
        rows(followed.source, f"ALTER TABLE tried {change}")
    except MySQLdb.Error:
        return False
    return True


def _shown(column: ColumnDefinition, name: str) -> str:
    """Return the value as drivers tell it exactly: as text where they read a zero date as NULL."""
    kind = column.type.name
    if kind in ("float", "double"):
        return f"{name} * 1e0"
    if kind in ("bit", "enum", "set"):
        return f"{name} + 0"
    if kind in ("date", "datetime", "timestamp", "time"):
        return f"CAST({name} AS CHAR)"
    return f"HEX(CONVERT({name} USING utf8mb4))" if column.type.is_text else name
