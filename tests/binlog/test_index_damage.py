from __future__ import annotations

import mmap
import random
from pathlib import Path
from struct import pack

import pytest
from made_events import WHERE, File, offsets, refusal, take, take_all

from unshard.binlog.headers import read_format
from unshard.binlog.index import walk
from unshard.binlog.transaction_range import EndOfData, PlainStatement, Rotate, TransactionRange
from unshard.errors import BinlogError


def sample() -> File:
    file = File()
    file.event(163, pack("<I", 0))
    file.transaction(1, b"a", b"b")
    file.gtid(2, flags=33)
    file.query("create table x (id int)", status=b"\x00\0\0\0\0\x01" + bytes(8) + b"\x04\x21\0\x21\0\x08\0")
    file.transaction(3, b"a")
    file.gtid(4, flags=32)
    file.query("CREATE TABLE `c` (`id` int)")
    file.table_map(table=b"c")
    file.rows()
    file.query("COMMIT")
    file.rotate()
    return file


@pytest.mark.parametrize("body", [b"", bytes(8), bytes(8) + b"\xff", bytes(8) + b"\x01s\0\xffttt"])
def test_a_table_map_that_leaves_its_event_is_damage(body: bytes) -> None:
    file = File()
    file.gtid(1)
    file.event(19, body)
    assert refusal(file).code == "BINLOG-002"


@pytest.mark.parametrize(
    ("code", "body"), [(2, bytes(12)), (2, bytes(11) + b"\xff\xff"), (162, bytes(5)), (33, bytes(9))]
)
def test_short_bodies_are_damage(code: int, body: bytes) -> None:
    file = File()
    file.event(code, body)
    assert refusal(file).code == "BINLOG-002"


def test_positions() -> None:
    file = File()
    file.event(161, position=0)
    file.event(161, position=5, flags=0x20)
    assert take(file).end == len(file.data)
    at = file.event(161, position=5)
    error = refusal(file)
    assert (error.code, error.where.position) == ("BINLOG-002", f"mysql-bin.000001:{at}")
    assert "remove this relay file" in error.hint


def test_positions_wrap_around_at_four_gigabytes(tmp_path: Path) -> None:
    file = File()
    base = 2**32 - 30
    with (tmp_path / "mysql-bin.000001").open("w+b") as handle:
        handle.truncate(base)  # sparse
        made = bytearray()
        for number in (1, 2):
            offset = base + len(made)
            part = File()
            head = len(part.data)
            length = 19 + 19 + 4
            part.event(162, pack("<QIB", number, 0, 1) + bytes(6), position=offset + length)
            sql = part.event(2, pack("<IIBHH", 3, 0, 1, 0, 0) + b"s\0" + b"# nothing", position=0)
            made += part.data[head:]
            assert sql - head == length
        handle.seek(base)
        handle.write(made)
        handle.flush()
        with mmap.mmap(handle.fileno(), 0, prot=mmap.PROT_READ) as data:
            log_range = walk(data, base, size=len(data), budget=1 << 20, checksum=file.checksum, where=WHERE)
    assert (log_range.transactions, log_range.end, log_range.gtids) == (2, base + len(made), ("0-7-2",))


def test_the_data_is_free_after_an_error(tmp_path: Path) -> None:
    file = File()
    file.event(26)
    (tmp_path / "f").write_bytes(file.data)
    with (tmp_path / "f").open("rb") as handle:
        data = mmap.mmap(handle.fileno(), 0, prot=mmap.PROT_READ)
        with pytest.raises(BinlogError) as caught:
            walk(data, 4, size=len(data), budget=1, checksum=True, where=WHERE)
        data.close()  # would raise BufferError while the walk held it
    assert caught.value.code == "BINLOG-004"


def test_cut_at_every_byte_it_ends_at_whole_transactions() -> None:
    data = bytes(sample().data)
    whole = take_all(data)
    ends = {log_range.end for log_range in whole} | {
        e.stop.end for e in whole if isinstance(e.stop, PlainStatement | Rotate)
    }
    boundaries = {*offsets(data), len(data)}
    for size in range(4, len(data) + 1):
        extents = take_all(data, size=size)
        last = extents[-1]
        assert last.end <= size
        assert last.end in boundaries
        done = [e for e in whole if (e.stop.end if isinstance(e.stop, PlainStatement | Rotate) else e.end) <= size]
        assert [_bytes(e) for e in extents[: len(done)]] == [_bytes(e) for e in done]
        assert size == len(data) or isinstance(last.stop, EndOfData)
        shorter = take_all(data[:size], size=len(data))
        assert shorter == extents
    assert len(data) in ends


def test_every_flipped_bit_is_found_or_harmless() -> None:
    data = bytes(sample().data)
    whole = take_all(data)
    in_use = (4 + 17, 1)  # the server itself changes this flag of the first event after summing it
    for at in range(4, len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            if (at, 1 << bit) == in_use:
                assert take_all(bytes(changed)) == whole
                continue
            with pytest.raises(BinlogError):
                take_all(bytes(changed))


def test_random_bytes_never_get_past_the_walk() -> None:
    """Without checksums anything may come: it must end in an error or an extent inside the data."""
    source = random.Random(5)
    data = bytes(sample().data)
    plain = File(checksum=False)
    plain.transaction(1, b"a")
    plain.gtid(2, flags=33)
    plain.query("create table x (id int)")
    for _ in range(4000):
        changed = bytearray(plain.data if source.random() < 0.7 else data)
        for _ in range(source.randrange(1, 6)):
            changed[source.randrange(4, len(changed))] = source.randrange(256)
        size = source.randrange(4, len(changed) + 1)
        try:
            log_range = walk(bytes(changed), 4, size=size, budget=500, checksum=False, where=WHERE)
        except BinlogError:
            continue
        assert 4 <= log_range.end <= size


def test_format_of_a_server_without_checksums() -> None:
    assert read_format(bytes(File(checksum=False).data)).checksum is False
    made = read_format(bytes(File().data))
    assert (made.checksum, made.mariadb, made.end) == (True, True, len(File().data))


def test_a_server_may_have_given_up_the_first_row_events() -> None:
    made = read_format(bytes(File(version=b"9.7.4", given_up=bytes([23, 24, 25])).data))
    assert (made.mariadb, made.header_lengths[23], made.header_lengths[19]) == (False, 0, 8)


def test_a_file_that_is_no_binlog() -> None:
    for data in (b"", b"\xfeb", b"hello world, hello world", bytes(File().data[:60])):
        with pytest.raises(BinlogError) as caught:
            read_format(data, WHERE)
        assert caught.value.code == "BINLOG-003"


def _bytes(log_range: TransactionRange) -> tuple[object, ...]:
    """All of an extent but why it stops, which differs when nothing follows."""
    return (
        log_range.start,
        log_range.end,
        log_range.row_events,
        log_range.tables,
        log_range.gtids,
        log_range.transactions,
    )
