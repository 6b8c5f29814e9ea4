"""`unshard compare --repair` of every type: a row is written, changed and deleted as it was, also without a key."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.source_servers import utf8mb4_schema
from support.task_runs import TaskFiles, TaskRun
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.compare.run import CompareSettings
from unshard.config.files import load_files
from unshard.mysql.types import GEOMETRIES
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.type_cases import COMMON, Cases

pytestmark = [pytest.mark.server, pytest.mark.spark]

_MORE: Cases = {
    "float": ("0", "-0.0", "0.1", "1e-38", "3.4028235e38", "16777217", "NULL"),
    "double": ("0", "0.1", "1e300", "-2.5e-300", "123456789012345678", "NULL"),
    "json": ("""'{"b": [1, 2.0, 1e2], "a": null}'""", "'[]'", """'"é\\\\u0041"'"""),
}
_HUGE = re.compile(r"repeat\(.*, *\d{5,}\)", re.IGNORECASE)
_CASES = {
    definition: tuple(value for value in values if not _HUGE.search(value)) or ("'short'",)
    for definition, values in {**COMMON, **_MORE}.items()
    if definition.partition(" ")[0] not in GEOMETRIES and "compressed" not in definition
}


_ROWS = max(map(len, _CASES.values()))


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    """A column of each type, in a table with a key and in one without that has each row twice."""
    columns = ", ".join(f"c{number} {definition}" for number, definition in enumerate(_CASES))
    rows = [", ".join([str(row), *(values[row % len(values)] for values in _CASES.values())]) for row in range(_ROWS)]
    source_server.run(
        "SET sql_mode = ''",
        utf8mb4_schema(schema),
        f"USE {schema}",
        f"CREATE TABLE k (id INT PRIMARY KEY, {columns})",
        *(f"INSERT INTO k VALUES ({row})" for row in rows),
        f"CREATE TABLE b (id INT, {columns})",
        "INSERT INTO b SELECT * FROM k",
        "INSERT INTO b SELECT * FROM k",
    )
    files = TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, target_server, (schema,)).write()
    yield files
    source_server.run(f"DROP DATABASE {schema}")
    target_server.run(f"DROP DATABASE {schema}", f"DROP DATABASE {files.meta}")


def test_rows_of_every_type(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    nulls = ", ".join(f"c{number} = NULL" for number in range(len(_CASES)))
    files.target.run(
        "SET sql_mode = ''",
        f"USE {schema}",
        f"UPDATE k SET {nulls} WHERE id < 3",
        "DELETE FROM k WHERE id > 3",
        "INSERT INTO b SELECT * FROM b WHERE id % 2 = 1",
        "DELETE FROM b WHERE id % 2 = 0 LIMIT 5",
    )
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    settings, stop, lines = CompareSettings(patience_seconds=20.0), threading.Event(), list[str]()
    found = subject.compare(settings, spark, lines.append, stop)
    assert found.exit_code == 1
    assert all(one.classes.total() for one in found.tables)
    after = subject.repair(found, settings, spark, lines.append, stop)
    left = [
        (one.key, list(_CASES)[int(c[1:])], one.source[0][1][c], one.target and one.target[c])
        for table in after.tables
        for one in table.differences
        for c in one.columns
        if c != "id" and one.source
    ]
    refused = [note for note in after.notes if "refuses" in note]
    assert refused == []
    assert (left, after.exit_code) == ([], 0)
