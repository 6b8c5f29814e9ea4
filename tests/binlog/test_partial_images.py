"""Row images that lack columns: bitmaps by hand, and what a server writes."""

from __future__ import annotations

from struct import pack

import pytest
from captured import capture
from made_events import File, take
from row_images import NAME, decode, int_column, map_table, packed, table_of

from unshard.binlog.images import PartialImages, Present
from unshard.errors import BinlogError
from unshard.model.change import Op
from unshard.model.table import Column, Table
from unshard.testing.mariadb_server import MariadbServer

LONG, LONGLONG, BLOB = 3, 8, 252
TABLE = table_of(int_column("a"), int_column("b"), Column("c", "blob", "blob"), int_column("d"))
HEAD = pack("<IHH", 1, 0, 1)
NO_BLOB = frozenset({0, 1, 3})


def number(value: int) -> bytes:
    return pack("<i", value)


def mapped(file: File) -> None:
    map_table(file, [LONG, LONG, BLOB, LONG], b"\x02")


def images_of(file: File, table: Table = TABLE) -> tuple[PartialImages, ...]:
    found = decode(file, lambda table_map, offset: table)
    assert found.batches == ()
    return found.partial


def rows_of(images: PartialImages) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in images.batch.columns), strict=True))


def test_an_insert_has_a_null_bit_for_each_present_column() -> None:
    file = File()
    mapped(file)
    # four columns, bits 0 and 3 present; first row: no NULL, 5, 6; second row: d is NULL
    at = file.event(23, HEAD + b"\x04\xf9" + b"\xfc" + number(5) + number(6) + b"\xfe" + number(7))
    (images,) = images_of(file)
    assert images.present == (None, frozenset({0, 3}))
    assert [column.name for column in images.columns] == ["a", "d"]
    assert images.batch.schema.names == ["op", "seq", "a", "d"]
    assert rows_of(images) == [(Op.INSERT, 0, 5, 6), (Op.INSERT, 1, 7, None)]
    assert (images.offset, images.table) == (at, TABLE)


def test_an_update_has_its_own_columns_before_and_after() -> None:
    file = File()
    mapped(file)
    # before: a; after: b and c
    head = HEAD + b"\x02\x00" + b"\x04\x01\x06"
    file.event(31, head + b"\x00" + number(5) + b"\x01" + b"\x02\x00hi")
    (images,) = images_of(file)
    assert images.present == (frozenset({0}), frozenset({1, 2}))
    assert rows_of(images) == [
        (Op.UPDATE_BEFORE, 0, 5, None, None),
        (Op.UPDATE_AFTER, 0, None, None, b"hi"),
    ]


def test_a_delete_and_whole_images_keep_one_order() -> None:
    file = File()
    mapped(file)
    file.event(25, HEAD + b"\x04\x01" + b"\x00" + number(1))
    file.event(23, HEAD + b"\x04\x0f" + b"\x0e" + number(2))
    file.event(25, HEAD + b"\x04\x01" + b"\x00" + number(3))
    found = decode(file, lambda table_map, offset: TABLE)
    ((table, whole),) = found.batches
    (images,) = found.partial
    assert table is TABLE
    assert whole.column(1).to_pylist() == [1]
    assert images.present == (frozenset({0}), None)
    assert rows_of(images) == [(Op.DELETE, 0, 1), (Op.DELETE, 2, 3)]
    assert found.changes == found.events == 3


def test_an_after_image_alone_may_be_partial() -> None:
    file = File()
    mapped(file)
    before = b"\x08" + number(1) + number(2) + b"\x01\x00x"
    file.event(24, HEAD + b"\x04\x0f\x02" + before + b"\x00" + number(9))
    (images,) = images_of(file)
    assert images.present == (frozenset({0, 1, 2, 3}), frozenset({1}))
    assert rows_of(images)[1] == (Op.UPDATE_AFTER, 0, None, 9, None, None)


def test_nine_columns_and_many() -> None:
    """The bitmap passes a byte; above 250 columns their count takes three."""
    for count in (9, 300):
        table = table_of(*(int_column(f"v{n}") for n in range(count)))
        file = File()
        map_table(file, [LONG] * count)
        bits = (1 << (count - 1) | 1).to_bytes((count + 7) // 8, "little")
        file.event(25, HEAD + packed(count) + bits + b"\x00" + number(1) + number(2))
        (images,) = images_of(file, table)
        assert images.present.before == frozenset({0, count - 1})
        assert rows_of(images) == [(Op.DELETE, 0, 1, 2)]


@pytest.mark.parametrize(
    ("code", "head"), [(23, b"\x04\x00"), (25, b"\x04\x00"), (24, b"\x04\x00\x01"), (30, b"\x02\x00\x04\x00")]
)
@pytest.mark.parametrize("rest", [b"", b"\x00"])
def test_images_without_a_column_are_refused(code: int, head: bytes, rest: bytes) -> None:
    file = File()
    mapped(file)
    at = file.event(code, HEAD + head + rest)
    with pytest.raises(BinlogError) as caught:
        decode(file, lambda table_map, offset: TABLE)
    assert caught.value.code == "BINLOG-037"
    assert (caught.value.where.position, caught.value.where.table) == (f"mysql-bin.000001:{at}", str(NAME))


@pytest.mark.parametrize("size", range(9))
def test_a_partial_image_cut_short(size: int) -> None:
    file = File()
    mapped(file)
    file.event(23, HEAD + b"\x04\x09" + (b"\x00" + number(1) + number(2))[:size] + b"" if size else HEAD + b"\x04")
    with pytest.raises(BinlogError) as caught:
        decode(file, lambda table_map, offset: TABLE)
    assert caught.value.code in ("BINLOG-021", "BINLOG-023")


def test_images_that_lack_a_hidden_hash_alone_are_whole() -> None:
    """MariaDB 11.8.9 writes an UPDATE and a DELETE so; the hash is NULL here, and nobody asks for it."""
    name = "DB_ROW_HASH_1"
    hidden = Column(name, "bigint", "bigint(20) unsigned", True, precision=20, generated=True, invisible=True)
    table = table_of(int_column("a"), int_column("b"), hidden)
    file = File()
    map_table(file, [LONG, LONG, LONGLONG], b"")
    file.event(25, HEAD + b"\x03\x03" + b"\x00" + number(5) + number(6))
    file.event(25, HEAD + b"\x03\x07" + b"\x00" + number(7) + number(8) + bytes(8))
    file.event(25, HEAD + b"\x03\x01" + b"\x00" + number(9))
    found = decode(file, lambda table_map, offset: table)
    whole = [row for _, batch in found.batches for row in zip(*(one.to_pylist() for one in batch.columns), strict=True)]
    assert sorted(whole) == [(Op.DELETE, 0, 5, 6, None), (Op.DELETE, 1, 7, 8, 0)]
    (partial,) = found.partial
    assert partial.present == (frozenset({0}), None)
    assert rows_of(partial) == [(Op.DELETE, 2, 9)]


@pytest.mark.parametrize(
    ("code", "body", "partial"),
    [
        (23, b"\x04\x0f", False),
        (23, b"\x04\xff", False),
        (23, b"\x04\x0e", True),
        (25, b"\x04\x01", True),
        (24, b"\x04\x0f\x0f", False),
        (24, b"\x04\x0f\x07", True),
        (24, b"\x04\x07\x0f", True),
        (30, b"\x02\x00\x04\x0f", False),
        (31, b"\x04\x00zz\x04\x0f\x01", True),
        (32, b"\x02\x00\x09\xff\x01", False),
        (32, b"\x02\x00\x09\xff\x00", True),
        (30, b"\x02\x00\xfc\x00\x01" + b"\xff" * 31 + b"\x7f", True),
        (23, b"\x04", False),  # cut off: decoding refuses it
    ],
)
def test_the_walk_notices_partial_images(code: int, body: bytes, partial: bool) -> None:
    file = File()
    file.gtid(1, flags=4)
    mapped(file)
    file.event(code, HEAD + body)
    file.xid()
    file.gtid(2, flags=4)
    mapped(file)
    file.event(25, HEAD + b"\x04\x01")  # an incomplete transaction is not in the extent
    assert take(file).partial_images is partial


@pytest.mark.parametrize(
    ("image", "before", "after"), [("MINIMAL", frozenset({0}), frozenset({1})), ("NOBLOB", NO_BLOB, NO_BLOB)]
)
def test_what_a_server_writes(
    source_server: MariadbServer, schema: str, image: str, before: frozenset[int], after: frozenset[int]
) -> None:
    captured = capture(
        source_server,
        schema,
        [
            f"SET binlog_row_image = {image}",
            "CREATE TABLE t (a int PRIMARY KEY, b int DEFAULT 7, c text, d int)",
        ],
        ["INSERT INTO t VALUES (1, 2, 'x', NULL)", "UPDATE t SET b = 3", "DELETE FROM t"],
    )
    decoded = captured.decode()
    assert [images.present for images in decoded.partial] == [Present(before, after), Present(before, None)]
    assert [rows_of(images)[-1][:3] for images in decoded.partial] == [
        (Op.UPDATE_AFTER, 1, None if image == "MINIMAL" else 1),
        (Op.DELETE, 2, 1),
    ]
    assert captured.batch().num_rows == 1
