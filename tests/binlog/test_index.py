from __future__ import annotations

from struct import pack

from made_events import File, take

from unshard.binlog.transaction_range import BudgetReached, EndOfData, PlainStatement, Rotate, TransactionRange
from unshard.model.table import TableName

UUID = bytes(range(16))


def test_a_run_of_transactions_is_one_extent() -> None:
    file = File()
    file.event(163, pack("<I", 0))
    file.transaction(1, b"a", b"b", timestamp=100)
    file.transaction(2, b"b", timestamp=101)
    log_range = take(file)
    assert log_range == TransactionRange(
        start=4,
        end=len(file.data),
        transactions=2,
        row_events=3,
        tables=frozenset({TableName("s", "a"), TableName("s", "b")}),
        first_timestamp=100,
        last_timestamp=101,
        gtids=("0-7-2",),
        stop=EndOfData(),
    )


def test_without_checksums() -> None:
    file = File(checksum=False)
    file.transaction(1)
    assert take(file).transactions == 1
    assert take(file).end == len(file.data)


def test_a_budget_ends_at_a_transaction_and_a_larger_one_stands_alone() -> None:
    file = File()
    first = file.transaction(1, b"a")
    large = file.transaction(2, b"b", padding=5000)
    last = file.transaction(3, b"c")
    assert (take(file, first, budget=200).end, take(file, first, budget=200).stop) == (large, BudgetReached())
    assert take(file, first, budget=1000).end == large
    assert take(file, first, budget=1000).tables == {TableName("s", "a")}
    alone = take(file, large, budget=200)
    assert (alone.end, alone.transactions, alone.stop) == (last, 1, BudgetReached())
    assert take(file, first, budget=10).transactions == 1
    assert take(file, first, budget=1 << 20).transactions == 3


def test_a_transaction_without_its_end_is_left() -> None:
    file = File()
    file.transaction(1, b"a", timestamp=9)
    open_at = file.gtid(2)
    file.table_map(table=b"b")
    file.rows()
    log_range = take(file)
    assert (log_range.end, log_range.transactions, log_range.tables, log_range.gtids) == (
        open_at, 1, frozenset({TableName("s", "a")}), ("0-7-1",)
    )  # fmt: skip
    assert log_range.stop == EndOfData()
    assert (take(file, open_at).end, take(file, open_at).transactions) == (open_at, 0)


def test_ddl_is_a_statement() -> None:
    file = File()
    file.transaction(1)
    start = file.gtid(2, flags=33)
    at = file.query("create table x (id int)", timestamp=77)
    after = file.transaction(3)
    log_range = take(file)
    stop = log_range.stop
    assert isinstance(stop, PlainStatement)
    assert (log_range.end, stop.start, stop.at, stop.end) == (start, start, at, after)
    assert (stop.schema, stop.sql, stop.gtid, stop.timestamp) == ("s", "create table x (id int)", "0-7-2", 77)
    assert stop.whole
    assert log_range.gtids == ("0-7-1",)
    assert take(file, stop.end).transactions == 1


def test_context_events_belong_to_their_statement() -> None:
    file = File(version=b"5.5.60-MariaDB")
    start = file.event(5, b"\x02" + pack("<Q", 9))
    file.event(13, bytes(16))
    file.event(14, pack("<I", 1) + b"v\x01")
    file.query("create table x (id int)")
    stop = take(file).stop
    assert isinstance(stop, PlainStatement)
    assert (stop.start, stop.gtid) == (start, "")


def test_rows_after_create_table_select_are_an_extent() -> None:
    file = File()
    start = file.gtid(4, flags=32)
    file.query("CREATE TABLE `c` (`id` int)")
    rest = file.event(160, b"create table c select 1")
    file.table_map(table=b"c")
    file.rows()
    file.xid()
    stop = take(file).stop
    assert isinstance(stop, PlainStatement)
    assert (stop.start, stop.end, stop.whole, stop.gtid) == (start, rest, False, "0-7-4")
    log_range = take(file, rest)
    assert (log_range.start, log_range.transactions, log_range.row_events, log_range.gtids) == (rest, 1, 1, ())
    at_the_map = rest + int.from_bytes(file.data[rest + 9 : rest + 13], "little")
    assert take(file, at_the_map).tables == {TableName("s", "c")}


def test_an_empty_create_table_select() -> None:
    file = File()
    file.gtid(4, flags=32)
    file.query("CREATE TABLE `c` (`id` int)")
    rest = file.query("COMMIT")
    assert take(file, rest).transactions == 1


def test_groups_of_other_engines_and_savepoints() -> None:
    file = File()
    file.gtid(1)
    file.table_map()
    file.rows()
    file.query("SAVEPOINT `a`")
    file.query("RELEASE SAVEPOINT `a`")
    file.table_map()
    file.rows(24)
    file.query("COMMIT", timestamp=55)
    log_range = take(file)
    assert (log_range.transactions, log_range.row_events, log_range.last_timestamp) == (1, 2, 55)


def test_mysql_groups_and_intervals() -> None:
    file = File(version=b"8.0.36")
    file.event(35, pack("<Q", 0))
    for number in (1, 2, 5):
        file.mysql_gtid(UUID, number)
        file.query("BEGIN")
        file.event(29, b"\x00insert")
        file.table_map()
        file.rows(30)
        file.xid()
    file.event(34, bytes(25))
    file.query("BEGIN")
    file.table_map()
    file.rows(32)
    file.xid()
    file.mysql_gtid(UUID, 6)
    file.query("drop table t")
    log_range = take(file)
    assert (log_range.transactions, log_range.row_events) == (4, 4)
    assert log_range.gtids == ("00010203-0405-0607-0809-0a0b0c0d0e0f:1-2:5",)
    assert isinstance(log_range.stop, PlainStatement)
    assert log_range.stop.gtid == "00010203-0405-0607-0809-0a0b0c0d0e0f:6"
    assert log_range.stop.whole


def test_gtids_of_several_domains() -> None:
    file = File()
    for number, (domain, server) in enumerate([(0, 7), (1, 7), (0, 7), (0, 8), (1, 7)], 1):
        file.gtid(number, domain=domain, server=server)
        file.table_map()
        file.rows()
        file.xid()
    assert take(file).gtids == ("0-7-3", "0-8-4", "1-7-5")


def test_rotate_and_stop() -> None:
    file = File()
    file.transaction(1)
    at = file.rotate(b"mysql-bin.000009")
    log_range = take(file)
    assert (log_range.end, log_range.stop) == (at, Rotate("mysql-bin.000009", len(file.data)))
    file = File()
    file.transaction(1)
    file.event(3)
    assert take(file).stop == Rotate(None, len(file.data))


def test_a_rolled_back_transaction_has_no_rows() -> None:
    file = File()
    file.transaction(1, b"a")
    void = file.gtid(2, flags=4)
    file.table_map(table=b"b")
    file.rows()
    file.query("ROLLBACK")
    after = file.transaction(3, b"c")
    assert (take(file).end, take(file).row_events) == (void, 1)
    log_range = take(file, void)
    assert (log_range.end, log_range.transactions, log_range.row_events, log_range.tables) == (after, 1, 0, frozenset())
    assert log_range.gtids == ("0-7-2",)
    assert take(file, after).row_events == 1


def test_a_rollback_of_nothing_passes() -> None:
    file = File()
    file.gtid(2)
    file.query("SAVEPOINT `a`")
    file.query("ROLLBACK TO `a`")
    file.query("ROLLBACK")
    assert (take(file).transactions, take(file).row_events) == (1, 0)


def test_noise_passes() -> None:
    file = File()
    file.gtid(1, flags=1)
    file.query("DROP TEMPORARY TABLE IF EXISTS `x`")
    file.query("# Dummy event replacing event type 160 that slave cannot handle.")
    file.gtid(2)
    file.query("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `x`")
    file.table_map()
    file.rows()
    file.xid()
    log_range = take(file)
    assert (log_range.end, log_range.row_events, log_range.gtids) == (len(file.data), 1, ("0-7-2",))


def test_a_two_phase_alter_counts_when_it_commits() -> None:
    file = File()
    file.gtid(1, flags=0x29, rest=b"\x02" + bytes(5))
    file.query("alter table t add c int")
    file.gtid(2, flags=0x29, rest=b"\x08" + pack("<Q", 1))
    file.query("alter table t add c int")
    start = file.gtid(3, flags=0x2B, rest=pack("<Q", 99) + b"\x04" + pack("<Q", 1))
    file.query("alter table t add c int")
    log_range = take(file)
    assert (log_range.transactions, log_range.end, log_range.gtids) == (2, start, ("0-7-2",))
    assert isinstance(log_range.stop, PlainStatement)
    assert log_range.stop.gtid == "0-7-3"
