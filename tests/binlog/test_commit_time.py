"""The commit time of a MySQL transaction, to the microsecond where its GTID event has it."""

from __future__ import annotations

from struct import pack

import pytest
from made_events import File, take

UUID = bytes(range(16))
MICROS = 1_700_000_123_456_789


def mysql_transaction(file: File, number: int, rest: bytes) -> None:
    file.event(33, b"\0" + UUID + pack("<Q", number) + rest)
    file.query("BEGIN")
    file.table_map()
    file.rows(30)
    file.xid(timestamp=1_700_000_200)


def logical(kind: int, micros: int, *, original: bool = False) -> bytes:
    """The logical clock of kind 2, the commit time, and another one behind it where the source is a replica itself."""
    stamp = (micros | original << 55).to_bytes(7, "little")
    return pack("<BQQ", kind, 1, 2) + stamp + (bytes(7) if original else b"") + b"\x60"


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("original", [True, False])
def test_it_is_the_time_on_that_server(checksum: bool, original: bool) -> None:
    file = File(version=b"9.7.0", checksum=checksum)
    mysql_transaction(file, 1, logical(2, 5_000_000))
    mysql_transaction(file, 2, logical(2, MICROS, original=original))
    assert take(file).last_timestamp == 1_700_000_123.456789
    file.gtid(3)  # an open group behind it changes nothing
    assert take(file).last_timestamp == 1_700_000_123.456789


@pytest.mark.parametrize("rest", [bytes(17), b"", logical(0, MICROS), logical(2, MICROS)[:20]])
def test_an_event_without_it_leaves_the_seconds_of_the_header(rest: bytes) -> None:
    file = File(version=b"5.7.44", checksum=False)
    mysql_transaction(file, 1, rest)
    assert take(file).last_timestamp == 1_700_000_200
