"""Merging: which statements a run of changes becomes, and that the cuts never move."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchShape, ConflictKey, TargetPlan
from unshard.sync.changes.merge import Chunk, merge

SINGLE = TargetPlan(0, TableName("d", "t"), ("id", "v"), ("id",))
PAIR = TargetPlan(1, TableName("d", "p"), ("a", "b", "v"), ("a", "b"))
STRICT = TargetPlan(2, TableName("d", "u"), ("id", "v"), ("id",), ordered=True)
BARE = TargetPlan(3, TableName("d", "k"), ("v",), ("v",), ordered=True, keyless=True)
TARGETS = {plan.id: plan for plan in (SINGLE, PAIR, STRICT, BARE)}


def changes(*rows: tuple[int, Op, bytes, bytes | None, bytes | None]) -> pa.Table:
    fields = ("target", "op", "key", "old_key", "row")
    found: list[dict[str, Any]] = [
        {**dict(zip(fields, row, strict=True)), "table": 0, "seq": n, "ordered": row[0] > 1, "part": 0}
        for n, row in enumerate(rows)
    ]
    return pa.Table.from_pylist(found, schema=ENCODED_SCHEMA)


def cut(table: pa.Table, **shape: Any) -> list[Chunk]:
    return list(merge(table, TARGETS, BatchShape(**{"partitions": 1, "chunk_rows": 100, **shape})))


def sql(table: pa.Table, **shape: Any) -> list[str]:
    return [statement.sql.decode() for chunk in cut(table, **shape) for statement in chunk.statements]


def test_inserts_of_one_table_become_one_list() -> None:
    rows = changes((0, Op.INSERT, b"1,", None, b"(1,'a'),"), (0, Op.INSERT, b"2,", None, b"(2,'b'),"))
    assert sql(rows) == ["INSERT INTO `d`.`t` (`id`,`v`) VALUES (1,'a'),(2,'b')"]


def test_updates_become_an_upsert_and_a_lone_one_is_named_twice() -> None:
    rows = changes((0, Op.UPDATE, b"1,", None, b"(1,'a'),"), (0, Op.UPDATE, b"2,", None, b"(2,'b'),"))
    tail = " ON DUPLICATE KEY UPDATE `v`=VALUES(`v`)"
    assert sql(rows) == ["INSERT INTO `d`.`t` (`id`,`v`) VALUES (1,'a'),(2,'b')" + tail]
    assert sql(rows.slice(0, 1)) == ["INSERT INTO `d`.`t` (`id`,`v`) VALUES (1,'a'),(1,'a')" + tail]


def test_updates_of_some_columns_are_statements_in_one_text() -> None:
    rows = changes((0, Op.UPDATE_SET, b"1,", None, b"`v`='a'"), (0, Op.UPDATE_SET, b"2,", None, b"`v`='b'"))
    text = "UPDATE `d`.`t` SET `v`='a' WHERE `id` IN (1);UPDATE `d`.`t` SET `v`='b' WHERE `id` IN (2)"
    assert sql(rows) == [text]
    assert sql(rows, multiple_rows=False) == [f"{one} LIMIT 1" for one in text.split(";")]
    ((statement,),) = [chunk.statements for chunk in cut(rows)]
    assert (statement.op, statement.rows, statement.upsert) == (Op.UPDATE, 2, False)


def test_deletes_name_keys_in_a_list() -> None:
    rows = changes((0, Op.DELETE, b"1,", None, None), (0, Op.DELETE, b"2,", None, None))
    assert sql(rows) == ["DELETE FROM `d`.`t` WHERE `id` IN (1,2)"]
    pairs = changes(
        (1, Op.DELETE, b"(`a`=1 AND `b`=2) OR ", None, None), (1, Op.DELETE, b"(`a`=3 AND `b`=4) OR ", None, None)
    )
    assert sql(pairs) == ["DELETE FROM `d`.`p` WHERE (`a`=1 AND `b`=2) OR (`a`=3 AND `b`=4)"]


def test_free_updates_of_a_table_with_several_keys_are_replaced_one_by_one_in_safe_mode() -> None:
    rows = changes((0, Op.UPDATE, b"1,", None, b"`id`=1,`v`='a'"), (0, Op.UPDATE, b"2,", None, b"`id`=2,`v`='b'"))
    ties = (ConflictKey(("id",), (0,), ("exact",)), ConflictKey(("v",), (0,), ("folded",)))
    targets = {0: replace(SINGLE, ties=ties)}
    (chunk,) = merge(rows, targets, BatchShape(1, 100), safe=True)
    assert [(one.sql, one.rows, one.may_miss) for one in chunk.statements] == [
        (b"REPLACE INTO `d`.`t` SET `id`=1,`v`='a'", 1, 1),
        (b"REPLACE INTO `d`.`t` SET `id`=2,`v`='b'", 1, 1),
    ]


def test_an_insert_deletes_keys_before_it_in_safe_mode() -> None:
    """Those of rows that it may replace: in its place among the rows of the list, and not counted."""
    pairs = [(b"(%d,%d,0)," % (n, n), b"(`a`=%d AND `b`=%d) OR " % (n, n)) for n in range(4)]
    old_keys = (None, None, b"".join(key for _, key in pairs[:2]), None)
    rows = changes(*((1, Op.INSERT, key, old, row) for (row, key), old in zip(pairs, old_keys, strict=True)))
    (chunk,) = merge(rows, TARGETS, BatchShape(1, 100), safe=True)
    assert [(one.sql.decode(), one.rows) for one in chunk.statements] == [
        ("REPLACE INTO `d`.`p` (`a`,`b`,`v`) VALUES (0,0,0),(1,1,0)", 2),
        ("DELETE FROM `d`.`p` WHERE (`a`=0 AND `b`=0) OR (`a`=1 AND `b`=1)", 0),
        ("REPLACE INTO `d`.`p` (`a`,`b`,`v`) VALUES (2,2,0),(3,3,0)", 2),
    ]
    assert [part.statements for part in chunk.smaller()] == [chunk.statements[:1], chunk.statements[1:]]


def test_updates_of_an_ordered_table_find_the_row_by_its_old_key() -> None:
    rows = changes((2, Op.UPDATE, b"2,", b"1,", b"`id`=2,`v`='b'"), (2, Op.UPDATE, b"1,", b"3,", b"`id`=1,`v`='c'"))
    assert sql(rows) == [
        "UPDATE `d`.`u` SET `id`=2,`v`='b' WHERE `id` IN (1) LIMIT 1",
        "UPDATE `d`.`u` SET `id`=1,`v`='c' WHERE `id` IN (3) LIMIT 1",
    ]


def test_a_table_without_key_deletes_one_row_at_a_time() -> None:
    rows = changes((3, Op.DELETE, b"(`v`<=>1) OR ", None, None), (3, Op.DELETE, b"(`v`<=>1) OR ", None, None))
    assert sql(rows) == ["DELETE FROM `d`.`k` WHERE (`v`<=>1) LIMIT 1"] * 2


def test_a_chunk_ends_at_its_rows_or_its_bytes_and_holds_one_row_at_least() -> None:
    rows = changes(*((0, Op.INSERT, b"%d," % n, None, b"(%d,'x')," % n) for n in range(10)))
    assert [chunk.rows for chunk in cut(rows, chunk_rows=4)] == [4, 4, 2]
    assert [chunk.rows for chunk in cut(rows, chunk_bytes=25)] == [2, 2, 2, 2, 2]
    assert [chunk.rows for chunk in cut(rows, chunk_bytes=1)] == [1] * 10
    assert [chunk.number for chunk in cut(rows, chunk_rows=4)] == [1, 2, 3]


def test_the_cuts_depend_on_the_changes_alone() -> None:
    rows = changes(*((0, Op.INSERT, b"%d," % n, None, b"(%d,'x')," % n) for n in range(50)))
    padded = pa.concat_tables([rows.slice(0, 7), rows.slice(7)])
    assert cut(rows, chunk_rows=9) == cut(padded.combine_chunks(), chunk_rows=9)


def test_without_multiple_rows_each_change_is_a_statement() -> None:
    rows = changes((0, Op.INSERT, b"1,", None, b"(1,'a'),"), (0, Op.INSERT, b"2,", None, b"(2,'b'),"))
    assert len(sql(rows, multiple_rows=False)) == 2
