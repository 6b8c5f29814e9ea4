"""Binlog files made by hand, event by event, for tests without a server."""

from __future__ import annotations

import zlib
from struct import pack

import pytest

from unshard.binlog.index import walk
from unshard.binlog.transaction_range import BudgetReached, EndOfData, Rotate, TransactionRange
from unshard.errors import BinlogError, Where

WHERE = Where(source="s1", file="/relay/mysql-bin.000001")

FIXED_PARTS = bytes(
    {2: 13, 4: 8, 15: 0x54, 19: 8, 23: 8, 24: 8, 25: 8, 30: 10, 31: 10, 32: 10, 33: 25, 162: 19}.get(code, 0)
    for code in range(1, 172)
)


class File:
    """A binlog file in the making; `event` adds one and gives its offset."""

    def __init__(
        self, *, checksum: bool = True, version: bytes = b"10.11.6-MariaDB-log", given_up: bytes = b""
    ) -> None:
        parts = bytes(0 if code in given_up else length for code, length in enumerate(FIXED_PARTS, 1))
        self.checksum = checksum
        self.data = bytearray(b"\xfebin")
        body = pack("<H50sIB", 4, version, 0, 19) + parts + bytes([checksum])
        self.event(15, body, checksum=True)

    def event(
        self,
        code: int,
        body: bytes = b"",
        *,
        timestamp: int = 1_700_000_000,
        server: int = 7,
        flags: int = 0,
        position: int | None = None,
        checksum: bool | None = None,
    ) -> int:
        offset = len(self.data)
        checksum = self.checksum if checksum is None else checksum
        length = 19 + len(body) + 4 * checksum
        end = offset + length if position is None else position
        event = pack("<IBIIIH", timestamp, code, server, length, end % 2**32, flags) + body
        if checksum:
            event += pack("<I", zlib.crc32(event))
        self.data += event
        return offset

    def gtid(self, number: int, *, flags: int = 0, domain: int = 0, server: int = 7, rest: bytes = bytes(6)) -> int:
        # seq_no 8, domain 4, flags 1, then commit id and extra flags, or zeros
        return self.event(162, pack("<QIB", number, domain, flags) + rest, server=server)

    def mysql_gtid(self, uuid: bytes, number: int) -> int:
        return self.event(33, b"\0" + uuid + pack("<Q", number) + bytes(17))

    def query(
        self, sql: str | bytes, *, schema: bytes = b"s", status: bytes = b"", timestamp: int = 1_700_000_000
    ) -> int:
        text = sql.encode() if isinstance(sql, str) else sql
        # thread 4, seconds 4, schema length 1, error 2, status length 2
        fixed = pack("<IIBHH", 3, 0, len(schema), 0, len(status))
        return self.event(2, fixed + status + schema + b"\0" + text, timestamp=timestamp)

    def table_map(self, schema: bytes = b"s", table: bytes = b"t", number: int = 1) -> int:
        # table id 6, flags 2, names with length and NUL, one column of type LONG (3), no metadata, nullable bits
        head = pack("<IHH", number, 0, 1)
        names = bytes([len(schema)]) + schema + b"\0" + bytes([len(table)]) + table + b"\0"
        return self.event(19, head + names + b"\x01\x03\x00\x01")

    def rows(self, code: int = 23, *, last: bool = True, padding: int = 0) -> int:
        # table id 6, flags 2 (1: last of the statement), one column, present, one row: no NULL, value 5
        return self.event(code, pack("<IHH", 1, 0, int(last)) + b"\x01\x01\x00\x05\0\0\0" + bytes(padding))

    def xid(self, number: int = 1, *, timestamp: int = 1_700_000_000) -> int:
        return self.event(16, pack("<Q", number), timestamp=timestamp)

    def transaction(
        self, number: int, *tables: bytes, timestamp: int = 1_700_000_000, padding: int = 0, domain: int = 0
    ) -> int:
        """A MariaDB transaction of one statement for each table; the offset of its GTID."""
        start = self.gtid(number, flags=4, domain=domain)
        for table in tables or (b"t",):
            self.event(160, b"insert into t values (5)")
            self.table_map(table=table)
            self.rows(padding=padding)
        self.xid(number, timestamp=timestamp)
        return start

    def rotate(self, following: bytes = b"mysql-bin.000002") -> int:
        return self.event(4, pack("<Q", 4) + following)


def take(file: File, start: int = 4, *, budget: int = 1 << 20, size: int | None = None) -> TransactionRange:
    data = bytes(file.data)
    return walk(
        data, start, size=len(data) if size is None else size, budget=budget, checksum=file.checksum, where=WHERE
    )


def take_all(data: bytes, *, checksum: bool = True, size: int | None = None) -> list[TransactionRange]:
    extents = []
    at = 4
    while True:
        log_range = walk(data, at, size=len(data) if size is None else size, budget=300, checksum=checksum, where=WHERE)
        extents.append(log_range)
        if isinstance(log_range.stop, EndOfData | Rotate):
            return extents
        at = log_range.end if isinstance(log_range.stop, BudgetReached) else log_range.stop.end


def refusal(file: File, start: int = 4) -> BinlogError:
    with pytest.raises(BinlogError) as caught:
        take(file, start)
    return caught.value


def offsets(data: bytes) -> list[int]:
    found = []
    at = 4
    while at < len(data):
        found.append(at)
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    return found
