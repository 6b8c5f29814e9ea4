"""Damaged row events: they give values or a BinlogError, and never a byte beyond the range is read.

The bytes lie at the end of a page whose follower can't be read: one byte too many ends the process.
"""

from __future__ import annotations

import ctypes
import mmap
import random
from collections.abc import Iterator

import pytest
from made_events import File
from row_images import WHERE, map_table, rows, table_of

from support.refusals import refusal
from unshard.binlog.rows import decode_range
from unshard.errors import BinlogError
from unshard.model.table import Column

COLUMNS = {
    (1, b""): (Column("tiny", "tinyint", "tinyint(4)"), b"\x85"),
    (2, b""): (Column("small", "smallint", "smallint(6) unsigned"), b"\xff\xff"),
    (9, b""): (Column("medium", "mediumint", "mediumint(9)"), b"\x01\x02\x83"),
    (8, b""): (Column("big", "bigint", "bigint(20)"), bytes(range(8))),
    (4, b"\4"): (Column("f", "float", "float"), b"\0\0\x80\x3f"),
    (5, b"\x08"): (Column("d", "double", "double"), b"\0\0\0\0\0\0\xf0\x3f"),
    (13, b""): (Column("y", "year", "year(4)"), b"\x7c"),
    (246, b"\x14\x05"): (
        Column("n", "decimal", "decimal(20,5)", precision=20, scale=5),
        bytes.fromhex("8000000501e240000fff"),
    ),
    (10, b""): (Column("date", "date", "date"), bytes.fromhex("5dd00f")),
    (19, b"\3"): (Column("time", "time", "time(3)", fsp=3), bytes.fromhex("8010830064")),
    (18, b"\6"): (Column("moment", "datetime", "datetime(6)", fsp=6), bytes.fromhex("99b2bb7efa000001")),
    (17, b"\1"): (Column("stamp", "timestamp", "timestamp(1)", fsp=1), bytes.fromhex("6000000032")),
    (12, b""): (Column("old", "datetime", "datetime"), (20240229235946).to_bytes(8, "little")),
    (15, b"\x90\x01"): (Column("text", "varchar", "varchar(100)", charset="utf8mb4", length=100), b"\x03\0abc"),
    (15, b"\x0a\0"): (Column("latin", "varchar", "varchar(10)", charset="latin1", length=10), b"\x02\xe9x"),
    (15, b"\x14\0"): (Column("wide", "varchar", "varchar(10)", charset="gbk", length=10), b"\x02\xd6\xd0"),
    (254, b"\xfe\x05"): (Column("bin", "binary", "binary(5)", length=5), b"\x01\xff"),
    (254, b"\xf7\1"): (Column("e", "enum", "enum('a','b')", members=("a", "b")), b"\1"),
    (254, b"\xf8\1"): (Column("s", "set", "set('a','b')", members=("a", "b")), b"\3"),
    (252, b"\2"): (Column("blob", "blob", "blob", length=65535), b"\2\0\xff\0"),
    (16, b"\1\1"): (Column("bits", "bit", "bit(9)", precision=9), b"\1\xff"),
}
TABLE = table_of(*(column for column, _ in COLUMNS.values()))
NULLS = bytes((len(COLUMNS) + 7) // 8)
IMAGE = NULLS + b"".join(image for _, image in COLUMNS.values())


@pytest.fixture(scope="module")
def page() -> Iterator[mmap.mmap]:
    with mmap.mmap(-1, 2 * mmap.PAGESIZE) as memory:
        anchor = ctypes.c_char.from_buffer(memory)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        beyond = ctypes.c_void_p(ctypes.addressof(anchor) + mmap.PAGESIZE)
        assert protect(beyond, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
        yield memory
        assert protect(beyond, ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_WRITE) == 0
        del anchor


def run(page: mmap.mmap, events: bytes) -> int:
    """Decode events that end with the page; the number of changes."""
    start = mmap.PAGESIZE - len(events)
    page[start : mmap.PAGESIZE] = events
    with memoryview(page)[: mmap.PAGESIZE] as data:
        decoded = decode_range(
            data, start, mmap.PAGESIZE, checksum=False, wanted=lambda table_map, offset: TABLE, where=WHERE
        )
    for _, batch in decoded:
        batch.validate(full=True)
    return decoded.changes


def made(code: int) -> tuple[bytes, int]:
    """A TABLE_MAP and a row event, and where the row event begins."""
    file = File(checksum=False)
    start = map_table(file, [code for code, _ in COLUMNS], b"".join(metadata for _, metadata in COLUMNS))
    at = rows(file, IMAGE * (4 if code in (24, 31) else 3), columns=len(COLUMNS), code=code)
    return bytes(file.data[start:]), at - start


@pytest.mark.parametrize("code", [23, 31])
def test_whole_events_are_read(page: mmap.mmap, code: int) -> None:
    assert run(page, made(code)[0]) == (3 if code == 23 else 2)


@pytest.mark.parametrize("code", [23, 24, 25, 30, 31, 32])
def test_every_truncation(page: mmap.mmap, code: int) -> None:
    events, at = made(code)
    whole = 0
    for size in range(19, len(events) - at):
        cut = bytearray(events[: at + size])
        cut[at + 9 : at + 13] = size.to_bytes(4, "little")
        refused = refusal(BinlogError, run, page, bytes(cut))
        assert refused is None or refused.code in ("BINLOG-021", "BINLOG-023", "BINLOG-026", "BINLOG-037")
        whole += refused is None
    assert whole <= 4  # only where it is cut between two images


def test_every_truncation_of_the_table_map(page: mmap.mmap) -> None:
    events, at = made(23)
    for size in range(19, at):
        cut = bytearray(events[:size])
        cut[9:13] = size.to_bytes(4, "little")
        with pytest.raises(BinlogError, match=r"BINLOG-02[236]"):
            run(page, bytes(cut + events[at:]))


@pytest.mark.parametrize("seed", range(8))
def test_flipped_bits_and_wild_bytes(page: mmap.mmap, seed: int) -> None:
    chance = random.Random(seed)
    events, at = made(chance.choice([23, 24, 25, 30, 31, 32]))
    outcomes = {True: 0, False: 0}
    for _ in range(500):
        wild = bytearray(events)
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(at + 19 if chance.random() < 0.8 else 0, len(wild))
            wild[place] = chance.choice([wild[place] ^ 1 << chance.randrange(8), chance.randrange(256), 0, 255])
        refused = refusal(BinlogError, run, page, bytes(wild))
        assert refused is None or refused.where.position is not None
        outcomes[refused is None] += 1
    assert min(outcomes.values()) > 20


@pytest.mark.parametrize("seed", range(4))
def test_noise_behind_a_good_header(page: mmap.mmap, seed: int) -> None:
    chance = random.Random(seed)
    events, at = made(23)
    body = at + 19 + 8 + 1 + len(NULLS)  # behind the columns-present bitmap
    for _ in range(300):
        noise = chance.randbytes(chance.randrange(300))
        wild = bytearray(events[:body] + noise)
        wild[at + 9 : at + 13] = (len(wild) - at).to_bytes(4, "little")
        refused = refusal(BinlogError, run, page, bytes(wild))
        assert refused is None or refused.code in ("BINLOG-021", "BINLOG-023")
