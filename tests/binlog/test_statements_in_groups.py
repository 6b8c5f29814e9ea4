"""Statements inside groups of the log, as CREATE TEMPORARY TABLE of a session that does not log in ROW format."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_events import File
from made_logs import NAME

from unshard.errors import BinlogError
from unshard.model.position import Location, Position
from unshard.sync.source_log.open_batch import statement_again
from unshard.sync.source_log.reader import LoggedDdl, Move, TransactionRows, Work, next_work
from unshard.target.receipts import OpenBatch

FOLLOWING = "mysql-bin.000002"
HEAD = len(File().data)


class OneFile:
    """A log of one file, behind which there may be `another`, which is not read."""

    def __init__(self, folder: Path, file: File, another: str | None) -> None:
        self.only, self.another = folder / NAME, another
        self.only.write_bytes(file.data)

    def path(self, file: str) -> Path:
        return self.only

    def next_file(self, file: str) -> str | None:
        return self.another


def works(folder: Path, file: File, another: str | None = None, budget: int = 1) -> list[Work]:
    """All work of the file; with `another` also the move to that."""
    log = OneFile(folder, file, another)
    written = Position(another) if another else Position(NAME, len(file.data))
    found: list[Work] = []
    at = Location(Position(NAME, HEAD), "")
    while at.position.file == NAME and (work := next_work(log, at, written, budget, "s1")) is not None:
        found.append(work)
        at = work.end
    return found


def temporary(file: File, name: str) -> int:
    return file.query(f"CREATE TEMPORARY TABLE {name} (x INT)")


def statements(found: list[Work]) -> list[str]:
    return [work.statement.sql.split()[3] for work in found if isinstance(work, LoggedDdl)]


def rows(found: list[Work]) -> list[TransactionRows]:
    return [work for work in found if isinstance(work, TransactionRows)]


@pytest.mark.parametrize("another", [None, FOLLOWING])
def test_temporary_tables_in_one_transaction_hide_nothing_behind_them(tmp_path: Path, another: str | None) -> None:
    file = File()
    file.gtid(1, flags=4)
    temporary(file, "a")
    temporary(file, "b")
    file.xid()
    end = len(file.data)
    file.transaction(2)
    found = works(tmp_path, file, another)
    assert statements(found) == ["a", "b"]
    assert [work.begin.offset for work in rows(found)] == [end]
    assert next(work.end.gtid for work in found if work.end.position.offset == end) == "0-7-1"
    if another:
        assert found[-1] == Move(Location(Position(FOLLOWING), "0-7-2"))
    else:
        assert found[-1].end == Location(Position(NAME, len(file.data)), "0-7-2")


@pytest.mark.parametrize("budget", [1, 1 << 20])
@pytest.mark.parametrize("another", [None, FOLLOWING])
def test_rows_among_temporary_tables_are_taken(tmp_path: Path, another: str | None, budget: int) -> None:
    file = File()
    file.gtid(1, flags=4)
    temporary(file, "a")
    file.query("SAVEPOINT `p`")
    file.table_map()
    first = file.rows()
    file.query("DROP TEMPORARY TABLE a")
    file.xid()
    file.gtid(2, flags=4)
    temporary(file, "b")
    file.query("DROP TEMPORARY TABLE b")
    file.table_map()
    second = file.rows()
    file.xid()
    file.gtid(3, flags=4)
    temporary(file, "c")
    file.query("DROP TEMPORARY TABLE c")
    file.xid()
    file.transaction(4)
    found = works(tmp_path, file, another, budget)
    assert statements(found) == ["a", "b", "c"]
    begun = [(work.begin.offset, work.end.position.offset) for work in rows(found)]
    assert [begin <= place < end for (begin, end), place in zip(begun, (first, second), strict=False)] == [True, True]
    assert [work.end.gtid for work in rows(found)] == ["0-7-1", "0-7-2", "0-7-4"]
    assert ("0-7-3" in [work.end.gtid for work in found]) == (budget == 1)  # else with the transaction behind it


@pytest.mark.parametrize("sql", ["CREATE TEMPORARY TABLE a (x INT)", "CREATE OR REPLACE TEMPORARY TABLE a SELECT 1"])
def test_a_temporary_table_behind_rows_is_refused(tmp_path: Path, sql: str) -> None:
    """The log is as the server wrote it: to fetch it again does not help."""
    file = File()
    file.gtid(1, flags=4)
    file.table_map()
    file.rows()
    at = file.query(sql)
    file.xid()
    with pytest.raises(BinlogError, match="binlog_format=ROW") as caught:
        works(tmp_path, file)
    error = caught.value
    assert (error.code, error.where.position, error.cause) == ("BINLOG-004", f"{NAME}:{at}", sql)


@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT"])
def test_a_group_of_a_temporary_table_that_is_rolled_back(tmp_path: Path, end: str) -> None:
    file = File()
    file.gtid(1, flags=4)
    temporary(file, "a")
    file.query(end)
    file.transaction(2)
    found = works(tmp_path, file)
    assert statements(found) == ["a"]
    assert [work.end.gtid for work in found] == ["", "0-7-1", "0-7-2"]


@pytest.mark.parametrize("another", [None, FOLLOWING])
@pytest.mark.parametrize("count", [1, 2])
def test_temporary_tables_of_a_group_without_an_end_never_happened(
    tmp_path: Path, count: int, another: str | None
) -> None:
    file = File()
    file.gtid(1, flags=4)
    for name in "ab"[:count]:
        temporary(file, name)
    found = works(tmp_path, file, another)
    assert found == ([Move(Location(Position(FOLLOWING), ""))] if another else [])


def test_a_rollback_to_a_savepoint_before_the_temporary_table(tmp_path: Path) -> None:
    """The table stays: the rest of the group is read on."""
    file = File()
    file.gtid(1, flags=4)
    temporary(file, "a")
    file.query("ROLLBACK TO `p`")
    file.table_map()
    file.rows()
    file.xid()
    found = works(tmp_path, file)
    assert statements(found) == ["a"]
    assert [work.end.gtid for work in rows(found)] == ["0-7-1"]


@pytest.mark.parametrize("statement", ["CREATE TABLE u SELECT 1", "CREATE TEMPORARY TABLE u (x INT)"])
def test_a_planned_statement_is_read_again_without_what_follows_it_in_its_group(statement: str, tmp_path: Path) -> None:
    """The relay may have fetched no more than the open batch."""
    file = File()
    file.gtid(1)
    file.query(statement)
    end = len(file.data)
    file.table_map()
    file.rows()
    file.xid()
    (work, *_) = works(tmp_path, file)
    assert isinstance(work, LoggedDdl)
    assert work.end.position.offset == end
    batch = OpenBatch(1, work.begin, work.end.position, {"end_gtid": ""})
    del file.data[end:]
    assert statement_again(OneFile(tmp_path, file, None), batch, work.begin, "", "s1") == work
