"""The search for a place by GTID: transactions without one, a set that a file begins with, and sets with gaps."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from threading import Event

import pytest
from made_events import File
from made_logs import NAME, GrowingLog

from unshard.errors import RelayError
from unshard.model.position import Location, Position
from unshard.sync.source_log.failover import RecordedNames, translate
from unshard.target.checkpoint import Checkpoint
from unshard.worker.start import _after_set

UUID = bytes(range(16))
TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"
OLD = Position("old-bin.000009", 4)


def begun(last: int) -> File:
    """A file whose first event says that transactions 1 to `last` are in earlier files."""
    file = File(version=b"8.0.36")
    sets = pack("<Q", 1) + UUID + pack("<QQQ", 1, 1, last + 1) if last else pack("<Q", 0)
    file.event(35, sets)
    return file


def numbered(file: File, number: int) -> int:
    at = file.mysql_gtid(UUID, number)
    unnumbered(file)
    return at


def unnumbered(file: File) -> int:
    at = file.query("BEGIN")
    file.table_map()
    file.rows()
    file.xid()
    return at


def found(tmp_path: Path, file: File, last: int) -> Checkpoint:
    log = GrowingLog(tmp_path)
    log.show(file)
    names = RecordedNames(Checkpoint(Location(OLD, f"{TEXT}:1-{last}")), {})
    moved = translate(names, "old", log, "s1", Event())
    assert moved is not None
    return moved.checkpoint


@pytest.mark.parametrize("more", [True, False])
def test_transactions_without_a_gtid_behind_the_set_stop_a_fail_over(tmp_path: Path, more: bool) -> None:
    """Which of them are applied is not known. One more with a GTID may follow."""
    file = begun(3)
    numbered(file, 4)
    at = unnumbered(file)
    if more:
        numbered(file, 5)
    with pytest.raises(RelayError, match=r"RELAY-032.*began with server old, now new answers") as caught:
        found(tmp_path, file, 4)
    assert caught.value.where.position == f"{NAME}:{at}"


def test_transactions_without_a_gtid_in_front_of_one_that_is_applied_are_applied(tmp_path: Path) -> None:
    file = begun(3)
    unnumbered(file)
    numbered(file, 4)
    at = numbered(file, 5)
    assert found(tmp_path, file, 4).location == Location(Position(NAME, at), f"{TEXT}:1-4")


def test_transactions_without_a_gtid_behind_the_next_one_do_not_matter(tmp_path: Path) -> None:
    file = begun(3)
    numbered(file, 4)
    at = numbered(file, 5)
    unnumbered(file)
    assert found(tmp_path, file, 4).location == Location(Position(NAME, at), f"{TEXT}:1-4")


def test_a_set_that_the_file_begins_with_is_found_before_anything_follows(tmp_path: Path) -> None:
    """The source is idle, and its files were rotated."""
    log, gtid = GrowingLog(tmp_path), f"{TEXT}:1-4"
    first = Location(Position(NAME, 4), gtid)
    log.show(begun(4))
    found = _after_set(first, log.written, log, "s1")
    assert found is not None
    assert (found.location.position.file, found.location.gtid, found.exit_point) == (NAME, gtid, None)
    log.show(begun(3))
    assert _after_set(first, log.written, log, "s1") is None


def test_a_set_with_transactions_that_the_source_has_later_begins_in_safe_mode(tmp_path: Path) -> None:
    """The set is that of a replica of two domains: 0-7-3 was applied before 1-7-2."""
    log, file = GrowingLog(tmp_path), File()
    file.event(163, pack("<I", 0))
    for domain, number in ((0, 1), (0, 2), (1, 1)):
        file.transaction(number, domain=domain)
    start = file.transaction(2, domain=1)
    file.transaction(3)
    behind = file.transaction(4)
    log.show(file)
    first = Location(Position(NAME, 4), "0-7-3,1-7-1")
    assert _after_set(first, Position(NAME, len(file.data) + 1), log, "s1") is None
    found = _after_set(first, log.written, log, "s1")
    assert found is not None
    assert found.location == Location(Position(NAME, start), "0-7-3,1-7-1")
    assert found.exit_point is not None
    assert found.exit_point.location.position == Position(NAME, behind)


def test_a_set_with_a_gap_begins_in_safe_mode(tmp_path: Path) -> None:
    log, file = GrowingLog(tmp_path), begun(4)
    numbered(file, 5)
    start = numbered(file, 6)
    numbered(file, 7)
    behind = numbered(file, 8)
    log.show(file)
    found = _after_set(Location(Position(NAME, 4), f"{TEXT}:1-5:7"), log.written, log, "s1")
    assert found is not None
    assert found.exit_point is not None
    assert (found.location.position.offset, found.exit_point.location.position.offset) == (start, behind)


def test_transactions_that_the_source_never_had_need_no_safe_mode(tmp_path: Path) -> None:
    log, file = GrowingLog(tmp_path), begun(3)
    numbered(file, 4)
    start = numbered(file, 5)
    log.show(file)
    own = "ff010203-0405-0607-0809-0a0b0c0d0e0f:1-9"
    found = _after_set(Location(Position(NAME, 4), f"{TEXT}:1-4,{own}"), log.written, log, "s1")
    assert found is not None
    assert (found.location.position.offset, found.exit_point) == (start, None)
