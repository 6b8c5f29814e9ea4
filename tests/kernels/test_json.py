"""Binary JSON by hand, byte by byte, and the text that MySQL prints for it."""

from __future__ import annotations

from struct import pack

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.kernels.json import to_text


def text(document: bytes) -> str | None:
    found: list[str | None] = to_text(pa.array([document], pa.binary())).to_pylist()
    assert len(found) == 1
    return found[0]


def string(value: bytes) -> bytes:
    """A string's value: its length, seven bits a byte, then its bytes."""
    length, sized = len(value), b""
    while length > 127:
        sized += bytes([length & 127 | 128])
        length >>= 7
    return sized + bytes([length]) + value


def opaque(kind: int, value: bytes) -> bytes:
    return b"\x0f" + bytes([kind]) + string(value)


def container(values: list[bytes], keys: list[bytes] | None = None, *, large: bool = False) -> bytes:
    """A container, its type byte first, of documents; every value lies behind the header, none in its entry."""
    number = "<I" if large else "<H"
    width = 4 if large else 2
    header = 2 * width + len(values) * (1 + width + (2 + width if keys is not None else 0))
    key_entries, value_entries, rest = b"", b"", b""
    for key in keys or []:
        key_entries += pack(number, header + len(rest)) + pack("<H", len(key))
        rest += key
    for value in values:
        value_entries += value[:1] + pack(number, header + len(rest))
        rest += value[1:]
    kind = (0 if keys is not None else 2) + large
    body = key_entries + value_entries + rest
    return bytes([kind]) + pack(number, len(values)) + pack(number, 2 * width + len(body)) + body


DATETIME = ((2024 * 13 + 2) << 5 | 29) << 17 | 12 << 12 | 34 << 6 | 56
TIME = 838 << 12 | 59 << 6 | 59

SCALARS = {
    b"": "null",  # INSERT IGNORE of NULL into a NOT NULL column leaves nothing
    b"\x04\x00": "null",
    b"\x04\x01": "true",
    b"\x04\x02": "false",
    b"\x05\xff\x7f": "32767",
    b"\x05\x00\x80": "-32768",
    b"\x06\xff\xff": "65535",
    b"\x07\x00\x00\x00\x80": "-2147483648",
    b"\x08\xff\xff\xff\xff": "4294967295",
    b"\x09" + pack("<q", -(2**63)): "-9223372036854775808",
    b"\x0a" + b"\xff" * 8: "18446744073709551615",
    b"\x0c\x00": '""',
    b'\x0c\x05a"\\/\x7f': '"a\\"\\\\/\x7f"',
    b"\x0c\x08\x00\x01\x1f\x08\x09\x0a\x0c\x0d": '"\\u0000\\u0001\\u001f\\b\\t\\n\\f\\r"',
    b"\x0c" + string("漢😀".encode() * 40): '"' + "漢😀" * 40 + '"',
    opaque(246, bytes.fromhex("0402 8132")): "1.50",
    opaque(246, bytes.fromhex("0402 7ecd")): "-1.50",
    opaque(10, pack("<q", DATETIME >> 17 << 41)): '"2024-02-29"',
    opaque(12, pack("<q", DATETIME << 24 | 500000)): '"2024-02-29 12:34:56.500000"',
    opaque(7, pack("<q", DATETIME << 24)): '"2024-02-29 12:34:56.000000"',
    opaque(11, pack("<q", -(TIME << 24 | 123456))): '"-838:59:59.123456"',
    opaque(11, pack("<q", 0)): '"00:00:00.000000"',
    opaque(12, pack("<q", 0)): '"0000-00-00 00:00:00.000000"',
    opaque(15, b""): '"base64:type15:"',
    opaque(252, b"\x00\xff"): '"base64:type252:AP8="',
    opaque(16, b"\x05\x06\x07"): '"base64:type16:BQYH"',
    opaque(253, b"as text\n"): '"as text\\n"',
    opaque(15, b"\xff" * 57): '"base64:type15:' + "/" * 76 + '"',
    opaque(15, b"\xff" * 58): '"base64:type15:' + "/" * 76 + '\\n/w=="',
}


@pytest.mark.parametrize(("document", "expected"), SCALARS.items(), ids=lambda value: repr(value)[:40])
def test_scalars(document: bytes, expected: str) -> None:
    assert text(document) == expected


DOUBLES = {
    1.0: "1.0",
    -0.0: "-0.0",
    0.1: "0.1",
    -123.456: "-123.456",
    1e14: "100000000000000.0",
    1e15: "1e15",
    123456789012345.0: "123456789012345.0",
    1234567890123456.0: "1.234567890123456e15",
    1234567890123456.8: "1234567890123456.8",
    1e100: "1e100",
    1.5e-5: "0.000015",
    1.5e-15: "0.0000000000000015",
    1.5e-16: "1.5e-16",
    1.2345678901234567e-5: "0.000012345678901234568",
    1.7976931348623157e308: "1.7976931348623157e308",
    5e-324: "5e-324",
}


@pytest.mark.parametrize(("value", "expected"), DOUBLES.items())
def test_doubles(value: float, expected: str) -> None:
    assert text(b"\x0b" + pack("<d", value)) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_reads_back(value: float) -> None:
    found = text(b"\x0b" + pack("<d", value))
    assert found is not None
    assert pack("<d", float(found)) == pack("<d", value)
    assert "." in found or "e" in found


@pytest.mark.parametrize("large", [False, True])
def test_containers(large: bool) -> None:
    inner = container([b"\x0c\x01x", b"\x0a" + b"\x01" + bytes(7)], large=large)
    document = container([inner, container([], [], large=large), b"\x0c\x01y"], [b"a", b"", b'q"'], large=large)
    assert text(document) == '{"a": ["x", 1], "": {}, "q\\"": "y"}'
    assert text(container([], large=large)) == "[]"


def test_values_in_their_entries() -> None:
    small = b"\x02" + pack("<HH", 3, 13) + b"\x04\x01\x00" + b"\x05\xfe\xff" + b"\x06\xff\xff"
    assert text(small) == "[true, -2, 65535]"
    large = b"\x03" + pack("<II", 3, 23) + b"\x05\xff\xff\x00\x00" + b"\x07\xff\xff\xff\xff" + b"\x08\xff\xff\xff\xff"
    assert text(large) == "[-1, -1, 4294967295]"


def test_a_hundred_levels_and_no_more() -> None:
    document = b"\x0c\x01x"
    for _ in range(100):
        document = container([document])
    assert text(document) == "[" * 100 + '"x"' + "]" * 100
    with pytest.raises(ValueError, match="row 0 is no binary JSON"):
        text(container([document]))


def test_values_that_share_bytes_are_refused() -> None:
    """A hundred bytes would else unfold to as many values as there are paths."""
    shared = b"\x0c\x01x"
    for _ in range(3):
        shared = container([shared, shared])
    assert text(shared) is not None
    folded = b"\x01x"
    kind = 0x0C
    for _ in range(3):  # both entries point at the one value behind them
        size = 10 + len(folded)
        folded = pack("<HH", 2, size) + 2 * (bytes([kind]) + pack("<H", 10)) + folded
        kind = 2
    with pytest.raises(ValueError, match="no binary JSON"):
        text(b"\x02" + folded)


BAD = {
    "unknown type": b"\x0d\x00",
    "unknown literal": b"\x04\x03",
    "cut number": b"\x0a\x01",
    "not a number": b"\x0b" + pack("<d", float("nan")),
    "endless length": b"\x0c" + b"\xff" * 9,
    "string beyond the end": b"\x0c\x05abc",
    "opaque without a type": b"\x0f",
    "opaque date of seven bytes": opaque(10, bytes(7)),
    "60 seconds": opaque(12, pack("<q", (DATETIME + 4) << 24)),
    "a negative date": opaque(12, pack("<q", -1)),
    "the most negative time": opaque(11, pack("<q", -(2**63))),
    "839 hours": opaque(11, pack("<q", 839 << 36)),
    "a million microseconds": opaque(11, pack("<q", 1000000)),
    "decimal of no digits": opaque(246, b"\x00\x00"),
    "decimal cut": opaque(246, b"\x04\x02\x81"),
    "decimal of 82 digits": opaque(246, b"\x52\x00" + bytes(40)),
    "container without a size": b"\x02\x01\x00",
    "more entries than bytes": b"\x02" + pack("<HH", 2, 7) + bytes(3),
    "larger than the document": b"\x02" + pack("<HH", 0, 5),
    "value before the header's end": b"\x02" + pack("<HH", 1, 9) + b"\x0c" + pack("<H", 0) + b"\x01x",
    "value behind the container": b"\x02" + pack("<HH", 1, 7) + b"\x0c" + pack("<H", 7) + b"\x01x",
    "key behind the container": b"\x00" + pack("<HH", 1, 12) + pack("<HH", 11, 2) + b"\x04\x00\x00" + b"k",
}


@pytest.mark.parametrize("document", BAD.values(), ids=BAD.keys())
def test_what_is_no_document(document: bytes) -> None:
    with pytest.raises(ValueError, match="row 1 is no binary JSON"):
        to_text(pa.array([b"", document], pa.binary()))


def test_whole_arrays_with_nulls_and_slices() -> None:
    documents = pa.array([b"\x04\x01", None, b"", b"\x05\x07\x00", None], pa.binary())
    assert to_text(documents).to_pylist() == ["true", None, "null", "7", None]
    assert to_text(documents[1:4]).to_pylist() == [None, "null", "7"]
    assert to_text(documents[:0]).to_pylist() == []
    with pytest.raises(TypeError):
        to_text(pa.array(["{}"]))


OPAQUE = {
    opaque(246, bytes.fromhex("0402 8132")): True,
    opaque(10, pack("<q", DATETIME >> 17 << 41)): True,
    opaque(11, bytes(8)): True,
    opaque(7, bytes(8)): True,
    opaque(12, bytes(8)): True,
    opaque(15, b"x"): True,
    opaque(253, b"as text"): False,
    b"\x0c\x03NaN": False,
    b"\x0b" + pack("<d", 1.5): False,
    b"": False,
}


@pytest.mark.parametrize("nested", [False, True])
def test_which_documents_hold_values_of_types_that_json_lacks(nested: bool) -> None:
    documents = [container([b"\x05\x01\x00", one]) if nested and one else one for one in OPAQUE]
    array = pa.array([None, *documents], pa.binary())
    found: list[int] = []
    assert to_text(array, found) == to_text(array)
    assert found == [row for row, is_opaque in enumerate(OPAQUE.values(), 1) if is_opaque]


def test_hidden_values_are_nan() -> None:
    document = container([opaque(246, bytes.fromhex("0402 8132")), opaque(253, b"x"), opaque(11, bytes(8))])
    assert to_text(pa.array([document], pa.binary()), hidden=True).to_pylist() == ['[NaN, "x", NaN]']
