"""Compressed events by hand: what they hold, and every way in which they can be damaged."""

from __future__ import annotations

import resource
import zlib
from struct import pack

import pyarrow as pa
import pytest
from made_events import WHERE, File, offsets, refusal, take, take_all
from row_images import decode, int_column, map_table, packed, rows, table_of

from unshard.binlog.payload import LARGEST, NotUnpackedError, unpack
from unshard.binlog.rows import decode_range
from unshard.binlog.transaction_range import BudgetReached, EndOfData, PlainStatement, splits
from unshard.binlog.xa import Completed, PreparedStop
from unshard.errors import BinlogError
from unshard.model.change import Op
from unshard.model.table import Table, TableName

T = table_of(int_column())
LONG = 3
UUID = bytes(range(16))


def image(number: int) -> bytes:
    return b"\x00" + pack("<i", number)


def deflated(content: bytes, *, size: int | None = None, algorithm: int = 0) -> bytes:
    """As MariaDB packs: 1 byte (bit 7, algorithm, length bytes), the length big-endian, zlib."""
    size = len(content) if size is None else size
    return bytes([0x80 | algorithm << 4 | 4]) + size.to_bytes(4, "big") + zlib.compress(content)


def number(value: int) -> bytes:
    if value < 251:
        return bytes([value])
    return b"\xfd" + value.to_bytes(3, "little") if value < 1 << 24 else b"\xfe" + pack("<Q", value)


def payload(
    content: bytes | bytearray, *, size: int | None = None, algorithm: int = 0, plain: int | None = None
) -> bytes:
    """A TRANSACTION_PAYLOAD's body: (type, length, value) of each field, 0, the content."""
    content = unplaced(content)
    packed_content = pa.compress(content, codec="zstd", asbytes=True) if algorithm == 0 else content
    fields = b""
    for kind, value in (
        (2, algorithm),
        (3, len(content) if plain is None else plain),
        (9, 7),  # a field of a later version
        (1, len(packed_content) if size is None else size),
    ):
        fields += number(kind) + number(len(number(value))) + number(value)
    return fields + b"\0" + packed_content


def bare() -> File:
    """Events to come, without what a file begins with."""
    file = File(checksum=False)
    file.data.clear()
    return file


def inner(*, close: bool = True, tables: int = 1) -> File:
    """The events of a transaction without checksums."""
    file = bare()
    file.query("BEGIN")
    for each in range(tables):
        file.event(29, b"\x06insert")
        map_table(file, [LONG], number=each + 1, name=TableName("s", f"t{each}"))
        rows(file, image(each) + image(100 + each), code=30, number=each + 1)
    if close:
        file.xid()
    return file


def unplaced(events: bytes | bytearray) -> bytes:
    """The events with end position 0, as they stand in a payload."""
    made = bytearray(events)
    at = 0
    while at + 19 <= len(made) and (size := int.from_bytes(made[at + 9 : at + 13], "little")):
        made[at + 13 : at + 17] = bytes(4)
        at += size
    return bytes(made)


def mysql_file(body: bytes, *, gtid: bool = True) -> File:
    file = File(version=b"9.7.0", given_up=b"\x17\x18\x19")
    if gtid:
        file.mysql_gtid(UUID, 1)
    file.event(40, body)
    return file


def always(table_map: object, offset: int) -> Table:
    return T


@pytest.mark.parametrize("algorithm", [0, 255])
def test_a_payload_is_one_transaction(algorithm: int) -> None:
    file = mysql_file(payload(inner(tables=2).data, algorithm=algorithm))
    file.mysql_gtid(UUID, 2)
    file.query("BEGIN")
    map_table(file, [LONG])
    rows(file, image(9), code=30)
    file.xid()
    log_range = take(file)
    assert (log_range.transactions, log_range.row_events, log_range.end) == (2, 3, len(file.data))
    assert log_range.tables == {TableName("s", "t0"), TableName("s", "t1"), TableName("s", "t")}
    assert log_range.gtids == ("00010203-0405-0607-0809-0a0b0c0d0e0f:1-2",)
    assert log_range.stop == EndOfData()
    decoded = decode(file, always)
    ((_, batch),) = decoded
    assert batch.column("v").to_pylist() == [0, 100, 1, 101, 9]
    assert batch.column("seq").to_pylist() == [0, 1, 2, 3, 4]
    assert (decoded.changes, decoded.events) == (5, 3)


def test_table_ids_of_a_payload_end_with_it() -> None:
    file = mysql_file(payload(inner().data))
    rows(file, image(9), code=30)
    with pytest.raises(BinlogError, match="BINLOG-026"):
        decode(file, always)


def test_a_payload_is_never_cut() -> None:
    file = File(version=b"9.7.0")
    start = len(file.data)
    places = []
    for each in range(4):
        places.append(file.mysql_gtid(UUID, each))
        file.event(40, payload(inner(tables=9).data, algorithm=255))
    assert splits(bytes(file.data), start, len(file.data), 4) == tuple(places)
    assert set(splits(bytes(file.data), start, len(file.data), 50)) <= set(places)


def xa_group(*, one_phase: bool = False) -> File:
    """The first part of an XA transaction, without its GTID."""
    file = bare()
    file.query("XA START X'71',X'',1")
    map_table(file, [LONG], name=TableName("s", "t0"))
    rows(file, image(1) + image(2), code=30)
    file.query("XA END X'71',X'',1")
    file.event(38, pack("<Biii", one_phase, 1, 1, 0) + b"q", timestamp=77)
    return file


def test_a_prepared_xa_transaction_in_a_payload_is_a_stop_of_its_own() -> None:
    file = mysql_file(payload(inner().data))
    start = file.mysql_gtid(UUID, 2)
    file.event(40, payload(xa_group().data), timestamp=78)
    end = len(file.data)
    file.mysql_gtid(UUID, 3)
    file.query("XA COMMIT X'71',X'',1")
    before, prepare, commit, _ = take_all(bytes(file.data))
    assert (before.transactions, before.row_events, before.end, before.stop) == (1, 1, start, BudgetReached())
    gtid = "00010203-0405-0607-0809-0a0b0c0d0e0f:2"
    assert (prepare.end, prepare.transactions) == (start, 0)
    tables, size = frozenset({TableName("s", "t0")}), len(xa_group().data)
    assert prepare.stop == PreparedStop("71,,1", start, end, 1, tables, 77, gtid, unpacked=size)
    assert isinstance(commit.stop, Completed)
    ((_, batch),) = decode_range(bytes(file.data), start, end, checksum=True, wanted=always, where=WHERE)
    assert batch.column("v").to_pylist() == [1, 2]


def test_an_xa_transaction_of_one_phase_in_a_payload_is_a_transaction() -> None:
    log_range = take(mysql_file(payload(xa_group(one_phase=True).data)))
    assert (log_range.transactions, log_range.row_events, log_range.stop) == (1, 1, EndOfData())


def test_nothing_stands_behind_a_prepare_in_a_payload() -> None:
    whole = bytes(xa_group().data)
    for events in (whole + whole, bytes(inner().data) + whole, whole + bytes(inner().data)):
        assert refusal(mysql_file(payload(events))).code == "BINLOG-006"


def test_errors_inside_name_the_payload() -> None:
    events = inner(close=False)
    rows(events, image(1), number=77, code=30)
    events.xid()
    file = mysql_file(payload(events.data))
    with pytest.raises(BinlogError) as caught:
        decode(file, always)
    assert caught.value.code == "BINLOG-026"
    assert caught.value.where.position == f"mysql-bin.000001:{last_event(file)}"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("INSERT INTO t VALUES (1)", "BINLOG-005"),
        ("CREATE TABLE u (a int)", "BINLOG-006"),
        ("ROLLBACK", "BINLOG-007"),
    ],
)
def test_statements_inside_are_refused(change: str, code: str) -> None:
    events = bare() if code == "BINLOG-006" else inner(close=False)
    events.query(change)
    file = mysql_file(payload(events.data))
    error = refusal(file)
    assert error.code == code
    assert error.where.position == f"mysql-bin.000001:{last_event(file)}"


def last_event(file: File) -> int:
    return offsets(bytes(file.data))[-1]


def test_what_no_transaction_holds_is_refused() -> None:
    whole = bytes(inner().data)
    nested = bare()
    nested.mysql_gtid(UUID, 5)
    nested.event(40, payload(whole))
    rotated = bare()
    rotated.rotate()
    for events in (bytes(nested.data), bytes(rotated.data), whole + whole, bytes(inner(close=False).data), whole[:-1]):
        assert refusal(mysql_file(payload(events))).code == "BINLOG-006"
    assert refusal(mysql_file(payload(whole), gtid=False)).code == "BINLOG-006"


def test_damaged_payloads() -> None:
    whole = bytes(inner().data)
    good = payload(whole)
    for body, code in (
        (payload(whole, plain=len(whole) - 1), "BINLOG-030"),
        (payload(whole, plain=len(whole) + 1), "BINLOG-030"),
        (payload(whole, size=5), "BINLOG-030"),
        (payload(whole, algorithm=3), "BINLOG-031"),
        (payload(bytes(100_000), plain=1024), "BINLOG-030"),
        (payload(whole, plain=LARGEST), "BINLOG-030"),
        (payload(whole, plain=LARGEST + 1), "BINLOG-030"),
        (payload(whole, plain=1 << 62), "BINLOG-030"),
        *((good[:size], "BINLOG-030") for size in range(len(good))),
    ):
        file = mysql_file(body)
        error = refusal(file)
        assert (error.code, error.values["event"]) == (code, "TRANSACTION_PAYLOAD")
        assert error.where.position
        with pytest.raises(BinlogError, match=code):
            decode(file, always)


def test_a_size_that_was_made_up_takes_no_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for body in (payload(b"few bytes", plain=LARGEST), payload(bytes(200 << 20), plain=1024)):
        with pytest.raises(NotUnpackedError):
            unpack(40, body)
    with pytest.raises(NotUnpackedError):
        unpack(165, bytes(13) + b"\0" + deflated(b"text", size=LARGEST))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 << 10  # KiB; the bomb's source is 200 MiB


@pytest.mark.parametrize(
    ("code", "plain", "ops"),
    [
        (166, 23, [Op.INSERT, Op.INSERT]),
        (167, 24, [Op.UPDATE_BEFORE, Op.UPDATE_AFTER]),
        (168, 25, [Op.DELETE, Op.DELETE]),
        (169, 30, [Op.INSERT, Op.INSERT]),
        (170, 31, [Op.UPDATE_BEFORE, Op.UPDATE_AFTER]),
        (171, 32, [Op.DELETE, Op.DELETE]),
    ],
)
def test_compressed_row_events(code: int, plain: int, ops: list[Op]) -> None:
    present = b"\x01" * (2 if code in (167, 170) else 1)
    head = pack("<IHH", 1, 0, 1) + (b"\x05\x00abc" if code >= 169 else b"") + packed(1) + present
    content = image(5) + image(-6)
    assert unpack(code, head + deflated(content)) == head + content
    file = File()
    file.gtid(1)
    map_table(file, [LONG])
    file.event(code, head + deflated(content))
    file.xid()
    log_range = take(file)
    assert (log_range.transactions, log_range.row_events) == (1, 1)
    ((_, batch),) = decode(file, always)
    assert batch.column("op").to_pylist() == ops
    assert batch.column("v").to_pylist() == [5, -6]


def test_damaged_row_events() -> None:
    head = pack("<IHH", 1, 0, 1) + packed(1) + b"\x01"
    content = image(5) * 50
    good = head + deflated(content)
    for body, code in (
        (head + deflated(content, size=249), "BINLOG-030"),
        (head + deflated(content, size=251), "BINLOG-030"),
        (head + deflated(content, size=LARGEST), "BINLOG-030"),
        (head + deflated(content, size=LARGEST + 1), "BINLOG-032"),
        (head + deflated(content, algorithm=1), "BINLOG-031"),
        (head + b"\x04" + deflated(content)[1:], "BINLOG-030"),
        (good + b"x", "BINLOG-030"),
        *((good[:size], "BINLOG-030") for size in range(6, len(good))),
    ):
        file = File()
        map_table(file, [LONG])
        at = file.event(166, body)
        with pytest.raises(BinlogError) as caught:
            decode(file, always)
        assert (caught.value.code, caught.value.where.position) == (code, f"mysql-bin.000001:{at}")


def test_a_compressed_statement() -> None:
    fixed = pack("<IIBHH", 3, 0, 1, 0, 0) + b"s\0"
    file = File()
    file.gtid(1, flags=1)
    file.event(165, fixed + deflated(b"CREATE TABLE t (a int)"))
    stop = take(file).stop
    assert isinstance(stop, PlainStatement)
    assert (stop.sql, stop.schema) == ("CREATE TABLE t (a int)", "s")
    damaged = File()
    damaged.gtid(1, flags=1)
    damaged.event(165, fixed + b"\x84\0\0")
    assert refusal(damaged).code == "BINLOG-030"


def test_transactions_before_a_damaged_payload_come_first() -> None:
    file = mysql_file(payload(inner().data))
    end = len(file.data)
    file.mysql_gtid(UUID, 2)
    file.event(40, b"\0nothing")
    log_range = take(file)
    assert (log_range.transactions, log_range.end, log_range.stop) == (1, end, BudgetReached())
