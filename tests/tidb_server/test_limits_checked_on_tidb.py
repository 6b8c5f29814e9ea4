"""Tables and values that a TiDB has no room for are told before anything is copied, with the column and the number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.checked_tasks import found, report_of
from support.task_runs import TaskFiles
from unshard.checks import limits
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server
SIZES, VALUES, LARGE = "table size checker for TiDB", "value size checker", "value size checker of large tables"
ROW_BYTES = 200_000


@pytest.fixture(scope="module")
def small() -> Iterator[TidbServer]:
    with TidbServer({"performance.txn-entry-size-limit": str(ROW_BYTES)}) as server:
        yield server


@pytest.fixture
def files(source_server: MariadbServer, small: TidbServer, schema: str, tmp_path: Path) -> TaskFiles:
    source_server.run(f"CREATE DATABASE {schema} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    return TaskFiles(tmp_path, schema, {"s1": source_server}, small, (schema,))


def test_more_columns_than_a_table_of_the_cluster_has(
    files: TaskFiles, source_server: MariadbServer, tidb: TidbServer, schema: str
) -> None:
    columns = ", ".join(f"c{number} TINYINT" for number in range(1100))
    source_server.run(f"CREATE TABLE {schema}.wide ({columns}) ENGINE=MyISAM")
    (fault,) = found(files, SIZES)
    assert (fault.severity, fault.self) == ("fail", f"{schema}.wide")
    assert "has 1,100 columns, and this TiDB takes 1,017" in fault.short_error
    assert "`table-column-count-limit`" in fault.instruction
    with TidbServer({"table-column-count-limit": "2000"}) as wide:
        assert found(replace(files, target=wide), SIZES) == []
    tidb.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.wide (c0 TINYINT)")
    assert found(replace(files, target=tidb), SIZES) == [], "a table that is there is not made"


def test_a_row_that_is_longer_than_the_cluster_takes(
    files: TaskFiles, source_server: MariadbServer, small: TidbServer, tidb: TidbServer, schema: str
) -> None:
    source_server.run(
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v LONGTEXT, w MEDIUMBLOB, x VARCHAR(9))",
        f"INSERT INTO {schema}.t VALUES (1, REPEAT('a', {ROW_BYTES - 10}), NULL, ''),"
        f" (2, REPEAT('a', {ROW_BYTES - 10}), REPEAT('b', 20), ''), (3, NULL, REPEAT('b', {ROW_BYTES + 1}), NULL)",
    )
    (fault,) = found(files, VALUES)
    assert fault.severity == "fail"
    assert fault.short_error == (
        f"table {schema}.t: 2 rows have more bytes than a row of this TiDB takes (v, w): the task would stop there"
    )
    shown = source_server.query(fault.instruction.split(";")[0])
    assert [row[0] for row in shown] == [2, 3]
    assert not report_of(files).passed
    assert found(replace(files, target=tidb), VALUES) == [], "the default is 6 MiB"


def test_a_time_that_only_mariadb_has(files: TaskFiles, source_server: MariadbServer, schema: str) -> None:
    source_server.run(
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, a TIME(6), b TIME)",
        f"INSERT INTO {schema}.t VALUES (1, '838:59:59', '838:59:59'), (2, '838:59:59.000001', NULL),"
        " (3, '-838:59:59.999999', NULL), (4, NULL, NULL)",
    )
    (fault,) = found(files, VALUES)
    assert "2 rows have a TIME beyond 838:59:59 in column a" in fault.short_error
    assert [row[0] for row in source_server.query(fault.instruction.split(";")[0])] == [2, 3]
    source_server.run(f"UPDATE {schema}.t SET a = '838:59:59' WHERE id > 1")
    assert found(files, VALUES) == []


def test_a_large_table_is_read_on_request(
    files: TaskFiles, source_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source_server.run(
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, a TIME(3))",
        f"INSERT INTO {schema}.t SELECT seq, '838:59:59.5' FROM {schema}.seq_1_to_50",
        f"ANALYZE TABLE {schema}.t",
    )
    monkeypatch.setattr(limits, "MANY_ROWS", 40)
    assert found(files, VALUES) == []
    (fault,) = found(files, LARGE, ["large_value_limits"])
    assert "50 rows have a TIME beyond 838:59:59 in column a" in fault.short_error
