"""Rows read off a socket, from literal packets; no server."""

from __future__ import annotations

import itertools
import random
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.kernels.result_rows import BROKEN, END, ERROR, LOST, ROWS, SILENT, ResultRows

Row = Sequence[bytes | None]
EOF = b"\xfe\0\0\2\0"
OK = b"\xfe\0\0\2\0\0\0"
LARGEST = (1 << 24) - 1
PATIENT, IMPATIENT = 60_000, 50


def packets(payloads: Sequence[bytes]) -> bytes:
    """The bytes of an answer; a payload that fills a packet is continued in the next one."""
    out, number = [], 1
    for payload in payloads:
        while True:
            part, payload = payload[:LARGEST], payload[LARGEST:]
            out.append(len(part).to_bytes(3, "little") + bytes([number % 256]) + part)
            number += 1
            if len(part) < LARGEST:
                break
    return b"".join(out)


def length(size: int) -> bytes:
    for limit, mark, width in ((251, b"", 1), (1 << 16, b"\xfc", 2), (1 << 24, b"\xfd", 3)):
        if size < limit:
            return mark + size.to_bytes(width, "little")
    return b"\xfe" + size.to_bytes(8, "little")


def row(values: Row) -> bytes:
    return b"".join(b"\xfb" if value is None else length(len(value)) + value for value in values)


def answer(
    columns: int, rows: Sequence[Row], *, middle: bool = True, end: bytes = EOF, head: bytes = b""
) -> list[bytes]:
    """The payloads of an answer. `middle`: an EOF stands behind the definitions, as in most sessions."""
    count = bytes([columns]) if columns < 251 else b"\xfc" + columns.to_bytes(2, "little")
    definitions = [b"\3def" + bytes(20)] * columns
    return [head or count, *definitions, *([EOF] if middle else []), *map(row, rows), end]


@contextmanager
def served(data: bytes, *, cuts: Sequence[int] = (), closed: bool = True) -> Iterator[int]:
    """A descriptor from which the data comes, in pieces that end at the cuts."""
    ours, theirs = socket.socketpair()

    def send() -> None:
        places = [0, *sorted(cuts), len(data)]
        try:
            for begin, end in itertools.pairwise(places):
                theirs.sendall(data[begin:end])
            if closed:
                theirs.close()
        except OSError:  # nobody reads any more
            pass

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield ours.fileno()
    finally:
        ours.close()
        thread.join()
        theirs.close()


def taken(reader: ResultRows) -> list[Row]:
    rows, columns = reader.take()
    lists = [
        pa.Array.from_buffers(pa.binary(), rows, [validity, offsets, data], nulls).to_pylist()
        for data, offsets, validity, nulls in columns
    ]
    return list(zip(*lists, strict=True))


def read(descriptor: int, columns: int, rows: int = 3, size: int = 1 << 30) -> tuple[int, list[list[Row]]]:
    """The reason of the end, and the batches."""
    reader = ResultRows(descriptor, columns, PATIENT)
    found = []
    while (reason := reader.read(rows, size)) == ROWS:
        found.append(taken(reader))
    found.append(taken(reader))
    return reason, [batch for batch in found if batch]


values = st.one_of(st.none(), st.binary(max_size=300), st.just(b"\xfe" * 5), st.just(b""))


@given(st.integers(1, 4), st.booleans(), st.booleans(), st.data())
def test_any_rows_in_any_pieces(columns: int, middle: bool, told: bool, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.lists(values, min_size=columns, max_size=columns).map(tuple), max_size=9))
    head = bytes([columns, 1]) if told else b""
    stream = packets(answer(columns, rows, middle=middle, end=EOF if middle else OK, head=head))
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=4))
    with served(stream, cuts=cuts) as descriptor:
        reason, batches = read(descriptor, columns)
    assert reason == END
    assert [one for batch in batches for one in batch] == rows
    assert all(len(batch) == 3 for batch in batches[:-1])


@pytest.mark.parametrize(
    "size", [250, 251, 65_535, 65_536, LARGEST - 5, LARGEST - 4, LARGEST, LARGEST + 1, 2 * LARGEST]
)
def test_a_value_of_any_length(size: int) -> None:
    """A packet that is full is continued, by an empty one if need be."""
    value = random.Random(size).randbytes(size)
    rows: list[Row] = [(b"before", None), (value, b"x"), (b"behind", value[:10])]
    with served(packets(answer(2, rows))) as descriptor:
        reason, batches = read(descriptor, 2)
    assert (reason, batches) == (END, [rows])


def test_more_than_250_columns() -> None:
    rows: list[Row] = [tuple(b"%d" % number for number in range(300))]
    with served(packets(answer(300, rows))) as descriptor:
        assert read(descriptor, 300) == (END, [rows])


def test_a_batch_ends_with_its_size() -> None:
    rows: list[Row] = [(b"x" * 100,)] * 5
    with served(packets(answer(1, rows))) as descriptor:
        reason, batches = read(descriptor, 1, rows=100, size=150)
    assert (reason, [len(batch) for batch in batches]) == (END, [2, 2, 1])


@pytest.mark.parametrize("behind", [0, 1, 4, 5])
def test_an_error_in_any_place(behind: int) -> None:
    error = b"\xff\x15\x04#28000Access denied"
    stream = packets([*answer(2, [(b"1", b"2")] * 3)[:behind], error])
    with served(stream) as descriptor:
        reader = ResultRows(descriptor, 2, PATIENT)
        assert reader.read(10, 1 << 20) == ERROR
        assert reader.error() == error


@pytest.mark.parametrize(
    "payloads",
    [
        [b"\0\0\0\2\0\0\0"],
        [b"\3"],
        [b"\2\0"],
        [b""],
        [*answer(2, [])[:4], b"\1a"],
        [*answer(2, [])[:4], b"\1a\1b\1c"],
        [*answer(2, [])[:4], b"\5a\1b"],
        [*answer(2, [])[:4], b"\xfc\1"],
        [*answer(2, [])[:4], b"\1a\xfe" + b"\xff" * 8],
    ],
    ids=["an OK", "other columns", "no definitions", "nothing", "too few", "too many", "cut", "cut length", "negative"],
)
def test_what_is_no_result(payloads: list[bytes]) -> None:
    with served(packets(payloads)) as descriptor:
        assert read(descriptor, 2) == (BROKEN, [])


def test_a_server_that_closes_or_is_silent() -> None:
    stream = packets(answer(1, [(b"1",), (b"2",)]))
    for size in (0, 3, 10, len(stream) - 1):
        with served(stream[:size]) as descriptor:
            assert read(descriptor, 1)[0] == LOST
    with served(stream[:-1], closed=False) as descriptor:
        assert ResultRows(descriptor, 1, IMPATIENT).read(10, 1 << 20) == SILENT


def test_what_comes_behind_the_answer_is_not_taken() -> None:
    """Nothing comes before the next query; so the socket is as the driver left it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for number in range(3):
            theirs.sendall(packets(answer(1, [(b"%d" % number,)])))
            assert read(ours.fileno(), 1) == (END, [[(b"%d" % number,)]])
