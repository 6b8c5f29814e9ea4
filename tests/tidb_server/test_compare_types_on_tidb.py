"""`unshard compare` of every type: a copied value is equal on MariaDB and TiDB, and a changed one is not."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared, only_table, run_file
from support.task_runs import TaskFiles, TaskRun
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.compare.executor.chunk import ChunkFinding, ChunkOrder, compare_chunk
from unshard.compare.executor.row_digest import digest_of, digest_sql
from unshard.compare.ranges import KeyRange
from unshard.config.files import load_files
from unshard.errors import disclose
from unshard.model.table import TableName
from unshard.mysql.types import GEOMETRIES
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer
from unshard.testing.type_cases import COMMON, Cases

pytestmark = [pytest.mark.server, pytest.mark.spark]

_MORE: Cases = {
    "float": ("0", "-0.0", "0.1", "1e-38", "3.4028235e38", "16777217", "NULL"),
    "double": ("0", "0.1", "1e300", "-2.5e-300", "123456789012345678", "NULL"),
    "json": ("""'{"b": [1, 2.0, 1e2], "a": null}'""", "'[]'", """'"é\\\\u0041"'""", "'123456789012345678901234567890'"),
}
_HUGE = re.compile(r"repeat\(.*, *\d{5,}\)", re.IGNORECASE)
_CASES = {
    definition: tuple(value for value in values if not _HUGE.search(value)) or ("'short'",)
    for definition, values in {**COMMON, **_MORE}.items()
    if definition.partition(" ")[0] not in GEOMETRIES and "compressed" not in definition
}
_ROWS = max(map(len, _CASES.values()))


@pytest.fixture
def files(source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path) -> TaskFiles:
    """Tables `t` with a column of each type, and `plain` with those that servers sum up themselves."""
    tasks = TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, tidb, (schema,)).write()
    columns = ", ".join(f"c{number} {definition}" for number, definition in enumerate(_CASES))
    rows = [", ".join([str(row), *(values[row % len(values)] for values in _CASES.values())]) for row in range(_ROWS)]
    source_server.run(
        "SET sql_mode = ''",
        f"CREATE DATABASE {schema} CHARACTER SET utf8mb4",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, {columns})",
        *(f"INSERT INTO {schema}.t VALUES ({row})" for row in rows),
        f"CREATE TABLE {schema}.plain (id BIGINT UNSIGNED PRIMARY KEY, a VARCHAR(20) CHARACTER SET latin1, b BLOB,"
        " c CHAR(9), d DATETIME(3), e ENUM('x', 'y'), f BIT(9), n DECIMAL(9, 2), s SET('p', 'q'), t TEXT, u TIME(2))",
        f"INSERT INTO {schema}.plain VALUES (18446744073709551615, 'é€', x'00ff', 'ab ', '2024-02-29 01:02:03.450',"
        " 'y', 5, -1.5, 'q,p', 'tëxt', '-01:02:03.04'), (1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
        "NULL), (2, '', '', '', '0000-00-00', 0, 0, 0, '', '', 0)",
    )
    return tasks


def test_every_type_is_equal_once_copied_and_each_changed_value_is_told(
    files: TaskFiles, tidb: TidbServer, schema: str, spark: SparkSession
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    wish = CompareWish(tables=(f"{schema}.t",))
    equal = compared(files, spark, wish)
    told = [
        (c, list(_CASES)[int(c[1:])], one.source[0][1][c], one.target and one.target[c])
        for one in equal.tables[0].differences
        for c in one.columns
    ]
    assert told == []
    assert (equal.exit_code, equal.tables[0].source_rows) == (0, _ROWS)
    changed = {f"c{number}": values[0] for number, values in enumerate(_CASES.values()) if values[0] != "NULL"}
    tidb.run(
        "SET sql_mode = ''", f"UPDATE {schema}.t SET " + ", ".join(f"{c} = NULL" for c in changed) + " WHERE id = 0"
    )
    found = only_table(compared(files, spark, wish))
    assert [(one.kind, one.key) for one in found.differences] == [("changed", "id=0")]
    assert set(found.differences[0].columns) == set(changed)


def test_servers_sum_up_plain_types_alike(files: TaskFiles, tidb: TidbServer, schema: str, spark: SparkSession) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish(tables=(f"{schema}.plain",)))
    (table,) = subject.plan().tables
    assert table.server_side
    (shard,) = table.shards
    names = [column.name for column in table.columns]
    digests = [
        digest_of(server.query(digest_sql(read, names, ""))[0])
        for server, read in ((files.sources["s1"], shard.read), (tidb, table.read))
    ]
    assert digests[0] is not None
    assert digests[0].rows == 3
    assert digests[0] == digests[1]
    tidb.run(f"UPDATE {schema}.plain SET t = NULL, a = 'N' WHERE id = 1")
    finding = ChunkFinding.from_dict(disclose(compare_chunk(pickle.dumps(ChunkOrder(table, KeyRange())))))
    assert (finding.source_rows, finding.suspects) == (3, (("1",),))
    assert TableName(schema, "plain") == table.name


def test_statements_mend_every_type(
    files: TaskFiles, tidb: TidbServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    changed = ", ".join(f"c{number} = NULL" for number in range(len(_CASES)))
    tidb.run(f"UPDATE {schema}.t SET {changed} WHERE id < 4", f"DELETE FROM {schema}.t WHERE id >= 4")
    tidb.run(f"DELETE FROM {schema}.plain")
    path = tmp_path / "mend.sql"
    found = compared(files, spark, CompareWish(sql=path))
    assert found.exit_code == 1
    run_file(tidb, path)
    again = compared(files, spark)
    left = [
        (c, list(_CASES)[int(c[1:])], one.source[0][1][c], one.target and one.target[c])
        for table in again.tables
        for one in table.differences
        for c in one.columns
    ]
    assert (again.exit_code, left) == (0, [])
