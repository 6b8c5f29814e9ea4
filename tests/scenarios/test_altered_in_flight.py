"""Somebody alters the target's table by hand while our DDL on it is on its way; the ways out that a human has then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import copied_task, ctl, go_on, operator_states, stopped_run
from support.shard_runs import Shards, ends_at
from support.task_runs import TaskFiles, TaskRun
from unshard import crash_point
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

BEFORE_IT_IS_LOOKED_AT, BEFORE_IT_IS_RUN = "sync-open-after", "ddl-execute-before"

Interfere = Callable[[str, str], None]


@pytest.fixture
def interfere(target_server: MariadbServer, monkeypatch: pytest.MonkeyPatch) -> Interfere:
    """Run SQL on the target when a task comes to that place for the first time, and go on."""

    def at(place: str, sql: str) -> None:
        def once() -> None:
            monkeypatch.delenv(crash_point.AT)
            target_server.run(sql)

        crash_point._reached.clear()
        monkeypatch.setattr(crash_point, "_die", once)
        monkeypatch.setenv(crash_point.AT, place)
        monkeypatch.delenv(crash_point.MARKER, raising=False)

    return at


@pytest.fixture
def files(
    spark: SparkSession, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> TaskFiles:
    made = copied_task(spark, source_server, target_server, schema, tmp_path)
    source_server.run(f"ALTER TABLE {schema}.t ADD COLUMN c INT", f"INSERT INTO {schema}.t VALUES (2, 'two', 22)")
    return made


def rows(files: TaskFiles, columns: str = "*") -> list[tuple[Any, ...]]:
    return files.target.query(f"SELECT {columns} FROM {files.name}.t ORDER BY id")


def stops_with(code: str, files: TaskFiles, spark: SparkSession) -> str:
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError), error
    assert error.code == code, error
    return str(error)


def operate(files: TaskFiles, *words: str) -> None:
    op, *sqls = words
    ctl("binlog", op, str(files.task_path), "-s", "s1", *sqls)


def test_what_is_added_while_it_runs_does_not_stop_it(
    files: TaskFiles, spark: SparkSession, interfere: Interfere
) -> None:
    """The server has said OK, and all that the statement brings is there."""
    interfere(BEFORE_IT_IS_RUN, f"ALTER TABLE {files.name}.t ADD COLUMN mine INT NULL")
    go_on(files, spark)
    assert rows(files, "id, v, c, mine") == [(1, "one", None, None), (2, "two", 22, None)]


def test_what_is_taken_away_while_it_runs_stops_it(files: TaskFiles, spark: SparkSession, interfere: Interfere) -> None:
    interfere(BEFORE_IT_IS_RUN, f"ALTER TABLE {files.name}.t DROP COLUMN v")
    said = stops_with("DDL-006", files, spark)
    for words in ("binlog skip", "binlog replace", "- `v` varchar(20)"):
        assert words in said.replace("-   `", "- `"), said
    files.target.run(f"ALTER TABLE {files.name}.t ADD COLUMN v VARCHAR(20) AFTER id")
    go_on(files, spark)
    assert rows(files) == [(1, None, None), (2, "two", 22)]


@pytest.mark.parametrize(
    ("words", "by_hand", "there", "used"),
    [
        ((), "DROP COLUMN mine", "id, v, c", False),
        (("skip",), "ADD COLUMN c INT", "id, v, mine, c", False),
        (("replace", "ALTER TABLE {s}.t ADD COLUMN c BIGINT AFTER id"), "", "id, c, v, mine", True),
        (("inject", "ALTER TABLE {s}.t DROP COLUMN mine"), "", "id, v, c", False),
        (("inject", "ALTER TABLE {s}.t DROP COLUMN mine"), "", "id, v, c", True),
    ],
    ids=["undone by hand", "skip", "replace behind another one", "inject", "inject behind another one"],
)
def test_every_way_out_works(
    words: tuple[str, ...],
    by_hand: str,
    there: str,
    used: bool,
    files: TaskFiles,
    spark: SparkSession,
    interfere: Interfere,
) -> None:
    if used:
        files.target.run(f"ALTER TABLE {files.name}.t ADD COLUMN c INT")
        stops_with("DDL-003", files, spark)
        operate(files, "replace", f"ALTER TABLE {files.name}.t ADD COLUMN c INT")
        files.target.run(f"ALTER TABLE {files.name}.t DROP COLUMN c")
    interfere(BEFORE_IT_IS_LOOKED_AT, f"ALTER TABLE {files.name}.t ADD COLUMN mine INT NULL")
    stops_with("DDL-006", files, spark)
    stops_with("DDL-006", files, spark)
    if by_hand:
        files.target.run(f"ALTER TABLE {files.name}.t {by_hand}")
    if words:
        operate(files, *(word.format(s=files.name) for word in words))
    go_on(files, spark)
    assert rows(files, "id, v, c") == [(1, "one", None), (2, "two", 22)]
    columns = (
        "SELECT GROUP_CONCAT(COLUMN_NAME ORDER BY ORDINAL_POSITION SEPARATOR ', ') FROM information_schema.COLUMNS"
    )
    assert files.target.query(f"{columns} WHERE TABLE_SCHEMA = '{files.name}'") == [(there,)]


@pytest.fixture
def shards(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> Shards:
    return Shards(schema, {"s1": source_server}, target_server, tmp_path)


@pytest.mark.parametrize(
    ("words", "by_hand", "crash"),
    [
        ((), "DROP COLUMN mine", ""),
        (("skip",), "ADD COLUMN c INT", "sync-close-before"),
        (("replace", "ALTER TABLE {t} ADD COLUMN c BIGINT"), "", "ddl-execute-after"),
        (("inject", "ALTER TABLE {t} DROP COLUMN mine"), "", "ddl-noted"),
    ],
    ids=["undone by hand", "skip", "replace", "inject"],
)
def test_every_way_out_of_a_sharding_ddl(
    words: tuple[str, ...],
    by_hand: str,
    crash: str,
    shards: Shards,
    spark: SparkSession,
    interfere: Interfere,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
    for table in (0, 1):
        shards.alter("s1", table, "ADD COLUMN c INT")
        shards.insert("s1", table, 1, c="7")
    interfere(BEFORE_IT_IS_LOOKED_AT, f"ALTER TABLE {shards.merged} ADD COLUMN mine INT NULL")
    stops_with("DDL-006", files, spark)
    if by_hand:
        shards.target.run(f"ALTER TABLE {shards.merged} {by_hand}")
    if words:
        operate(files, *(word.format(t=shards.at(1)) for word in words))
    if crash:
        assert ends_at(crash, files, spark, monkeypatch)
    arrives(shards, spark)
    if words:
        assert operator_states(files) == ["applied"]


def test_a_sharding_ddl_that_the_target_has_already_is_left_out(shards: Shards, spark: SparkSession) -> None:
    files = shards.files()
    with TaskRun(files, spark) as run:
        run.catch_up()
    shards.target.run(f"ALTER TABLE {shards.merged} ADD COLUMN c INT")
    for table in (0, 1):
        shards.alter("s1", table, "ADD COLUMN c INT")
        shards.insert("s1", table, 1, c="7")
    stops_with("DDL-003", files, spark)
    operate(files, "skip")
    arrives(shards, spark)
    assert operator_states(files) == ["applied"]


def arrives(shards: Shards, spark: SparkSession) -> None:
    """All rows of the shards come to the merged table, and later ones too."""
    with TaskRun(shards.files(), spark) as run:
        shards.wait_in_step(run)
        shards.insert("s1", 0, 2, c="8")
        run.catch_up()
    assert shards.target.query(f"SELECT id, v, c FROM {shards.merged} ORDER BY id") == shards.expected()
