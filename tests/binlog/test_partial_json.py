"""PARTIAL_UPDATE_ROWS: value options before the image after, and documents that are differences."""

from __future__ import annotations

from struct import pack

import pytest
from made_events import File, take
from row_images import decode, int_column, map_table, table_of

from unshard.binlog.images import Present
from unshard.errors import BinlogError
from unshard.model.change import Op
from unshard.model.table import Column

LONG, JSON = 3, 245
DOCUMENT = Column("j", "json", "json")
TABLE = table_of(int_column("id"), DOCUMENT, Column("k", "json", "json"))
HEAD = pack("<IHH", 1, 0, 1) + b"\x02\x00"  # no extra data
FULL = b"\x03\xff\xff"  # three columns, all present before and after
SEVEN = b"\x05\x07\x00"  # binary JSON: int16, 7
# a small array (2): one member, 7 bytes, entry: int16 9
ARRAY = b"\x02\x01\x00\x07\x00\x05\x09\x00"
# replace (0) at `$[0]` by int16 8
DIFF = b"\x00\x04$[0]\x03\x05\x08\x00"


def document(value: bytes) -> bytes:
    return pack("<I", len(value)) + value


def image(number: int, *documents: bytes | None) -> bytes:
    nulls = sum(1 << place for place, value in enumerate(documents, 1) if value is None)
    return bytes([nulls]) + pack("<i", number) + b"".join(document(value) for value in documents if value is not None)


def event(body: bytes, columns: bytes = FULL) -> File:
    file = File()
    map_table(file, [LONG, JSON, JSON], b"\x04\x04")
    file.event(39, HEAD + columns + body)
    return file


def rows_of(file: File) -> list[tuple[object, ...]]:
    ((_, batch),) = decode(file, lambda table_map, offset: TABLE)
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def code_of(file: File) -> str:
    with pytest.raises(BinlogError) as caught:
        decode(file, lambda table_map, offset: TABLE)
    assert caught.value.where.table == "s.t"
    return caught.value.code


def test_without_options_documents_are_whole() -> None:
    before, after = image(1, SEVEN, None), image(1, ARRAY, SEVEN)
    assert rows_of(event(before + b"\x00" + after)) == [
        (Op.UPDATE_BEFORE, 0, 1, "7", None),
        (Op.UPDATE_AFTER, 0, 1, "[9]", "7"),
    ]


def test_the_bitmap_tells_which_documents_are_diffs() -> None:
    """A bit for each JSON column of the table; each row has its own."""
    first = image(1, ARRAY, SEVEN) + b"\x01\x01" + image(1, DIFF, ARRAY)
    second = image(2, SEVEN, ARRAY) + b"\x01\x02" + image(2, None, DIFF)
    third = image(3, ARRAY, ARRAY) + b"\x01\x03" + image(3, DIFF, DIFF + DIFF)
    fourth = image(4, ARRAY, ARRAY) + b"\x01\x01" + image(4, b"", None)
    assert [row[2:] for row in rows_of(event(first + second + third + fourth))][1::2] == [
        (1, "[8]", "[9]"),
        (2, None, "[8]"),
        (3, "[8]", "[8]"),
        (4, "[9]", None),
    ]


def test_whole_and_partial_events_have_one_order() -> None:
    file = event(image(1, ARRAY, None) + b"\x01\x01" + image(1, DIFF, None))
    file.event(30, HEAD + b"\x03\xff" + image(2, SEVEN, SEVEN))
    found = decode(file, lambda table_map, offset: TABLE)
    assert sorted(batch.column(1).to_pylist() for _, batch in found) == [[0, 0], [1]]
    assert found.changes == 2


@pytest.mark.parametrize(
    "body",
    [
        image(1, SEVEN, SEVEN),  # no options
        image(1, SEVEN, SEVEN) + b"\x01",  # no bitmap
        image(1, SEVEN, SEVEN) + b"\x02" + image(1, SEVEN, SEVEN),  # an option that is not known
        image(1, SEVEN, SEVEN) + b"\x01\x01" + image(1, DIFF, SEVEN)[:-1],
    ],
)
def test_broken_images(body: bytes) -> None:
    assert code_of(event(body)) in ("BINLOG-021", "BINLOG-023")


@pytest.mark.parametrize(
    ("before", "diffs"),
    [(None, DIFF), (SEVEN, DIFF), (ARRAY, DIFF[:-1]), (ARRAY, b"\x07" + DIFF[1:]), (b"\xff", DIFF)],
)
def test_diffs_that_do_not_fit(before: bytes | None, diffs: bytes) -> None:
    assert code_of(event(image(1, before, None) + b"\x01\x01" + image(1, diffs, None))) == "BINLOG-021"


def test_a_change_without_its_document_stops() -> None:
    """With binlog_row_image=MINIMAL the image before holds the key alone."""
    body = b"\x00" + pack("<i", 1) + b"\x01\x01" + b"\x00" + document(DIFF)
    assert code_of(event(body, b"\x03\x01\x02")) == "BINLOG-038"


def test_a_partial_image_with_whole_documents() -> None:
    body = b"\x00" + pack("<i", 1) + b"\x00" + b"\x00" + document(SEVEN)
    (images,) = decode(event(body, b"\x03\x01\x02"), lambda table_map, offset: TABLE).partial
    assert images.present == Present(frozenset({0}), frozenset({1}))
    assert images.batch.column(3).to_pylist() == [None, "7"]


def test_the_bitmap_counts_json_columns_that_the_images_lack() -> None:
    body = b"\x00" + document(ARRAY) + b"\x01\x02" + b"\x00" + document(DIFF)
    (images,) = decode(event(body, b"\x03\x04\x04"), lambda table_map, offset: TABLE).partial
    assert images.batch.column(2).to_pylist() == ["[9]", "[8]"]


@pytest.mark.parametrize(("columns", "partial"), [(b"\x03\xff\xff", False), (b"\x03\x01\x06", True)])
def test_the_walk_takes_it_as_rows(columns: bytes, partial: bool) -> None:
    file = File()
    file.gtid(1, flags=4)
    map_table(file, [LONG, JSON, JSON], b"\x04\x04")
    file.event(39, HEAD + columns)
    file.xid()
    log_range = take(file)
    assert (log_range.row_events, log_range.partial_images) == (1, partial)


PRICE = b"\x0f\xf6\x04\x02\x01\x81\x05"  # DECIMAL(2,1), 1.5
PRICED = b"\x02\x01\x00\x0d\x00\x0f\x07\x00" + PRICE[1:]  # a small array of it
PUT = b"\x00\x04$[0]" + bytes([len(PRICE)]) + PRICE


def opaque_of(file: File) -> list[tuple[str, list[int]]]:
    return [(one.column, one.seqs.to_pylist()) for one in decode(file, lambda table_map, offset: TABLE).opaque]


def test_changes_that_leave_a_value_of_an_sql_type() -> None:
    """Those of diffs and of whole documents; not those that take the only one away."""
    body = image(1, ARRAY, SEVEN) + b"\x01\x01" + image(1, PUT, SEVEN)
    body += image(2, PRICED, SEVEN) + b"\x01\x01" + image(2, DIFF, PRICED)
    body += image(3, SEVEN, PRICED) + b"\x00" + image(3, PRICED, SEVEN)
    assert rows_of(event(body))[1][3] == "[1.5]"
    assert opaque_of(event(body)) == [("j", [0, 2]), ("k", [1])]


def test_a_partial_image_that_has_a_value_of_an_sql_type() -> None:
    body = b"\x00" + pack("<i", 1) + b"\x00" + b"\x00" + document(PRICED)
    assert opaque_of(event(body, b"\x03\x01\x02")) == [("j", [0])]
