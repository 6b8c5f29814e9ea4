"""The VALUES list of an INSERT as the rows of a bulk statement, read back by an independent reader."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.kernels.bulk_rows import bulk_rows
from unshard.kernels.literals import render

LONGLONG, UNSIGNED, DOUBLE, NEWDECIMAL, BLOB, VAR_STRING = 8, 0x8008, 5, 246, 252, 253
WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def read(types: bytes, rows: bytes, number: int) -> list[tuple[object, ...]]:
    """The rows as a server reads them."""
    kinds = [kind for (kind,) in struct.iter_unpack("<H", types)]
    found, at = [], 0
    for _ in range(number):
        row: list[object] = []
        for kind in kinds:
            null, at = rows[at], at + 1
            if null:
                assert null == 1
                row.append(None)
            elif kind in (LONGLONG, UNSIGNED, DOUBLE):
                form = {LONGLONG: "<q", UNSIGNED: "<Q", DOUBLE: "<d"}[kind]
                row += struct.unpack_from(form, rows, at)
                at += 8
            else:
                width = WIDTHS.get(rows[at], 0)
                size = int.from_bytes(rows[at + 1 : at + 1 + width], "little") if width else rows[at]
                at += 1 + width
                row.append(rows[at : at + size])
                at += size
        found.append(tuple(row))
    assert at == len(rows)
    return found


def converted(text: str, columns: int = 1) -> tuple[list[int], list[tuple[object, ...]]] | None:
    whole = f"head{text}tail".encode()
    found = bulk_rows(whole, 4, len(whole) - 4, columns)
    if found is None:
        return None
    return [kind for (kind,) in struct.iter_unpack("<H", found[0])], read(*found)


@pytest.mark.parametrize(
    ("text", "kind", "values"),
    [
        ("(1),(-1),(NULL)", LONGLONG, [1, -1, None]),
        ("(9223372036854775807),(-9223372036854775808)", LONGLONG, [2**63 - 1, -(2**63)]),
        ("(18446744073709551615),(0)", UNSIGNED, [2**64 - 1, 0]),
        ("(18446744073709551615),(-1)", NEWDECIMAL, [b"18446744073709551615", b"-1"]),
        ("(18446744073709551616)", NEWDECIMAL, [b"18446744073709551616"]),
        ("(-9223372036854775809)", NEWDECIMAL, [b"-9223372036854775809"]),
        ("(1.50),(-2),(NULL)", NEWDECIMAL, [b"1.50", b"-2", None]),
        ("(1.5),(2),(-0e0),(1e-300),(2.5E+7)", DOUBLE, [1.5, 2.0, -0.0, 1e-300, 2.5e7]),
        ("(NULL),(NULL)", VAR_STRING, [None, None]),
        ("('a,(b'),(''),('ä')", VAR_STRING, [b"a,(b", b"", "ä".encode()]),
        (r"""('\0\n\r\Z\"\'\\x'),('\\')""", VAR_STRING, [b"\0\n\r\x1a\"'\\x", b"\\"]),
        ("(x'00fF'),(x'')", BLOB, [b"\x00\xff", b""]),
    ],
)
def test_a_column_has_one_type(text: str, kind: int, values: list[object]) -> None:
    found = converted(text)
    assert found is not None
    assert found[0] == [kind]
    assert [str(value) for (value,) in found[1]] == [str(value) for value in values]


@pytest.mark.parametrize("size", [0, 250, 251, 65535, 65536, 2**24 - 1, 2**24])
def test_a_long_value(size: int) -> None:
    found = converted(f"('{'x' * size}',1),(x'{'ab' * 3}',2)".replace("x'ababab'", "''"), 2)
    assert found == ([VAR_STRING, LONGLONG], [(b"x" * size, 1), (b"", 2)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(1),",
        "(1)(2)",
        "(1",
        "1",
        "(1,2)",
        "()",
        "(1) ,(2)",
        "('a'),(1)",
        "('a'),(x'00')",
        "(x'00'),(1)",
        "(x'0')",
        "(x00)",
        "('a)",
        "('a\\')",
        "('a''b')",
        "(CAST('{}' AS JSON))",
        "(NUL)",
        "(-)",
        "(1e)",
        "(1.)",
        "(1e5.5)",
        "(1-2)",
        f"({'9' * 61})",
    ],
)
def test_what_must_go_as_text(text: str) -> None:
    assert converted(text) is None


VALUES = st.one_of(
    st.tuples(st.just(pa.int64()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5)),
    st.tuples(st.just(pa.uint64()), st.lists(st.none() | st.integers(0, 2**64 - 1), min_size=1, max_size=5)),
    st.tuples(
        st.just(pa.float64()),
        st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    ),
    st.tuples(st.just(pa.string()), st.lists(st.none() | st.text(), min_size=1, max_size=5)),
    st.tuples(st.just(pa.binary()), st.lists(st.none() | st.binary(), min_size=1, max_size=5)),
)


def value_of(told: object, kind: pa.DataType) -> object:
    """The value that a server takes from a parameter for a column of this type."""
    if told is None or kind == pa.binary():
        return told
    if kind == pa.string():
        assert isinstance(told, bytes)
        return told.decode()
    text = told.decode() if isinstance(told, bytes) else repr(told)
    return float(text) if kind == pa.float64() else int(text)


@given(VALUES)
def test_what_is_rendered_arrives(column: tuple[pa.DataType, list[object]]) -> None:
    kind, values = column
    array = pa.array(values, kind)
    lines = render([array, pa.array(range(len(array)))], [b"(", b","], b"),")
    text = b"".join(lines.to_pylist())
    found = bulk_rows(text, 0, len(text) - 1, 2)
    assert found is not None
    got = read(*found)
    assert [row[1] for row in got] == list(range(len(array)))
    assert [repr(value_of(row[0], kind)) for row in got] == [repr(value) for value in array.to_pylist()]
