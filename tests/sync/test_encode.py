"""Encoding: every line of its table, what a key looks like, and who keeps what."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from unshard.errors import Where
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Index, Table, TableName
from unshard.sync.batch.plan import TablePlan
from unshard.sync.changes.encode import encode
from unshard.sync.planning.target_plan import plan_target

ID = Column("id", "int", "int(11)", nullable=False)
NAME = Column("op", "varchar", "varchar(20)", charset="utf8mb4", collation="utf8mb4_general_ci", length=20)
AMOUNT = Column("d", "decimal", "decimal(10,2)", precision=10, scale=2)
PRIMARY = Index("PRIMARY", ("id",), (0,), unique=True)
SECOND = Index("u", ("op",), (0,), unique=True)


def plan(*indexes: Index, columns: tuple[Column, ...] = (ID, NAME, AMOUNT)) -> TablePlan:
    table = Table(TableName("a", "t"), columns, indexes)
    return TablePlan(table, plan_target(table, Table(TableName("b", "t"), columns, indexes), Where()))


def images(*rows: tuple[Op, int, int | None, str | None, str | None]) -> pa.RecordBatch:
    types = (IMAGE_FIELDS[0].type, IMAGE_FIELDS[1].type, pa.int64(), pa.string(), pa.string())
    columns = list(zip(*rows, strict=True))
    arrays = [
        pa.array([int(v) if i == 0 else v for v in c], t) for i, (c, t) in enumerate(zip(columns, types, strict=True))
    ]
    return pa.RecordBatch.from_arrays(arrays, ["op", "seq", "id", "op", "d"])


def encoded(table: TablePlan, *rows: Any, partitions: int = 1) -> list[tuple[Op, int, Any, Any, Any]]:
    found, _ = encode(table, images(*rows), partitions, None)
    return [(Op(r["op"]), r["seq"], r["key"], r["old_key"], r["row"]) for r in found.to_pylist()]


def test_inserts_and_deletes() -> None:
    found = encoded(plan(PRIMARY), (Op.INSERT, 0, 5, "x", "1.50"), (Op.DELETE, 1, 6, None, None))
    assert found == [(Op.INSERT, 0, b"5,", None, b"(5,'x',1.50),"), (Op.DELETE, 1, b"6,", None, None)]


def test_an_update_that_keeps_the_key_is_one_change() -> None:
    found = encoded(plan(PRIMARY), (Op.UPDATE_BEFORE, 3, 5, "x", None), (Op.UPDATE_AFTER, 3, 5, "y", None))
    assert found == [(Op.UPDATE, 3, b"5,", None, b"(5,'y',NULL),")]


def test_an_update_of_the_key_is_a_delete_and_an_insert() -> None:
    found = encoded(plan(PRIMARY), (Op.UPDATE_BEFORE, 3, 5, "x", None), (Op.UPDATE_AFTER, 3, 6, "x", None))
    assert found == [(Op.DELETE, 3, b"5,", None, None), (Op.INSERT, 3, b"6,", None, b"(6,'x',NULL),")]


def test_an_ordered_table_updates_by_the_old_key() -> None:
    ordered = plan(PRIMARY, SECOND)
    assert ordered.target.tied, "what nobody found the ties of is ordered as a whole"
    found = encoded(
        ordered,
        (Op.INSERT, 0, 1, "a", None),
        (Op.UPDATE_BEFORE, 1, 5, "x", None),
        (Op.UPDATE_AFTER, 1, 6, "y", None),
        (Op.DELETE, 2, 6, "y", None),
    )
    assert found == [
        (Op.INSERT, 0, b"1,", None, b"(1,'a',NULL),"),
        (Op.UPDATE, 1, b"6,", b"5,", b"`id`=6,`op`='y',`d`=NULL"),
        (Op.DELETE, 2, b"6,", None, None),
    ]


def test_an_update_leaves_columns_as_they_are_that_older_rows_may_have() -> None:
    """Where the batch inserts its row it is a new one, and gets them."""
    keeps = replace(plan(PRIMARY), kept=frozenset({"d"}))
    changed = (Op.UPDATE_BEFORE, 1, 5, "x", None), (Op.UPDATE_AFTER, 1, 5, "y", None)
    assert encoded(keeps, *changed) == [(Op.UPDATE_SET, 1, b"5,", None, b"`id`=5,`op`='y'")]
    inserted = (Op.DELETE, 0, 6, "x", None), (Op.INSERT, 2, 6, "y", "1.00")
    again = (Op.UPDATE_BEFORE, 3, 6, "y", "1.00"), (Op.UPDATE_AFTER, 3, 6, "z", "1.00")
    assert [(op, row) for op, *_, row in encoded(keeps, *changed, *inserted, *again)] == [
        (Op.UPDATE_SET, b"`id`=5,`op`='y'"),
        (Op.DELETE, None),
        (Op.INSERT, b"(6,'y',1.00),"),
        (Op.UPDATE, b"(6,'z',1.00),"),
    ]


def test_ordered_updates_leave_them_too() -> None:
    keeps = replace(plan(PRIMARY, SECOND), kept=frozenset({"d"}))
    found = encoded(keeps, (Op.UPDATE_BEFORE, 1, 5, "x", None), (Op.UPDATE_AFTER, 1, 6, "y", None))
    assert found == [(Op.UPDATE, 1, b"6,", b"5,", b"`id`=6,`op`='y'")]


def test_a_table_without_key_names_a_row_by_all_of_it_byte_by_byte() -> None:
    keyless = plan()
    assert keyless.target.keyless
    ((_, _, key, _, _),) = encoded(keyless, (Op.DELETE, 0, 5, "x", None))
    assert key == b"(`id`<=>5 AND CAST(CONVERT(`op` USING utf8mb4) AS BINARY)<=>'x' AND `d`<=>NULL) OR "


def test_documents_and_vectors_are_compared_as_what_the_target_holds() -> None:
    """`json <=> 'text'` is never true, and the target may print a document in another way than the source."""
    columns = (ID, Column("op", "json", "json"), Column("d", "json", "json"))
    ((_, _, key, _, _),) = encoded(plan(columns=columns), (Op.DELETE, 0, 5, "[]", None))
    ours = "CAST(CONVERT(`{}` USING utf8mb4) AS BINARY)"
    theirs = "CAST(CONVERT(CAST({} AS JSON) USING utf8mb4) AS BINARY)"
    first, second = f"{ours}<=>{theirs}".format("op", "'[]'"), f"{ours}<=>{theirs}".format("d", "NULL")
    assert key.decode() == f"(`id`<=>5 AND {first} AND {second}) OR "
    columns = (ID, Column("op", "vector", "vector(1)"), Column("d", "json", "json"))
    ((_, _, key, _, _),) = encoded(plan(columns=columns), (Op.DELETE, 0, 5, "v", None))
    assert key.startswith(b"(`id`<=>5 AND CAST(`op` AS BINARY)<=>'v' AND ")


def test_a_composite_key_is_a_condition() -> None:
    pair = Index("PRIMARY", ("id", "d"), (0, 0), unique=True)
    fixed = (ID, NAME, Column("d", "decimal", "decimal(10,2)", nullable=False))
    ((_, _, key, _, _),) = encoded(plan(pair, columns=fixed), (Op.DELETE, 0, 5, "x", "1.00"))
    assert key == b"(`id`=5 AND `d`=1.00) OR "


def test_the_year_zero_is_not_the_year_2000_of_two_digits() -> None:
    short = (Column("id", "year", "year(2)", nullable=False), NAME, AMOUNT)
    found = encoded(plan(PRIMARY, columns=short), (Op.INSERT, 0, 0, "x", None), (Op.DELETE, 1, 2000, None, None))
    assert [(key, row) for _, _, key, _, row in found] == [(b"'0000',", b"('0000','x',NULL),"), (b"'2000',", None)]


def test_shares_part_the_changes_and_all_see_the_same_number() -> None:
    rows = [(Op.INSERT, n, n, "x", None) for n in range(100)]
    rows += [
        (image, 100 + n, n + (image is Op.UPDATE_AFTER) * 1000, "y", None)
        for n in range(50)
        for image in (Op.UPDATE_BEFORE, Op.UPDATE_AFTER)
    ]
    batch = images(*rows)
    whole, total = encode(plan(PRIMARY), batch, 4, None)
    parts = [encode(plan(PRIMARY), batch, 4, np.array(mine, dtype=np.int32)) for mine in ([0, 2], [1, 3])]
    assert total == len(whole) == 200
    assert [seen for _, seen in parts] == [total, total]
    found = sorted((r["seq"], r["key"]) for part, _ in parts for r in part.to_pylist())
    assert found == sorted((r["seq"], r["key"]) for r in whole.to_pylist())
    by_key = {(r["key"], r["part"]) for r in whole.to_pylist()}
    assert len({key for key, _ in by_key}) == len(by_key)
