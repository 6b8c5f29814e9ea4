"""The end of a log within a transaction: it is not read again and again while nothing, or little, is added to it."""

from __future__ import annotations

from pathlib import Path

from made_events import File
from made_logs import NAME, GrowingLog

from unshard.model.position import Location, Position
from unshard.sync.source_log.reader import TransactionRows, Work
from unshard.sync.source_log.tail import LARGE, TailReader

BEGIN = Location(Position(NAME, len(File().data)), "")


def read(tail: TailReader, log: GrowingLog) -> Work | None:
    return tail.next_work(log, BEGIN, 1 << 30, "s1")


def test_an_incomplete_transaction_is_read_once_while_nothing_is_added(tmp_path: Path) -> None:
    log, tail, file = GrowingLog(tmp_path), TailReader(), File()
    file.transaction(1)
    log.show(file, len(file.data) - 1)
    assert read(tail, log) is None
    asked = log.asked
    assert asked
    for _ in range(5):
        assert not tail.wait(log, 0.25)
        assert read(tail, log) is None
    assert log.asked == asked
    assert log.waited[0] == Position(NAME, log.written.offset + 1)


def test_whatever_is_added_to_a_small_transaction_is_read_at_once(tmp_path: Path) -> None:
    log, tail, file = GrowingLog(tmp_path), TailReader(), File()
    file.transaction(1)
    log.show(file, len(file.data) - 2)
    assert read(tail, log) is None
    log.show(file, len(file.data) - 1)
    assert tail.wait(log, 0.25)
    asked = log.asked
    assert read(tail, log) is None
    assert log.asked > asked
    log.show(file)
    assert tail.wait(log, 0.25)
    assert isinstance(read(tail, log), TransactionRows)


def test_another_place_is_read(tmp_path: Path) -> None:
    log, tail, file = GrowingLog(tmp_path), TailReader(), File()
    file.transaction(1)
    last = file.transaction(2)
    log.show(file, len(file.data) - 1)
    assert tail.next_work(log, Location(Position(NAME, last), ""), 1 << 30, "s1") is None
    assert isinstance(read(tail, log), TransactionRows)


def test_a_large_transaction_is_read_when_it_has_grown_by_a_tenth_or_grows_no_more(tmp_path: Path) -> None:
    log, tail, file = GrowingLog(tmp_path), TailReader(), File()
    file.gtid(1)
    file.table_map()
    file.rows(padding=LARGE)
    first = len(file.data)
    for _ in range(8):
        file.rows(padding=LARGE // 40)
    file.xid()
    log.show(file, first)
    assert read(tail, log) is None
    asked = log.asked
    for _ in range(3):
        log.show(file, log.written.offset + LARGE // 80)
        assert not tail.wait(log, 0.25)
        assert read(tail, log) is None
    assert log.asked == asked
    assert read(tail, log) is None  # it grows no more: it may be complete
    assert log.asked == asked + 1
    log.show(file, log.written.offset + LARGE // 9)
    assert tail.wait(log, 0.25)
    assert read(tail, log) is None
    assert log.asked == asked + 2
    log.show(file)
    assert not tail.wait(log, 0.25)
    assert read(tail, log) is None
    assert isinstance(read(tail, log), TransactionRows)
