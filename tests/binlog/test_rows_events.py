"""Row events of ranges: order, images, several tables, and everything that is refused."""

from __future__ import annotations

from struct import pack

import pytest
from made_events import File
from row_images import NAME, WHERE, decode, int_column, map_table, rows, table_of

from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap
from unshard.errors import BinlogError
from unshard.model.change import Op
from unshard.model.table import Column, Table, TableName

T = table_of(int_column())
LONG = 3


def image(number: int | None) -> bytes:
    return b"\x01" if number is None else b"\x00" + pack("<i", number)


def always(table_map: TableMap, offset: int) -> Table | None:
    return T


def listed(batch: object) -> list[tuple[int, int, object]]:
    columns = [batch.column(number).to_pylist() for number in range(3)]  # type: ignore[attr-defined]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize(("code", "op"), [(23, Op.INSERT), (30, Op.INSERT), (25, Op.DELETE), (32, Op.DELETE)])
@pytest.mark.parametrize("checksum", [True, False])
def test_one_event(code: int, op: Op, checksum: bool) -> None:
    file = File(checksum=checksum)
    map_table(file, [LONG])
    rows(file, image(5) + image(None) + image(-7), code=code, extra=b"\x01\x02")
    decoded = decode(file, always, seq_base=100)
    ((table, batch),) = decoded
    assert table is T
    assert batch.schema.names == ["op", "seq", "v"]
    assert listed(batch) == [(op, 100, 5), (op, 101, None), (op, 102, -7)]
    assert (decoded.changes, decoded.events, decoded.skipped) == (3, 1, 0)


@pytest.mark.parametrize("code", [24, 31])
def test_the_images_of_an_update_are_neighbours_with_one_seq(code: int) -> None:
    file = File()
    map_table(file, [LONG])
    rows(file, image(1) + image(2) + image(None) + image(4), code=code)
    rows(file, image(9))
    decoded = decode(file, always)
    ((_, batch),) = decoded
    assert listed(batch) == [
        (Op.UPDATE_BEFORE, 0, 1),
        (Op.UPDATE_AFTER, 0, 2),
        (Op.UPDATE_BEFORE, 1, None),
        (Op.UPDATE_AFTER, 1, 4),
        (Op.INSERT, 2, 9),
    ]
    assert decoded.changes == 3


def test_seq_runs_over_all_tables_in_the_order_of_the_log() -> None:
    other = table_of(int_column("w"), name=TableName("s", "u"))
    known = {T.name: T, other.name: other}
    file = File()
    file.gtid(1)
    map_table(file, [LONG], number=1)
    map_table(file, [LONG], number=2, name=other.name)
    rows(file, image(1), number=1)
    rows(file, image(2), number=2)
    rows(file, image(3), number=1, code=25)
    file.xid()
    found = dict(decode(file, lambda table_map, offset: known.get(table_map.name)))
    assert listed(found[T]) == [(Op.INSERT, 0, 1), (Op.DELETE, 2, 3)]
    assert listed(found[other]) == [(Op.INSERT, 1, 2)]


def test_two_table_ids_of_one_table_give_one_batch() -> None:
    file = File()
    for number in (1, 2, 1):
        map_table(file, [LONG], number=number)
        rows(file, image(number), number=number)
    ((_, batch),) = decode(file, always)
    assert batch.column("v").to_pylist() == [1, 2, 1]


def test_a_table_id_that_comes_to_stand_for_another_table() -> None:
    other = table_of(int_column(), name=TableName("s", "u"))
    known = {T.name: T, other.name: other}
    file = File()
    map_table(file, [LONG])
    rows(file, image(1))
    map_table(file, [LONG], name=other.name)
    rows(file, image(2))
    found = dict(decode(file, lambda table_map, offset: known.get(table_map.name)))
    assert found[T].column("v").to_pylist() == [1]
    assert found[other].column("v").to_pylist() == [2]


def test_wanted_is_asked_at_every_table_map_and_what_it_leaves_out_is_counted() -> None:
    file = File()
    offsets = []
    for number in (1, 2, 3):
        offsets.append(map_table(file, [LONG]))
        rows(file, image(number))
        rows(file, b"\xff not even an image")
    asked: list[tuple[TableName, int]] = []

    def never(table_map: TableMap, offset: int) -> None:
        asked.append((table_map.name, offset))

    decoded = decode(file, never)
    assert asked == [(NAME, offset) for offset in offsets]
    assert (decoded.batches, decoded.changes, decoded.events, decoded.skipped) == ((), 0, 0, 6)


def test_a_table_wanted_from_an_offset_on() -> None:
    file = File()
    map_table(file, [LONG])
    rows(file, image(1))
    later = map_table(file, [LONG])
    rows(file, image(2))
    decoded = decode(file, lambda table_map, offset: T if offset >= later else None)
    ((_, batch),) = decoded
    assert listed(batch) == [(Op.INSERT, 0, 2)]
    assert decoded.skipped == 1


def test_a_second_structure_gives_a_second_batch() -> None:
    wide = table_of(int_column(), int_column("w"))
    file = File()
    map_table(file, [LONG])
    rows(file, image(1))
    map_table(file, [LONG, LONG])
    rows(file, b"\x00" + pack("<ii", 2, 3), columns=2)
    answers = iter((T, wide))
    found = list(decode(file, lambda table_map, offset: next(answers)))
    assert [(table, batch.num_columns, batch.num_rows) for table, batch in found] == [(T, 3, 1), (wide, 4, 1)]


def test_columns_named_as_the_fields_of_an_image() -> None:
    table = table_of(int_column("op"), int_column("seq"))
    file = File()
    map_table(file, [LONG, LONG])
    rows(file, b"\x00" + pack("<ii", 2, 3), columns=2)
    ((_, batch),) = decode(file, lambda table_map, offset: table)
    assert [column.to_pylist() for column in batch.columns] == [[Op.INSERT], [0], [2], [3]]


def test_many_rows_and_late_nulls() -> None:
    columns = [int_column("a"), Column("b", "varchar", "varchar(9)", charset="utf8mb4", length=9), int_column("c")]
    table = table_of(*columns)
    file = File()
    map_table(file, [LONG, 15, LONG], b"\x24\x00")
    expected = []
    for start in range(0, 5000, 500):
        images = b""
        for number in range(start, start + 500):
            row = (number, None if number % 7 == 3 else "é" * (number % 5), None if number > 4321 else number)
            text = b"" if row[1] is None else bytes([2 * len(row[1])]) + row[1].encode()
            nulls = (row[1] is None) << 1 | (row[2] is None) << 2
            images += bytes([nulls]) + pack("<i", number) + text + (b"" if row[2] is None else pack("<i", number))
            expected.append(row)
        rows(file, images, columns=3)
    ((_, batch),) = decode(file, lambda table_map, offset: table)
    batch.validate(full=True)
    assert list(zip(*[column.to_pylist() for column in batch.columns[2:]], strict=True)) == expected
    assert batch.column("c").null_count == 5000 - 4322


def test_a_table_of_300_columns() -> None:
    table = table_of(*[int_column(f"c{number}") for number in range(300)])
    file = File()
    map_table(file, [LONG] * 300)
    nulls = bytearray(38)
    nulls[255 // 8] |= 1 << (255 % 8)
    rows(file, bytes(nulls) + pack("<299i", *range(299)), columns=300)
    ((_, batch),) = decode(file, lambda table_map, offset: table)
    row = [column.to_pylist()[0] for column in batch.columns[2:]]
    assert row == [*range(255), None, *range(255, 299)]


def refused(file: File, wanted: object = always) -> BinlogError:
    with pytest.raises(BinlogError) as caught:
        decode(file, wanted)  # type: ignore[arg-type]
    assert caught.value.where.source == "s1"
    assert str(caught.value)
    return caught.value


def test_rows_without_a_table_map() -> None:
    file = File()
    map_table(file, [LONG], number=1)
    at = rows(file, image(5), number=2)
    error = refused(file)
    assert (error.code, error.where.position) == ("BINLOG-026", f"mysql-bin.000001:{at}")


@pytest.mark.parametrize(
    ("code", "name"),
    [(20, "WRITE_ROWS_V0"), (99, "99")],
)
def test_events_not_known(code: int, name: str) -> None:
    file = File()
    at = file.event(code, bytes(20))
    error = refused(file)
    assert (error.code, error.where.position) == ("BINLOG-024", f"mysql-bin.000001:{at}")
    assert name in error.message


@pytest.mark.parametrize("images", [image(5)[:-1], image(5) + b"\x00", b"\x00"])
def test_an_image_cut_short(images: bytes) -> None:
    file = File()
    map_table(file, [LONG])
    rows(file, images)
    assert refused(file).code in ("BINLOG-021", "BINLOG-023")


def test_a_range_that_ends_within_an_event() -> None:
    file = File()
    map_table(file, [LONG])
    data = bytes(file.data)
    with pytest.raises(BinlogError, match="BINLOG-023"):
        decode_range(data, 256, len(data) - 1, checksum=True, wanted=always, where=WHERE)
    with pytest.raises(BinlogError, match="BINLOG-023"):
        decode_range(data, 256, len(data) + 1, checksum=True, wanted=always, where=WHERE)


def test_another_number_of_columns() -> None:
    file = File()
    at = map_table(file, [LONG, LONG])
    error = refused(file)
    assert (error.code, error.where.table, error.where.position) == ("BINLOG-022", "s.t", f"mysql-bin.000001:{at}")


def test_names_and_signs_that_the_binlog_tells_are_held_against_the_structure() -> None:
    named = b"\x04\x02\x01w"  # field 4, two bytes: the name "w"
    signed = b"\x01\x01\x80"  # field 1, one byte: the first numeric column is unsigned
    same = b"\x04\x02\x01V\x01\x01\x00"
    for optional, code in ((named, "BINLOG-022"), (signed, "BINLOG-022"), (b"\x04\x09", "BINLOG-023"), (same, None)):
        file = File()
        map_table(file, [LONG], optional=optional)
        if code is None:
            assert decode(file, always).events == 0
        else:
            assert refused(file).code == code


@pytest.mark.parametrize("code", [28, 29, 37, 160], ids=["IGNORABLE", "ROWS_QUERY", "VIEW_CHANGE", "ANNOTATE_ROWS"])
def test_what_the_index_lets_through_is_passed_over_here_too(code: int) -> None:
    file = File()
    file.event(code, bytes(20))
    map_table(file, [LONG])
    rows(file, image(5))
    assert decode(file, always).changes == 1
