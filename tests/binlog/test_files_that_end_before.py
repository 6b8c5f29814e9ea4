"""A checkpoint that the log does not reach, or where it has other transactions, is told from one that it has."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest
from made_events import File

from unshard.errors import RelayError
from unshard.model.position import Location, Position
from unshard.sync.source_log.reader import Move, TransactionRows, next_work
from unshard.sync.source_log.seek import logged_at

FIRST, SECOND = "bin.000001", "bin.000002"
UUID = bytes(range(16))
NAME = "00010203-0405-0607-0809-0a0b0c0d0e0f"


class TwoFiles:
    """A log of two files; the second one is the newest."""

    def __init__(self, folder: Path, first: File, second: File) -> None:
        self.folder = folder
        self.path(FIRST).write_bytes(bytes(first.data))
        self.path(SECOND).write_bytes(bytes(second.data))
        self.written = Position(SECOND, len(second.data))

    def path(self, file: str) -> Path:
        return self.folder / file

    def files(self) -> tuple[str, ...]:
        return FIRST, SECOND

    def next_file(self, file: str) -> str | None:
        return SECOND if file == FIRST else None


def mariadb(number: int, before: int = 0) -> File:
    """A file with one transaction of that number in domain 0, and the number that it begins with."""
    file = File()
    file.event(163, pack("<I", 1) + pack("<IIQ", 0, 7, before))
    file.transaction(number)
    return file


def mysql(number: int, before: tuple[int, int]) -> File:
    file = File(version=b"8.0.36")
    file.event(35, pack("<Q", 1) + UUID + pack("<QQQ", 1, before[0], before[1] + 1))
    file.mysql_gtid(UUID, number)
    file.query("BEGIN")
    file.table_map()
    file.rows()
    file.xid()
    return file


def test_a_finished_file_that_ends_before_the_place(tmp_path: Path) -> None:
    first, second = mariadb(5, 4), mariadb(6, 5)
    log, size = TwoFiles(tmp_path, first, second), len(first.data)
    assert next_work(log, Location(Position(FIRST, size)), log.written, 1, "s1") == Move(Location(Position(SECOND)))
    with pytest.raises(RelayError, match="RELAY-009") as raised:
        next_work(log, Location(Position(FIRST, size + 1)), log.written, 1, "s1")
    assert raised.value.where.position == f"{FIRST}:{size + 1}"
    assert str(size) in str(raised.value)


def test_the_newest_file_may_grow_up_to_the_place(tmp_path: Path) -> None:
    log = TwoFiles(tmp_path, mariadb(5, 4), mariadb(6, 5))
    beyond = Position(SECOND, log.written.offset + 1)
    assert next_work(log, Location(beyond), log.written, 1, "s1") is None
    begin = Location(Position(FIRST))
    assert isinstance(next_work(log, begin, log.written, 1, "s1"), TransactionRows)


@pytest.mark.parametrize(
    ("known", "same"),
    [
        ("0-7-5", True),
        ("0-7-6", False),
        ("0-7-4", False),
        ("", True),
        ("0-7-5,3-1-9", True),
        ("3-1-9", True),
    ],
)
def test_the_last_numbers_of_domains(known: str, *, same: bool, tmp_path: Path) -> None:
    first = mariadb(5, 4)
    compared(TwoFiles(tmp_path, first, mariadb(6, 5)), Location(Position(FIRST, len(first.data)), known), same=same)


@pytest.mark.parametrize(
    ("known", "same"),
    [
        (f"{NAME}:1-5", True),
        (f"{NAME}:1-3:5", True),
        (f"{NAME}:1-6", False),
        (f"{NAME}:1-4", False),
        ("3E11FA47-71CA-11E1-9E33-C80AA9429562:1-9", True),
    ],
)
def test_the_last_numbers_of_origins(known: str, *, same: bool, tmp_path: Path) -> None:
    first = mysql(5, (1, 4))
    compared(TwoFiles(tmp_path, first, mysql(6, (1, 5))), Location(Position(FIRST, len(first.data)), known), same=same)


def test_transactions_that_a_server_was_only_told_of(tmp_path: Path) -> None:
    """`SET GLOBAL gtid_purged = '+…'`: the next file's list has them, and no file the transactions."""
    first = mysql(5, (1, 9))
    place = Location(Position(FIRST, len(first.data)), f"{NAME}:1-5")
    compared(TwoFiles(tmp_path, first, mysql(6, (1, 5))), place, same=True)


def compared(log: TwoFiles, place: Location, *, same: bool) -> None:
    if same:
        logged_at(log, place, "s1", compare=True)
    else:
        logged_at(log, place, "s1", compare=False)
        with pytest.raises(RelayError, match="RELAY-009"):
            logged_at(log, place, "s1", compare=True)


@pytest.mark.parametrize(
    ("known", "then"),
    [
        (f"{NAME}:1-4", f"{NAME}:1-5"),
        (f"{NAME}:1-3", f"{NAME}:1-3:5"),
        (f"{NAME}:1-5:9", f"{NAME}:1-5:9"),
        (f"{NAME}:1-5", f"{NAME}:1-5"),
        ("", ""),
    ],
)
def test_a_set_gets_the_transactions_that_its_file_has(known: str, then: str, tmp_path: Path) -> None:
    """Not those of the list at the file's start: a server may have been told of them only."""
    first = mysql(5, (1, 4))
    log, position = TwoFiles(tmp_path, first, mysql(6, (1, 5))), Position(FIRST, len(first.data))
    assert logged_at(log, Location(position, known), "s1", compare=False) == Location(position, then)
