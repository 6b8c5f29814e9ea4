"""Events that are refused stop nobody who has passed them: those before a task's start, those of an applied group."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from threading import Event

import pytest
from made_events import File
from made_logs import NAME, GrowingLog

from unshard.errors import BinlogError
from unshard.model.position import Location, Position
from unshard.sync.source_log.failover import RecordedNames, translate
from unshard.sync.source_log.reader import LoggedDdl, TransactionRows, next_work
from unshard.target.checkpoint import Checkpoint
from unshard.worker.start import _after_set

OLD = Position("old-bin.000009", 4)


def begun() -> File:
    file = File()
    file.event(163, pack("<I", 0))
    return file


def changed_by_statement(file: File, number: int) -> None:
    """BINLOG-005"""
    file.gtid(number, flags=4)
    file.query("INSERT INTO t VALUES (1)")
    file.xid()


def loaded_by_statement(file: File, number: int) -> None:
    """BINLOG-004"""
    file.gtid(number)
    file.event(17, pack("<I", 1) + b"1,2")
    file.event(18, bytes(26) + b"LOAD DATA")
    file.query("COMMIT")


def rolled_back_in_part(file: File, number: int) -> None:
    """BINLOG-007"""
    file.gtid(number)
    file.table_map()
    file.rows()
    file.query("ROLLBACK TO `p`")
    file.query("COMMIT")


def unreadable_xa(file: File, number: int) -> None:
    """BINLOG-033"""
    file.gtid(number, flags=1)
    file.query("XA COMMIT what")


def in_the_rest_of_a_group(file: File, number: int) -> None:
    """BINLOG-005, behind a statement and another one that looks like the end of the group"""
    file.gtid(number, flags=4)
    file.query("CREATE TEMPORARY TABLE a (x INT)")
    file.query("DROP TEMPORARY TABLE b")
    file.query("INSERT INTO a VALUES (1)")
    file.xid()


REFUSED = pytest.mark.parametrize(
    "refused",
    [changed_by_statement, loaded_by_statement, rolled_back_in_part, unreadable_xa, in_the_rest_of_a_group],
    ids=lambda refused: refused.__name__,
)


@REFUSED
def test_a_gtid_inside_a_group_is_found_behind_them(refused: object, tmp_path: Path) -> None:
    """The task began behind the event; then CREATE TABLE … SELECT."""
    assert callable(refused)
    log, file = GrowingLog(tmp_path), begun()
    refused(file, 1)
    start = file.gtid(2)
    file.query("CREATE TABLE u SELECT 1")
    file.table_map(table=b"u")
    file.rows()
    file.xid()
    log.show(file)
    statement = next_work(log, Location(Position(NAME, start), "0-7-1"), log.written, 1 << 20, "s1")
    assert isinstance(statement, LoggedDdl)
    rows = next_work(log, statement.end, log.written, 1 << 20, "s1")
    assert isinstance(rows, TransactionRows)
    assert rows.end == Location(log.written, "0-7-2")


@REFUSED
@pytest.mark.parametrize("more", [True, False])
def test_a_start_by_a_set_passes_those_of_the_set(refused: object, more: bool, tmp_path: Path) -> None:
    assert callable(refused)
    log, file = GrowingLog(tmp_path), begun()
    file.transaction(1)
    refused(file, 2)
    behind = len(file.data)
    if more:
        file.transaction(3)
    log.show(file)
    found = _after_set(Location(Position(NAME, 4), "0-7-2"), log.written, log, "s1")
    if refused is unreadable_xa and not more:  # the group has no event that ends it: the next one tells its end
        assert found is None
    else:
        assert found == Checkpoint(Location(Position(NAME, behind), "0-7-2"))


@REFUSED
def test_a_start_by_a_set_stops_at_those_behind_the_set(refused: object, tmp_path: Path) -> None:
    assert callable(refused)
    log, file = GrowingLog(tmp_path), begun()
    file.transaction(1)
    start = len(file.data)
    refused(file, 2)
    file.transaction(3)
    log.show(file)
    if refused is in_the_rest_of_a_group:  # nothing of the group is refused before its statement is followed
        found = _after_set(Location(Position(NAME, 4), "0-7-1"), log.written, log, "s1")
        assert found == Checkpoint(Location(Position(NAME, start), "0-7-1"))
        return
    with pytest.raises(BinlogError, match=(refused.__doc__ or "").split(",")[0]):
        _after_set(Location(Position(NAME, 4), "0-7-1"), log.written, log, "s1")


@REFUSED
def test_a_fail_over_passes_those_that_are_applied(refused: object, tmp_path: Path) -> None:
    assert callable(refused)
    log, file = GrowingLog(tmp_path), begun()
    refused(file, 1)
    file.transaction(2)
    behind = file.transaction(3)
    log.show(file)
    names = RecordedNames(Checkpoint(Location(OLD, "0-7-2")), {})
    found = translate(names, "old", log, "s1", Event())
    assert found is not None
    assert found.checkpoint.location == Location(Position(NAME, behind), "0-7-2")


def test_an_applied_group_that_is_not_complete_yet_is_waited_for(tmp_path: Path) -> None:
    log, file = GrowingLog(tmp_path), begun()
    file.transaction(1)
    file.gtid(2, flags=4)
    file.query("INSERT INTO t VALUES (1)")
    log.show(file)
    assert _after_set(Location(Position(NAME, 4), "0-7-2"), log.written, log, "s1") is None


def test_one_outside_of_any_group_is_of_no_set(tmp_path: Path) -> None:
    log, file = GrowingLog(tmp_path), begun()
    file.transaction(1)
    at = file.event(26, pack("<HB", 1, 4) + b"lost")
    file.transaction(2)
    log.show(file)
    with pytest.raises(BinlogError, match="BINLOG-004") as caught:
        _after_set(Location(Position(NAME, 4), "0-7-2"), log.written, log, "s1")
    assert caught.value.where.position == f"{NAME}:{at}"


def test_damaged_bytes_of_an_applied_group_are_an_error(tmp_path: Path) -> None:
    log, file = GrowingLog(tmp_path), begun()
    file.transaction(1)
    file.data[-1] ^= 1
    file.transaction(2)
    log.show(file)
    with pytest.raises(BinlogError, match="BINLOG-001"):
        _after_set(Location(Position(NAME, 4), "0-7-1"), log.written, log, "s1")
