"""Compressed transactions that are larger than memory should hold at once: walked and decoded piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from struct import pack

import pyarrow as pa
import pytest
from made_events import WHERE, File, refusal, take
from row_images import map_table, packed, rows
from test_compressed import (
    LONG,
    UUID,
    always,
    bare,
    deflated,
    image,
    inner,
    mysql_file,
    number,
    payload,
    unplaced,
    xa_group,
)

from unshard.binlog import index
from unshard.binlog import payload as payloads
from unshard.binlog.payload import LARGEST, NotUnpackedError, Payload, PayloadPart, unpack
from unshard.binlog.rows import decode_range
from unshard.binlog.transaction_range import BudgetReached, slices
from unshard.binlog.xa import PreparedStop

WAYS = pytest.mark.parametrize("algorithm", [0, 255], ids=["zstd", "stored"])


def large() -> File:
    """Two statements of many row events, the second on two tables."""
    file = bare()
    file.query("BEGIN")
    map_table(file, [LONG])
    for each in range(20):
        rows(file, image(each), code=30, last=each == 19)
    map_table(file, [LONG], number=2)
    map_table(file, [LONG], number=3)
    for each in range(20, 40):
        rows(file, image(each), number=2 + each % 2, code=30, last=each == 39)
    file.xid()
    return file


@WAYS
@pytest.mark.parametrize("size", [1, 100, 333, 100_000])
def test_pieces_are_whole_events(algorithm: int, size: int) -> None:
    plain = unplaced(large().data)
    opened = Payload(payload(plain, algorithm=algorithm))
    pieces = list(opened.pieces(size))
    assert b"".join(pieces) == plain
    assert (len(pieces) == 1) == (size > len(plain))
    assert all(len(piece) <= max(size, int.from_bytes(piece[9:13], "little")) for piece in pieces)


@WAYS
@pytest.mark.parametrize("piece", [1, 200])
def test_the_index_takes_a_payload_by_pieces(algorithm: int, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [large(), inner(tables=3), xa_group()]
    files = [mysql_file(payload(group.data, algorithm=algorithm)) for group in groups]
    at_once = [take(file) for file in files]
    monkeypatch.setattr(index, "_PIECE", piece)
    assert [take(file) for file in files] == at_once
    assert (at_once[0].row_events, at_once[0].transactions, at_once[0].unpacked) == (40, 1, len(large().data))
    assert isinstance(at_once[2].stop, PreparedStop)
    whole = bytes(large().data)
    for events in (whole + whole, whole[:-1], whole[:-30], bytes(inner(close=False).data), whole + bytes(5)):
        assert refusal(mysql_file(payload(events))).code in ("BINLOG-006", "BINLOG-002")


@WAYS
@pytest.mark.parametrize("size", [60, 200, 700])
def test_slices_of_a_payload_hold_its_rows(algorithm: int, size: int) -> None:
    file = mysql_file(payload(large().data, algorithm=algorithm))
    data, start = bytes(file.data), 4 + int.from_bytes(file.data[13:17], "little")
    found = list(slices(data, start, len(data), size, checksum=True))
    assert any(one.part is not None and one.part.maps for one in found), "no statement was cut"
    values = []
    for one in found:
        decoded = decode_range(
            data, one.start, one.end, checksum=True, wanted=always, maps=one.maps, part=one.part, where=WHERE
        )
        values += [value for _, batch in decoded for value in batch.column("v").to_pylist()]
    assert values == list(range(40))


def test_a_payload_that_breaks_off_is_told_while_it_is_read() -> None:
    body = payload(bytes(large().data))
    for broken in (payload(large().data, plain=len(large().data) + 1), payload(large().data, plain=200)):
        with pytest.raises(NotUnpackedError):
            list(Payload(broken).pieces(100))
    assert Payload(body).part(PayloadPart(0, 19)) == unplaced(large().data)[:19]


def test_a_batch_ends_by_what_it_unpacks_to() -> None:
    file = mysql_file(payload(large().data))
    second = file.mysql_gtid(UUID, 2)
    file.event(40, payload(large().data))
    both = len(file.data) + 2 * len(large().data)
    log_range = take(file, budget=both - 50)
    assert (log_range.end, log_range.transactions, log_range.stop) == (second, 1, BudgetReached())
    assert take(file, budget=both).transactions == 2


def test_compressed_rows_count_as_they_unpack() -> None:
    def rows_of(count: int, file: File) -> int:
        images = b"".join(map(image, range(count)))
        return file.event(166, pack("<IHH", 1, 0, 0) + packed(1) + b"\x01" + deflated(images))

    file = File()
    start = file.gtid(1)
    map_table(file, [LONG])
    places = [rows_of(1000, file) for _ in range(4)]
    file.xid()
    second = file.gtid(2)
    map_table(file, [LONG])
    rows_of(1000, file)
    file.xid()
    data = bytes(file.data)
    assert take(file, budget=20_000 + len(data)).end == second
    assert take(file).unpacked == 5 * 5000
    found = list(slices(data, start, second, 10_000, checksum=True))
    assert [one.start for one in found] == [start, places[2]]


ROWS = 1 << 20  # of an event; about 5 MiB


def huge() -> Iterator[bytes]:
    """The events of a transaction of more than LARGEST bytes; event number n has the value n in all of its rows."""
    made = LARGEST // (5 * ROWS) + 2
    file = bare()
    file.query("BEGIN")
    map_table(file, [LONG])
    yield unplaced(file.data)
    for value in range(made):
        file = bare()
        rows(file, image(value) * ROWS, code=30, last=value == made - 1)
        yield unplaced(file.data)
    file = bare()
    file.xid()
    yield unplaced(file.data)


def huge_body() -> tuple[bytes, int]:
    """A TRANSACTION_PAYLOAD's body of `huge`, and to how many bytes it unpacks."""
    sink, size = pa.BufferOutputStream(), 0
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        for events in huge():
            stream.write(events)
            size += len(events)
    content = sink.getvalue().to_pybytes()
    values = ((2, 0), (3, size), (1, len(content)))
    fields = b"".join(number(kind) + number(len(number(value))) + number(value) for kind, value in values)
    return fields + b"\0" + content, size


def test_a_transaction_of_more_than_a_gigabyte_is_followed() -> None:
    body, size = huge_body()
    assert size > LARGEST
    file = mysql_file(body)
    data, start = bytes(file.data), 4 + int.from_bytes(file.data[13:17], "little")
    log_range = take(file)
    assert (log_range.transactions, log_range.unpacked, log_range.end) == (1, size, len(data))
    found = list(slices(data, start, len(data), 64 << 20, checksum=True))
    assert len(found) > LARGEST // (64 << 20)
    last = found[-1]
    decoded = decode_range(
        data, last.start, last.end, checksum=True, wanted=always, maps=last.maps, part=last.part, where=WHERE
    )
    ((_, batch),) = decoded
    values = batch.column("v")
    assert values[-1].as_py() == log_range.row_events - 1
    assert len(values) % ROWS == 0
    with pytest.raises(NotUnpackedError, match="at most") as caught:
        unpack(40, body)
    assert caught.value.code == "BINLOG-032", "it is never unpacked at once"


def test_an_event_that_says_to_be_larger_than_any_is_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payloads, "LARGEST", 1000)
    file = bare()
    file.query("BEGIN")
    map_table(file, [LONG])
    rows(file, image(1) * 1000, code=30)
    file.xid()
    with pytest.raises(NotUnpackedError) as caught:
        list(Payload(payload(file.data)).pieces(100))
    assert caught.value.code == "BINLOG-032"
    assert list(Payload(payload(large().data)).pieces(100)), "all of its events are small"
