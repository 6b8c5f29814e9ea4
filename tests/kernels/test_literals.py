"""SQL text of Arrow columns, read back by an independent reader."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unshard.kernels.literals import hash_of, partition_of, range_partition_of, render

FIXED = [
    16294208416658607535,
    3065135395110411003,
    2856976976383962392,
    11088698779006425053,
    7939471862332573364,
    16490336266968443936,
    10905525725756348110,
]
ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "Z": "\x1a", "'": "'", '"': '"', "\\": "\\"}


def literals(column: pa.Array, *, bare: bool = False) -> list[str]:
    return [text.as_py().decode() for text in render([column], [b""], b"", [bare])]


def unquote(literal: str) -> str:
    """As a server reads a quoted string; the quote must end exactly at the end."""
    assert literal[0] == "'"
    found, at = "", 1
    while literal[at] != "'":
        if literal[at] == "\\":
            at += 1
            found += ESCAPES[literal[at]]
        else:
            assert literal[at] not in '\0\n\r\x1a"'
            found += literal[at]
        at += 1
    assert at == len(literal) - 1
    return found


def test_rows_lie_one_behind_the_other() -> None:
    found = render(
        [pa.array([1, None, -3]), pa.array(["a", "b'", None]), pa.array(["1.50", None, "-0.01"])],
        [b"(", b",", b","],
        b"),",
        [False, False, True],
    )
    assert found.type == pa.binary()
    assert found.null_count == 0
    assert found.buffers()[2].to_pybytes() == rb"(1,'a',1.50),(NULL,'b\'',NULL),(-3,NULL,-0.01),"
    assert found.to_pylist() == [b"(1,'a',1.50),", b"(NULL,'b\\'',NULL),", b"(-3,NULL,-0.01),"]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_signed_extremes(kind: pa.DataType) -> None:
    top = 2 ** (kind.bit_width - 1)
    values = [-top, -1, 0, 1, 9, 10, top - 1, None]
    assert literals(pa.array(values, kind)) == ["NULL" if value is None else str(value) for value in values]


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()])
def test_unsigned_extremes(kind: pa.DataType) -> None:
    values = [0, 1, 99, 100, 2**kind.bit_width - 1]
    assert literals(pa.array(values, kind)) == [str(value) for value in values]


@given(st.lists(st.none() | st.text(), max_size=20))
def test_strings_read_back(values: list[str | None]) -> None:
    found = literals(pa.array(values, pa.string()))
    assert [None if text == "NULL" else unquote(text) for text in found] == values


@given(st.lists(st.text(alphabet="ab'\"\\\0\n\r\x1a%_é", max_size=40), max_size=10))
def test_strings_full_of_escapes_read_back(values: list[str]) -> None:
    assert [unquote(text) for text in literals(pa.array(values, pa.string()))] == values


@given(st.lists(st.none() | st.binary(max_size=40), max_size=20))
def test_bytes_read_back(values: list[bytes | None]) -> None:
    found = literals(pa.array(values, pa.binary()))
    assert [None if text == "NULL" else bytes.fromhex(text[2:-1]) for text in found] == values
    assert all(text == "NULL" or text[:2] + text[-1:] == "x''" for text in found)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_doubles_read_back_bit_for_bit(values: list[float]) -> None:
    found = literals(pa.array(values, pa.float64()))
    assert [struct.pack("<d", float(text)) for text in found] == [struct.pack("<d", value) for value in values]
    assert all("e" in text for text in found)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32)))
def test_floats_read_back_bit_for_bit_in_few_digits(values: list[float]) -> None:
    found = literals(pa.array(values, pa.float32()))
    assert [struct.pack("<f", float(text)) for text in found] == [struct.pack("<f", value) for value in values]
    short = [text for text, value in zip(found, values, strict=True) if abs(value) < 3.4028234e38]
    assert all(sum(letter.isdigit() for letter in text.split("e")[0].lstrip("-0.")) <= 9 for text in short)


def test_the_largest_float_is_not_rounded_beyond_itself() -> None:
    largest = 3.4028234663852886e38
    found = literals(pa.array([largest, -largest, 3.4028230607370965e38], pa.float32()))
    assert found == ["3.4028234663852886e+38", "-3.4028234663852886e+38", "3.402823e+38"]


def test_floats_are_short() -> None:
    assert literals(pa.array([0.1, -0.0, 16777216.0, 1e-7], pa.float32())) == ["0.1e0", "-0e0", "16777216e0", "1e-07"]
    assert literals(pa.array([0.1, 1e300], pa.float64())) == ["0.1e0", "1e+300"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_what_no_column_holds_is_refused(value: float, kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match="not a number"):
        render([pa.array([1.0, value], kind)], [b""], b"", [False])


@given(st.data())
@settings(max_examples=60)
def test_slices(data: st.DataObject) -> None:
    """A slice gives what a copy of it gives: offsets into values and into the validity bits."""
    size = data.draw(st.integers(0, 40))
    whole = [
        pa.array(data.draw(st.lists(st.none() | st.integers(-9, 9), min_size=size, max_size=size)), pa.int64()),
        pa.array(data.draw(st.lists(st.none() | st.text(max_size=3), min_size=size, max_size=size)), pa.string()),
        pa.array(data.draw(st.lists(st.none() | st.binary(max_size=3), min_size=size, max_size=size)), pa.binary()),
        pa.array([1.5] * size, pa.float32()),
        pa.nulls(size),
    ]
    start = data.draw(st.integers(0, size))
    length = data.draw(st.integers(0, size - start))
    prefixes = [b"(", b",", b",", b",", b","]
    slices = [column.slice(start, length) for column in whole]
    copies = [pa.array(column.to_pylist(), column.type) for column in slices]
    expected = render(whole, prefixes, b")", None).to_pylist()[start : start + length]
    assert render(slices, prefixes, b")", None).to_pylist() == expected
    assert render(copies, prefixes, b")", None).to_pylist() == expected


def test_no_rows() -> None:
    found = render([pa.array([], pa.int64()), pa.array([], pa.string())], [b"(", b","], b")", None)
    assert (len(found), found.type) == (0, pa.binary())


def test_wrong_calls() -> None:
    numbers = pa.array([1])
    with pytest.raises(ValueError, match="one prefix, and one `bare`"):
        render([numbers], [], b"", None)
    with pytest.raises(ValueError, match="one prefix, and one `bare`"):
        render([numbers], [b""], b"", [])
    with pytest.raises(ValueError, match="columns of different lengths"):
        render([numbers, pa.array([1, 2])], [b"", b""], b"", None)
    with pytest.raises(TypeError, match="bool"):
        render([pa.array([True])], [b""], b"", None)


def test_the_hash_never_changes() -> None:
    """Plans written by one release are run again by the next: these figures are for ever."""
    keys = pa.array([b"", b"1,", b"12345678", b"123456789", b"'a'" * 20, b"\0", b"\0\0"], pa.binary())
    assert hash_of(keys).tolist() == FIXED
    assert partition_of(keys, 7).tolist() == [value % 7 for value in FIXED]
    assert partition_of(keys, 7).dtype == np.int32


@given(st.lists(st.binary(max_size=30), min_size=1), st.integers(1, 1000))
def test_partitions_depend_on_the_key_alone(keys: list[bytes], partitions: int) -> None:
    whole = pa.array([b"before", *keys, b"after"], pa.binary())
    found = partition_of(whole, partitions)
    assert found.min() >= 0
    assert found.max() < partitions
    assert partition_of(whole.slice(1, len(keys)), partitions).tolist() == found[1:-1].tolist()
    assert [partition_of(pa.array([key], pa.binary()), partitions)[0] for key in keys] == found[1:-1].tolist()


def test_partitions_are_even() -> None:
    keys = render([pa.array(range(100_000))], [b""], b",", None)
    for partitions in (2, 7, 16, 64):
        counts = np.bincount(partition_of(keys, partitions), minlength=partitions)
        assert counts.min() > 0.9 * counts.mean()
        assert counts.max() < 1.1 * counts.mean()


def test_ranges_of_keys_are_dealt_in_turn() -> None:
    keys = render([pa.array(range(995, 5005))], [b""], b",", None)
    found = range_partition_of(keys, 4, 1, 3)
    assert found.dtype == np.int32
    assert found.tolist() == [number // 1000 % 4 for number in range(995, 5005)]
    assert range_partition_of(keys, 4, 1, 0).tolist() == [number % 4 for number in range(995, 5005)]


def test_partitions_by_range_never_change() -> None:
    """As those by hash: plans written by one release are run again by the next."""
    texts = [b"7,", b"1234,", b"-1234,", b"18446744073709551615,", b"(`a`='x9' AND `b`=12345) OR ", b","]
    tails = [5 if text.endswith(b" OR ") else 1 for text in texts]
    found = [
        int(range_partition_of(pa.array([text], pa.binary()), 7, tail, 2)[0])
        for text, tail in zip(texts, tails, strict=True)
    ]
    signs = [int(hash_of(pa.array([text], pa.binary()))[0]) for text in (b"-", b"(`a`='x9' AND `b`=")]
    assert found == [0, 12 % 7, (signs[0] + 12) % 2**64 % 7, 184467440737095516 % 7, (signs[1] + 123) % 2**64 % 7, 0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(1, 1000), st.integers(0, 20))
def test_partitions_by_range_depend_on_the_key_alone(numbers: list[int], partitions: int, digits: int) -> None:
    keys = render([pa.array([0, *numbers, 1], pa.int64())], [b""], b",", None)
    found = range_partition_of(keys, partitions, 1, digits)
    assert found.min() >= 0
    assert found.max() < partitions
    inner = keys.slice(1, len(numbers))
    assert range_partition_of(inner, partitions, 1, digits).tolist() == found[1:-1].tolist()
    one_by_one = [range_partition_of(inner.slice(at, 1), partitions, 1, digits)[0] for at in range(len(numbers))]
    assert one_by_one == found[1:-1].tolist()


def test_keys_are_never_null() -> None:
    keys = pa.array([b"a", None], pa.binary())
    with pytest.raises(TypeError):
        partition_of(keys, 2)
    with pytest.raises(TypeError):
        range_partition_of(keys, 2, 1, 3)
