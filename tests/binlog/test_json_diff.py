"""Partial updates of JSON, byte by byte as MySQL 9.7 logged them, and made up."""

from __future__ import annotations

import contextlib
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.binlog.json_diff import apply_diffs, leaves_opaque


def string(value: str) -> bytes:
    return b"\x0c" + bytes([len(value.encode())]) + value.encode()


def array(*values: bytes) -> bytes:
    """A small array of values that stand behind its header."""
    entries, rest = b"", b""
    for value in values:
        entries += value[:1] + pack("<H", 4 + 3 * len(values) + len(rest))
        rest += value[1:]
    return b"\x02" + pack("<HH", len(values), 4 + len(entries + rest)) + entries + rest


def diff(operation: int, path: str, value: bytes = b"") -> bytes:
    head = bytes([operation, len(path.encode())]) + path.encode()
    return head + (bytes([len(value)]) + value if operation != 2 else b"")


NUMBER = b"\x0b" + pack("<d", 2.5)
BEFORE = array(string("a"), NUMBER, array(string('q"\n')))
OBJECT = bytes.fromhex(  # as MySQL 9.7 stored {"a": [1, 2.5, "x\\n"], "é": 0, "b c": {"k": 1}}
    "00 0300 4300 1900 0100 1a00 0200 1c00 0300 02 1f00 05 0000 00 3700 61 c3a9 622063"
    "0300 1800 05 0100 0b 0d00 0c 1500 0000000000000440 02 780a"
    "0100 0c00 0b00 0100 05 0100 6b"
)


def test_what_mysql_logged() -> None:
    """UPDATE p SET d = JSON_SET(d, '$.a[last]', 'y', '$.zz', CAST(1.50 AS DECIMAL(5,2)), '$."b c".k', NULL)."""
    logged = (
        b"\x00\x09$.a[last]\x03\x0c\x01y"
        b"\x01\x04$.zz\x0a\x0f\xf6\x07\x0b\x02\x80\x00\x00\x012"
        b'\x00\x09$."b c".k\x02\x04\x00'
    )
    assert apply_diffs(OBJECT, b"") == '{"a": [1, 2.5, "x\\n"], "é": 0, "b c": {"k": 1}}'
    assert apply_diffs(OBJECT, logged) == '{"a": [1, 2.5, "y"], "zz": 1.50, "é": 0, "b c": {"k": null}}'


@pytest.mark.parametrize(
    ("operation", "path", "after"),
    [
        (0, "$[0]", '["N", 2.5, ["q\\"\\n"]]'),
        (0, "$[last]", '["a", 2.5, "N"]'),
        (0, "$[last-1]", '["a", "N", ["q\\"\\n"]]'),
        (0, "$[2][0]", '["a", 2.5, ["N"]]'),
        (1, "$[0]", '["N", "a", 2.5, ["q\\"\\n"]]'),
        (1, "$[99]", '["a", 2.5, ["q\\"\\n"], "N"]'),
        (1, "$[2][1]", '["a", 2.5, ["q\\"\\n", "N"]]'),
        (2, "$[1]", '["a", ["q\\"\\n"]]'),
        (2, "$[2][last]", '["a", 2.5, []]'),
    ],
)
def test_cells(operation: int, path: str, after: str) -> None:
    assert apply_diffs(BEFORE, diff(operation, path, string("N"))) == after


def test_new_members_stand_where_mysql_puts_them() -> None:
    """By the key's length in bytes, then by its bytes: é has two."""
    empty = b"\x00\x00\x00\x04\x00"
    paths = ("$.é", "$.z", '$."b\\"c"', "$.aa", "$.b", "$.é2")
    diffs = b"".join(diff(1, path, string(str(number))) for number, path in enumerate(paths))
    assert apply_diffs(empty, diffs) == '{"b": "4", "z": "1", "aa": "3", "é": "0", "b\\"c": "2", "é2": "5"}'


@pytest.mark.parametrize(
    "diffs",
    [
        b"\x03\x02$.",
        b"\x00",
        b"\x00\x05$[0]",
        b"\x00\x04$[0]\x09\x0c",
        b"\x00\xfc\x01",
        b"\x00\xfb",
        diff(0, "$", string("root")),
        diff(2, "$"),
        diff(0, "$[3]", string("beyond")),
        diff(0, "$[last-3]", string("before")),
        diff(2, "$.a"),
        diff(0, "$[0][0]", string("below a string")),
        diff(1, "$[1].a", string("below a number")),
        diff(1, "$.a", string("a member of an array")),
        diff(0, "[0]", string("no path")),
        diff(0, "$[*]", string("no path")),
        diff(0, "$[0", string("no path")),
        diff(0, "$[0]", b"\x0d"),
        b"\x02\x04$.\xff\xff",
        diff(1, '$[2]."\\x"', string("no escape")),
    ],
)
def test_what_does_not_fit_is_refused(diffs: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        apply_diffs(BEFORE, diffs)


def test_members_that_are_there_already_are_refused() -> None:
    with pytest.raises(ValueError, match="no change 1"):
        apply_diffs(b"\x00\x00\x00\x04\x00", diff(1, "$.a", string("1")) + diff(1, "$.a", string("2")))


def test_diffs_can_not_nest_without_end() -> None:
    deeper = [diff(1, "$" + "[0]" * level, array()) for level in range(1, 82)]
    assert apply_diffs(array(), b"".join(deeper)) == "[" * 82 + "]" * 82
    long = "$" + "[0]" * 100
    value = array()
    for _ in range(20):
        value = array(value)
    with pytest.raises(ValueError, match="more than 100 levels"):
        apply_diffs(array(), b"".join(deeper) + diff(1, long[: 1 + 3 * 82], value))


@given(st.binary(max_size=40), st.integers(0, 2))
def test_any_bytes_give_a_text_or_a_value_error(noise: bytes, operation: int) -> None:
    for diffs in (noise, bytes([operation]) + noise, diff(operation, "$[2]", noise[:30]) + noise):
        with contextlib.suppress(ValueError):
            assert isinstance(apply_diffs(BEFORE, diffs), str)


PRICE = b"\x0f\xf6\x07\x0b\x02\x80\x00\x00\x012"  # DECIMAL 1.50, as MySQL 9.7 logged it
PRICED = array(PRICE, NUMBER)


@pytest.mark.parametrize(
    ("before", "diffs", "left"),
    [
        (BEFORE, b"", False),
        (BEFORE, diff(0, "$[0]", PRICE), True),
        (BEFORE, diff(0, "$[2]", array(NUMBER, array(PRICE))), True),
        (BEFORE, diff(0, "$[0]", PRICE) + diff(2, "$[0]"), False),
        (PRICED, b"", True),
        (PRICED, diff(0, "$[1]", string("x")), True),
        (PRICED, diff(0, "$[0]", string("NaN")), False),
        (PRICED, diff(2, "$[0]"), False),
        (OBJECT, diff(1, "$.zz", PRICE), True),
        (array(string("\x0f")), diff(0, "$[0]", string("\x0f")), False),
    ],
)
def test_what_diffs_leave_of_values_of_types_that_json_lacks(before: bytes, diffs: bytes, left: bool) -> None:
    apply_diffs(before, diffs)
    assert leaves_opaque(before, diffs) is left
