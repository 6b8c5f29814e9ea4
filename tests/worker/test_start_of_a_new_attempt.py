"""A task that is begun anew while the dump of an earlier attempt is still in its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.task_runs import TaskFiles
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.dump.metadata import STATE, DumpHeader, write_header
from unshard.errors import LoadError, RelayError
from unshard.load.checkpoint import LoadTables
from unshard.model.position import Location, Position
from unshard.mysql.connection import rows, session
from unshard.mysql.flavour import identify
from unshard.target.upstream import save_upstream
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.build import beginning_of
from unshard.worker.start import StartPoint

pytestmark = pytest.mark.server

BEGIN = Location(Position("bin.000003", 400))


@pytest.fixture
def start(source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path) -> StartPoint:
    """The start point of a task with a finished dump of its attempt `first`."""
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    (config,) = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
    found = beginning_of(config.model_copy(update={"attempt": "first"}))
    header = DumpHeader("run", "s1", "lock-free", {}, BEGIN, (), {}, 0, "now", finished=True, attempt="first")
    (found.dump_directory / STATE).mkdir(parents=True)
    write_header(found.dump_directory, header)
    return found


def test_the_relay_begins_at_the_new_dump(start: StartPoint) -> None:
    """The binlog of the old one may be purged."""
    assert start.relay_start() == BEGIN
    assert replace(start, attempt="").relay_start() == BEGIN
    assert replace(start, attempt="second").relay_start() is None


def test_it_may_begin_at_another_server(start: StartPoint, source_server: MariadbServer) -> None:
    again = replace(start, attempt="second")
    again.checkpoint()
    with session(start.target, "target") as connection, connection.cursor() as cursor:
        save_upstream(cursor, start.meta, "s1", "another server")
    with session(source_server.endpoint, "source") as connection:
        server = identify(connection)
        with pytest.raises(RelayError, match="RELAY-008"):
            start.check_upstream(connection, server, by_gtid=False)
        assert again.check_upstream(connection, server, by_gtid=False)


def test_it_makes_no_dump_for_a_load_of_the_old_one(start: StartPoint) -> None:
    """The attempt was drawn, and the records were not dropped."""
    with session(start.target, "target") as connection:
        tables = LoadTables(start.load_tables.schema, start.load_tables.task, "s1")
        tables.create(connection)
        tables.take_over(connection, "run", [("a.parquet", 10, "")])
        rows(connection, f"UPDATE {tables.chunk} SET piece = 1")
    start.check_dump()
    with pytest.raises(LoadError, match="LOAD-008"):
        replace(start, attempt="second").check_dump()
