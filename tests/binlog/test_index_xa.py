"""XA transactions in the index, on groups as the servers write them."""

from __future__ import annotations

from struct import pack

import pytest
from made_events import File, refusal, take, take_all

from unshard.binlog.transaction_range import BudgetReached, EndOfData
from unshard.binlog.xa import Completed, PreparedStop, read_prepare, read_statement, xid_text
from unshard.model.table import TableName

UUID = bytes(range(16))
Q = "71,,1"


def prepare_body(
    transaction: bytes = b"q", branch: bytes = b"", format_id: int = 1, *, one_phase: bool = False
) -> bytes:
    # one phase 1, format id 4, the lengths of both parts 4 each, both parts
    return pack("<Biii", one_phase, format_id, len(transaction), len(branch)) + transaction + branch


def mysql_group(file: File, number: int, *, one_phase: bool = False, tables: tuple[bytes, ...] = (b"t",)) -> int:
    start = file.mysql_gtid(UUID, number)
    file.query("XA START X'71',X'',1")
    for table in tables:
        file.table_map(table=table)
        file.rows()
    file.query("XA END X'71',X'',1")
    file.event(38, prepare_body(one_phase=one_phase), timestamp=77)
    return start


def mariadb_group(file: File, number: int) -> int:
    start = file.gtid(number, flags=0x4C, rest=bytes([1, 0, 0, 0, 1, 0]) + b"q\x01\xff")
    file.table_map()
    file.rows()
    file.query("XA END X'71',X'',1")
    file.event(38, prepare_body(), timestamp=77)
    return start


def test_a_prepared_group_is_a_stop_of_its_own() -> None:
    file = File()
    file.mysql_gtid(UUID, 1)
    file.query("BEGIN")
    file.table_map(table=b"t")
    file.rows()
    file.xid()
    start = mysql_group(file, 2, tables=(b"t", b"u"))
    end = len(file.data)
    first = take(file)
    assert (first.end, first.row_events, first.stop) == (start, 1, BudgetReached())
    second = take(file, start)
    assert (second.end, second.row_events, second.tables, second.gtids) == (start, 0, frozenset(), ())
    tables = frozenset({TableName("s", "t"), TableName("s", "u")})
    assert second.stop == PreparedStop(Q, start, end, 2, tables, 77, "00010203-0405-0607-0809-0a0b0c0d0e0f:2")


@pytest.mark.parametrize(("verb", "committed"), [("COMMIT", True), ("ROLLBACK", False)])
def test_what_ends_it_is_a_stop_too(verb: str, committed: bool) -> None:
    file = File()
    prepared = mariadb_group(file, 1)
    middle = file.transaction(2)
    start = file.gtid(3, flags=0x8D, rest=bytes([1, 0, 0, 0, 1, 0]) + b"q")
    file.query(f"XA {verb} X'71',X'',1", timestamp=99)
    assert isinstance(take(file, prepared).stop, PreparedStop)
    log_range = take(file, middle)
    assert (log_range.end, log_range.transactions, log_range.gtids) == (start, 1, ("0-7-2",))
    assert log_range.stop == Completed(Q, committed, start, len(file.data), 99, "0-7-3")


def test_one_phase_is_a_commit() -> None:
    file = File()
    mysql_group(file, 5, one_phase=True)
    log_range = take(file)
    assert (log_range.transactions, log_range.row_events, log_range.last_timestamp, log_range.stop) == (
        1,
        1,
        77,
        EndOfData(),
    )
    assert log_range.gtids == ("00010203-0405-0607-0809-0a0b0c0d0e0f:5",)


def test_a_prepare_without_rows() -> None:
    file = File()
    mysql_group(file, 1, tables=())
    stop = take(file).stop
    assert isinstance(stop, PreparedStop)
    assert (stop.row_events, stop.tables) == (0, frozenset())


def test_a_group_that_is_not_whole_is_left() -> None:
    file = File()
    start = mysql_group(file, 1)
    for size in range(start, len(file.data)):
        log_range = take(file, size=size)
        assert (log_range.end, log_range.stop) == (start, EndOfData())


def test_without_gtids() -> None:
    file = File()
    start = file.event(34, b"\0" * 42)
    file.query("XA ROLLBACK X'71',X'',1")
    assert take(file).stop == Completed(Q, False, start, len(file.data), 1_700_000_000, "")


@pytest.mark.parametrize("budget", [10, 1 << 20])
def test_every_stop_is_met_once(budget: int) -> None:
    file = File()
    for number in range(1, 20, 2):
        mysql_group(file, number)
        file.transaction(number)
        file.mysql_gtid(UUID, number + 1)
        file.query("XA COMMIT X'71',X'',1")
    stops = [log_range.stop for log_range in take_all(bytes(file.data))]
    assert sum(isinstance(stop, PreparedStop) for stop in stops) == 10
    assert sum(isinstance(stop, Completed) for stop in stops) == 10


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("XA START X'7831',X'',1", ("START", "7831,,1")),
        ("XA END X'7831',X'62',7", ("END", "7831,62,7")),
        ("XA COMMIT X'79',X'',1 ONE PHASE", ("COMMIT", "79,,1")),
        ("xa rollback X'7A',X'FF',-1", ("ROLLBACK", "7a,ff,4294967295")),
        ("XA ROLLBACK X'',X'',4294967295", ("ROLLBACK", ",,4294967295")),
        ("XA COMMIT 'x'", None),
        ("XA COMMIT X'7',X'',1", None),
        ("XA PREPARE X'79',X'',1", None),
        ("XA COMMIT X'79',X'',1; DROP TABLE t", None),
    ],
)
def test_statements(sql: str, found: tuple[str, str] | None) -> None:
    assert read_statement(sql) == found


def test_a_prepare_and_a_statement_of_one_xid_agree() -> None:
    assert read_prepare(prepare_body(b"\0" * 64, b"\xff" * 64, -1))[0] == xid_text(b"\0" * 64, b"\xff" * 64, 2**32 - 1)
    assert len(xid_text(b"\0" * 64, b"\xff" * 64, -1)) == 128 + 128 + 2 + 10


@pytest.mark.parametrize("body", [b"", bytes(12), pack("<Biii", 0, 1, 65, 0) + bytes(70), pack("<Biii", 0, 1, -1, 1)])
def test_a_prepare_that_can_t_be_read(body: bytes) -> None:
    file = File()
    file.mysql_gtid(UUID, 1)
    file.query("XA START X'71',X'',1")
    file.event(38, body)
    assert refusal(file).code == "BINLOG-002"


def test_a_statement_that_can_t_be_read() -> None:
    file = File()
    file.gtid(1, flags=1)
    at = file.query("XA COMMIT 'q'")
    error = refusal(file)
    assert (error.code, error.where.position) == ("BINLOG-033", f"mysql-bin.000001:{at}")
    assert "XA COMMIT 'q'" in error.message


def test_xa_out_of_order() -> None:
    commit_inside = File()
    commit_inside.gtid(1)
    commit_inside.table_map()
    commit_inside.query("XA COMMIT X'71',X'',1")
    end_outside = File()
    end_outside.mysql_gtid(UUID, 1)
    end_outside.query("XA END X'71',X'',1")
    prepare_outside = File()
    prepare_outside.event(38, prepare_body())
    for file in (commit_inside, end_outside, prepare_outside):
        assert refusal(file).code == "BINLOG-006"
