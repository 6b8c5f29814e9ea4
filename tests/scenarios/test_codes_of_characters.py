"""Characters that have two codes in their character set keep theirs where both ends have that character set."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared
from support.task_runs import TaskFiles, TaskRun
from unshard.compare.result import CompareVerdict
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

CODES = {
    "eucjpms": ("8FA2B7", "A1C1"),
    "cp932": ("8790", "81E0"),
    "sjis": ("815F", "5C"),
    "ujis": ("A1C0", "5C"),
    "armscii8": ("FF", "27"),
}
"""By character set, two codes of one character; Unicode becomes the second."""
KINDS = ("VARCHAR(20)", "CHAR(9)", "TEXT")


def columns(charset: str, other: str) -> str:
    """A table with values that pass, one that the target converts, and a key."""
    kinds = ", ".join(f"c{n} {kind} CHARACTER SET {charset}" for n, kind in enumerate(KINDS))
    key = f"k VARCHAR(9) CHARACTER SET {charset} COLLATE {charset}_bin UNIQUE"
    return f"(id INT PRIMARY KEY, {kinds}, u VARCHAR(9) CHARACTER SET {other}, {key})"


def row(number: int, charset: str, code: str) -> str:
    text = f"_{charset} x'41{code}42'"
    return f"({number}, {', '.join([text] * (len(KINDS) + 1))}, 'k{number}')"


@pytest.mark.parametrize(
    "mode", ["compact", *(pytest.param(mode, marks=pytest.mark.scenarios) for mode in ("one by one", "sql"))]
)
@pytest.mark.parametrize("charset", CODES)
def test_copied_and_followed(
    charset: str,
    mode: str,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    first, second = CODES[charset]
    table = f"{schema}.t"
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} {columns(charset, charset)}")
    source_server.run(f"INSERT INTO {table} VALUES {row(1, charset, first)}, {row(2, charset, second)}")
    if not isinstance(target_server, TidbServer):
        target_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} {columns(charset, 'utf8mb4')}")
    syncer = {"compact": False, "multiple-rows": False} if mode == "one by one" else {}
    dumper = {"format": "sql"} if mode == "sql" else {}
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,), syncer=syncer)
    files.instance = {"mydumper": dumper}
    files.write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        source_server.run(
            f"INSERT INTO {table} VALUES {row(3, charset, first)}, {row(4, charset, second)}",
            f"UPDATE {table} SET c0 = _{charset} x'{first}', c1 = NULL WHERE id IN (2, 4)",
            f"INSERT INTO {table} VALUES {row(5, charset, first)}",
            f"DELETE FROM {table} WHERE id = 5",
        )
        run.catch_up()
    texts = ", ".join(f"CONVERT({name} USING utf8mb4)" for name in ("c0", "c1", "c2", "u", "k"))
    query = f"SELECT id, {texts} FROM {table} ORDER BY id"
    assert target_server.query(query) == source_server.query(query)
    assert compared(files, spark).verdict is CompareVerdict.EQUAL
    if isinstance(target_server, TidbServer):
        return
    kept = [3, 4] if mode == "sql" else [1, 2, 3, 4]  # an SQL file holds Unicode
    codes = f"SELECT id, HEX(c0), HEX(c1), HEX(c2) FROM {table} WHERE id IN ({', '.join(map(str, kept))}) ORDER BY id"
    found = target_server.query(codes)
    assert found == source_server.query(codes)
    assert first in str(found)
