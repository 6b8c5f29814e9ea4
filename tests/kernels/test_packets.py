"""The event chain on literal packets; no server."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.kernels import packets
from unshard.kernels.packets import EventChain

QUERY, ROTATE, XID, TABLE_MAP, MYSQL_GTID, MARIADB_GTID = 2, 4, 16, 19, 33, 162
PAYLOAD, QUERY_COMPRESSED = 40, 165
LIMIT = 1 << 16
SID = bytes(range(16))


def event(kind: int, body: bytes, start: int, *, time: int = 1000, server: int = 7, flags: int = 0) -> bytes:
    """An event with a CRC32 that begins at `start`."""
    size = 19 + len(body) + 4
    bare = struct.pack("<IBIIIH", time, kind, server, size, start + size, flags) + body
    return bare + zlib.crc32(bare).to_bytes(4, "little")


def query(text: bytes, start: int) -> bytes:
    return event(QUERY, struct.pack("<IIBHH", 1, 0, 1, 0, 3) + b"abcd\0" + text, start)


def packet(payload: bytes, number: int = 0) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number % 256]) + payload


def unpack(chain: EventChain, data: bytes) -> tuple[int, int, bytes]:
    buffer = bytearray(data)
    stop, taken, made = chain.unpack(buffer, memoryview(buffer), 0, len(buffer), LIMIT)
    return stop, taken, bytes(buffer[:made])


def chained(*bodies: bytes) -> list[bytes]:
    made: list[bytes] = []
    at = 4
    for body in bodies:
        made.append(event(TABLE_MAP, body, at))
        at += len(made[-1])
    return made


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=8), st.data())
def test_any_split_of_the_stream_gives_the_same_events(bodies: list[bytes], data: st.DataObject) -> None:
    events = chained(*bodies)
    stream = b"".join(packet(b"\0" + one, i) for i, one in enumerate(events))
    cut = data.draw(st.integers(0, len(stream)))
    chain = EventChain()

    stop, taken, first = unpack(chain, stream[:cut])
    assert stop == packets.MORE
    stop, _, second = unpack(chain, stream[taken:])

    assert (stop, first + second) == (packets.MORE, b"".join(events))
    assert (chain.events, chain.timestamp) == (len(events), 1000)
    assert chain.position == 4 + sum(map(len, events))


@pytest.mark.parametrize(
    ("payload", "stop"),
    [
        (b"\xff\xd4\x04#HY000no", packets.SPECIAL),
        (b"\xfe\0\0\0\0", packets.SPECIAL),
        (b"\0" + event(ROTATE, bytes(8) + b"f.2", 4), packets.SPECIAL),
        (b"\0" + event(TABLE_MAP, b"", 4, flags=0x20), packets.SPECIAL),
        (b"\0" + event(TABLE_MAP, b"x", 5), packets.BAD_POSITION),
        (b"\0" + event(TABLE_MAP, b"xyz", 4)[:-1], packets.BAD_LENGTH),
        (b"\0" + event(TABLE_MAP, b"xyz", 4)[:-5] + b"Z" + event(TABLE_MAP, b"xyz", 4)[-4:], packets.BAD_CHECKSUM),
        (b"\0" + event(TABLE_MAP, bytes(LIMIT), 4), packets.LARGE),
    ],
)
def test_what_is_not_taken(payload: bytes, stop: int) -> None:
    chain = EventChain()
    assert unpack(chain, packet(payload)) == (stop, 0, b"")
    assert chain.position == 4


def placeless(kind: int, body: bytes) -> bytes:
    """An event as MariaDB 11.4 writes it inside a transaction: its `log_pos` is 0."""
    return event(kind, body, -(19 + len(body) + 4))


def test_events_without_a_place_are_taken_and_the_next_place_must_fit() -> None:
    inside = [placeless(TABLE_MAP, b"map"), placeless(QUERY, b"text")]
    at = 4 + sum(map(len, inside))
    stream = b"".join(packet(b"\0" + one) for one in inside)
    chain = EventChain()
    assert unpack(chain, stream + packet(b"\0" + event(XID, bytes(8), at)))[0] == packets.MORE
    assert (chain.position, chain.events) == (at + 31, 3)

    one_is_missing = EventChain()
    stop, _, made = unpack(one_is_missing, packet(b"\0" + inside[0]) + packet(b"\0" + event(XID, bytes(8), at)))
    assert (stop, made) == (packets.BAD_POSITION, inside[0])


@pytest.mark.parametrize("kind", [XID, MYSQL_GTID, MARIADB_GTID])
def test_the_ends_of_a_transaction_know_their_place(kind: int) -> None:
    assert unpack(EventChain(), packet(b"\0" + placeless(kind, bytes(42))))[0] == packets.BAD_POSITION


def test_without_checksums_only_place_and_length_count() -> None:
    harmed = event(TABLE_MAP, b"xyz", 4)[:-5] + b"Z" + b"nope"
    chain = EventChain(4, checksum=False)
    assert unpack(chain, packet(b"\0" + harmed)) == (packets.MORE, 4 + 1 + len(harmed), harmed)


def test_places_beyond_four_gigabytes_wrap() -> None:
    start = (1 << 32) + 100
    one = event(TABLE_MAP, b"", 100)
    chain = EventChain(start)
    assert unpack(chain, packet(b"\0" + one))[0] == packets.MORE
    assert chain.position == start + len(one)


@given(st.binary(max_size=300))
def test_noise_never_reads_or_writes_outside(noise: bytes) -> None:
    chain = EventChain(4, checksum=False)
    stop, taken, made = unpack(chain, noise)
    assert packets.MORE <= stop <= packets.BAD_CHECKSUM
    assert len(made) <= taken <= len(noise)
    held = memoryview(noise)
    assert EventChain(0, checksum=False).walk(held, held, len(noise)) <= packets.BAD_CHECKSUM


def gtids_after(*bodies: tuple[int, bytes]) -> list[tuple[bytes, int, int]]:
    chain, at = EventChain(), 4
    for kind, body in bodies:
        made = query(body, at) if kind == QUERY else event(kind, body, at)
        assert chain.append(made) == 0
        at += len(made)
    taken: list[tuple[bytes, int, int]] = chain.take_gtids()
    assert chain.take_gtids() == []
    return taken


def mysql(number: int) -> tuple[int, bytes]:
    return MYSQL_GTID, b"\0" + SID + struct.pack("<Q", number) + bytes(17)


def mariadb(number: int, flags: int = 0, domain: int = 3) -> tuple[int, bytes]:
    return MARIADB_GTID, struct.pack("<QIB", number, domain, flags) + bytes(6)


ORIGIN = struct.pack("<II", 3, 7)


@pytest.mark.parametrize(
    ("bodies", "runs"),
    [
        ([mysql(5)], []),
        ([mysql(5), (QUERY, b"BEGIN"), (TABLE_MAP, b"")], []),
        ([mysql(5), (QUERY, b"BEGIN"), (QUERY, b"INSERT INTO t VALUES (1)")], []),
        ([mysql(5), (QUERY, b"BEGIN"), (XID, bytes(8))], [(SID, 5, 5)]),
        ([mysql(5), (QUERY, b"BEGIN"), (QUERY, b"COMMIT")], [(SID, 5, 5)]),
        ([mysql(5), (QUERY, b"CREATE TABLE t (id INT)")], [(SID, 5, 5)]),
        ([mysql(5), (QUERY, b"DROP TABLE t"), mysql(6), (QUERY, b"DROP TABLE u"), mysql(8)], [(SID, 5, 6)]),
        ([mysql(5), (QUERY, b"DROP TABLE t"), mysql(8), (QUERY, b"DROP TABLE u")], [(SID, 5, 5), (SID, 8, 8)]),
        ([mariadb(5), (TABLE_MAP, b"")], []),
        ([mariadb(5), (XID, bytes(8)), mariadb(9), (QUERY, b"COMMIT")], [(ORIGIN, 5, 9)]),
        ([mariadb(5, flags=1), (QUERY, b"DROP TABLE t")], [(ORIGIN, 5, 5)]),
        ([mariadb(5), (QUERY, b"INSERT INTO t VALUES (1)")], []),
        ([mariadb(5, flags=1), (QUERY_COMPRESSED, b"")], [(ORIGIN, 5, 5)]),
        ([mariadb(5), (QUERY_COMPRESSED, b"")], []),
        ([mysql(5), (PAYLOAD, b"")], [(SID, 5, 5)]),
    ],
)
def test_a_gtid_counts_once_its_transaction_has_ended(
    bodies: list[tuple[int, bytes]], runs: list[tuple[bytes, int, int]]
) -> None:
    assert gtids_after(*bodies) == runs


def test_an_open_transaction_is_forgotten_in_the_next_file() -> None:
    chain = EventChain()
    assert chain.append(event(*mariadb(5), 4)) == 0
    chain.begin(4)
    assert chain.append(event(*mariadb(6), 4)) == 0
    assert chain.take_gtids() == []
