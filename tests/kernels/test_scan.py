from __future__ import annotations

import random
from struct import pack

import pytest

from unshard.kernels.scan import KINDS, REASONS, Scanner
from unshard.kernels.split import boundaries

KIND_OF = bytes(range(17)) + bytes(239)  # each kind under its own number
NAMES = {number: name for name, number in REASONS.items()}


def event(kind: str, body: bytes = b"", position: int = 0) -> bytes:
    return pack("<IBIIIH", 5, KINDS[kind], 1, 19 + len(body), position, 0) + body


def reason(data: bytes, start: int = 1, budget: int = 1 << 20) -> tuple[str, Scanner]:
    scanner = Scanner(data, start, len(data), budget, False, KIND_OF)
    return NAMES[scanner.run()], scanner


@pytest.mark.parametrize(
    ("kind", "body", "expected"),
    [
        ("refused", b"", "refused"),
        ("rows", b"", "unexpected"),
        ("table_map", bytes(12), "end"),
        ("table_map", bytes(11), "bad_body"),
        ("note", b"", "end"),
        ("xid", b"", "end"),
        ("mariadb_gtid", bytes(19), "end"),
        ("mariadb_gtid", bytes(12) + b"\x40" + bytes(6), "end"),
        ("xa_prepare", b"", "unexpected"),
        ("mysql_gtid", bytes(17) + b"\x01" + bytes(7), "end"),
        ("mysql_gtid", bytes(24), "bad_body"),
        ("mysql_gtid", bytes(25), "bad_body"),  # a transaction without a number
        ("anonymous_gtid", b"", "end"),
        ("query", bytes(14), "query"),
        ("query", bytes(13), "bad_body"),
        ("context", b"", "end"),
        ("between_groups", b"", "end"),
        ("ignorable", b"", "end"),
        ("rotate", b"", "rotate"),
        ("stop", b"", "stop"),
        ("payload", b"", "unexpected"),
    ],
)
def test_what_each_kind_does_first_in_a_walk(kind: str, body: bytes, expected: str) -> None:
    assert reason(b"\0" + event(kind, body))[0] == expected


def test_headers() -> None:
    assert reason(b"\0" + event("ignorable", position=21))[0] == "bad_position"
    assert reason(b"\0" + event("ignorable", position=20))[0] == "end"
    assert reason(b"\0" + pack("<IBIIIH", 5, 11, 1, 18, 0, 0))[0] == "bad_length"


def test_a_closed_scanner_reads_nothing() -> None:
    scanner = Scanner(b"\0" + event("ignorable"), 1, 20, 100, False, KIND_OF)
    scanner.close()
    assert NAMES[scanner.run()] == "end"


def test_ranges_outside_the_data_are_refused() -> None:
    for start, size in ((0, 0), (-1, 20), (1, 21), (21, 20)):
        with pytest.raises(ValueError, match="outside"):
            Scanner(bytes(20), start, size, 100, False, KIND_OF)
        with pytest.raises(ValueError, match="outside"):
            boundaries(bytes(20), start, size, 2, KIND_OF)
    with pytest.raises(ValueError, match="256"):
        Scanner(bytes(20), 1, 20, 100, False, b"")
    with pytest.raises(ValueError, match="256"):
        boundaries(bytes(20), 1, 20, 2, b"")


def test_many_tables_are_each_found() -> None:
    data = b"\0" + event("mariadb_gtid", bytes(19))
    names = [f"table_{number}".encode() for number in range(3000)]
    for name in (*names, *names):
        data += event("table_map", bytes(8) + b"\x01s\0" + bytes([len(name)]) + name + b"\0")
    found = reason(data + event("xid"))[1]
    assert found.tables == {(b"s", name) for name in names}


def test_bytes_at_random() -> None:
    """No read outside of the data: under a checked build (or a crash) this is where it would show."""
    source = random.Random(9)
    names = list(KINDS)
    for _ in range(3000):
        data = bytearray(b"\0")
        for _ in range(source.randrange(1, 12)):
            data += event(source.choice(names), source.randbytes(source.choice((0, 1, 8, 12, 13, 19, 25, 40))))
        for _ in range(source.randrange(3)):
            data[source.randrange(1, len(data))] = source.randrange(256)
        cut = source.randrange(1, len(data) + 1)
        _, scanner = reason(bytes(data[:cut]), budget=source.randrange(1, 300))
        assert 1 <= scanner.end <= cut
        points = boundaries(bytes(data[:cut]), 1, cut, source.randrange(1, 9), KIND_OF)
        assert points == sorted(set(points))
        assert points[0] == 1
        assert points[-1] <= cut
