"""A statement that its server does not answer in time is ended there, and its table is left with an error."""

from __future__ import annotations

import pickle
import time
from functools import partial

import MySQLdb
import pytest

from support.comparisons import compared, only_table
from support.task_runs import TaskFiles
from support.waiting import wait_until
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.compare.executor import rows as reading
from unshard.compare.executor.chunk import ChunkOrder, compare_chunk
from unshard.compare.executor.rows import asked_again
from unshard.compare.ranges import KeyRange
from unshard.config.files import load_files
from unshard.errors import CompareError, SourceError, UnshardError, disclose
from unshard.testing.throwaway_server import ThrowawayServer

MARK = "1000 + 7"


def running(server: ThrowawayServer) -> int:
    asked = f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP({MARK})%'"
    return int(server.query(f"{asked} AND ID <> CONNECTION_ID()")[0][0])


@pytest.fixture
def asleep(files: TaskFiles, schema: str, monkeypatch: pytest.MonkeyPatch) -> CompareWish:
    """A comparison of a table on both ends whose statements don't end; a server may be silent for one second."""
    for name in ("source.snapshot.READ_SECONDS", "compare.executor.rows.READ_SECONDS", "compare.pace.ROWS_SECONDS"):
        monkeypatch.setattr(f"unshard.{name}", 1)
    for server in (files.sources["s1"], files.target):
        server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)", f"INSERT INTO {schema}.t VALUES (1), (2)")
    return CompareWish(where=f"SLEEP({MARK}) = 0")


@pytest.mark.server
def test_a_range_that_is_silent_for_too_long_is_ended_on_both_servers(files: TaskFiles, asleep: CompareWish) -> None:
    subject = task_subject(load_files(files.task_path, files.source_paths), asleep)
    (table,) = subject.plan().tables
    with pytest.raises(CompareError, match="COMPARE-027") as told:
        disclose(compare_chunk(pickle.dumps(ChunkOrder(table, KeyRange(None, None)))))
    assert str(table.name) in told.value.message
    for server in (files.sources["s1"], files.target):
        wait_until(partial(is_idle, server), "the statement is ended")


def is_idle(server: ThrowawayServer) -> bool:
    return running(server) == 0


@pytest.mark.server
def test_a_table_whose_bounds_are_silent_for_too_long_is_left(files: TaskFiles, asleep: CompareWish) -> None:
    table = only_table(compared(files, None, asleep))
    assert [error.code for error in table.errors] == ["COMPARE-027"]
    wait_until(partial(is_idle, files.target), "the statement is ended")


@pytest.mark.parametrize(("seconds", "attempts"), [(900.0, 2), (0.0, 40)])
def test_attempts_are_bounded_by_time(seconds: float, attempts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    count = 0

    def lost() -> None:
        nonlocal now, count
        now += seconds
        count += 1
        error = SourceError("SOURCE-003", values={"host": "h", "port": 1, "user": "u"})
        raise error from MySQLdb.OperationalError(2013, "Lost connection to server during query")

    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(reading, "rest", lambda pause: None)
    with pytest.raises(UnshardError, match="SOURCE-003"):
        asked_again(lost)
    assert count == attempts
