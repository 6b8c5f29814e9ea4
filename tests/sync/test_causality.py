"""Causality: what is free and what keeps its order, and a property: the target ends as the source.

SQLite stands for both: it enforces unique keys over a collation of our own, and takes nearly all of our statements.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unshard.errors import Where
from unshard.model.change import ENCODED_SCHEMA, IMAGE_FIELDS, LOG_ORDER, Op
from unshard.model.table import Column, Index, Table, TableName
from unshard.sync.batch.plan import BatchShape, TablePlan
from unshard.sync.changes.causality import find_ties
from unshard.sync.changes.encode import Ties, encode
from unshard.sync.changes.merge import Statement, merge
from unshard.sync.changes.order import arrange
from unshard.sync.planning.target_plan import plan_target

Row = tuple[Any, ...]
Image = tuple[Op, int, Row]

ID = Column("id", "int", "int(11)", nullable=False)
N = Column("n", "int", "int(11)")
CODE = Column("code", "varchar", "varchar(9)", charset="utf8mb4", collation="utf8mb4_general_ci", length=9)
NOTE = Column("note", "int", "int(11)")
WORD = Column("id", "varchar", "varchar(9)", nullable=False, charset="utf8mb4", collation="utf8mb4_general_ci")
PRIMARY = Index("PRIMARY", ("id",), (0,), unique=True)


def plan(*indexes: Index, key: Column = ID) -> TablePlan:
    table = Table(TableName("d", "t"), (key, N, CODE, NOTE), (PRIMARY, *indexes))
    return TablePlan(table, plan_target(table, table, Where()))


SEVERAL = plan(Index("n", ("n",), (0,), unique=True), Index("c", ("code",), (0,), unique=True))
PAIR = plan(Index("p", ("n", "code"), (0, 2), unique=True))
STRING = plan(key=WORD)
KINDS = {"several": SEVERAL, "pair": PAIR, "string": STRING}
SQL = {
    "several": "id INT PRIMARY KEY, n INT UNIQUE, code TEXT COLLATE folds UNIQUE, note INT",
    "pair": "id INT PRIMARY KEY, n INT, code TEXT COLLATE folds, note INT",
    "string": "id TEXT COLLATE folds PRIMARY KEY, n INT, code TEXT, note INT",
}


def batch_of(images: list[Image], kind: TablePlan = SEVERAL) -> pa.RecordBatch:
    key = pa.string() if kind is STRING else pa.int64()
    types = [IMAGE_FIELDS[0].type, IMAGE_FIELDS[1].type, key, pa.int64(), pa.string(), pa.int64()]
    rows = [(int(op), seq, *row) for op, seq, row in images]
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, ["op", "seq", "id", "n", "code", "note"])


def ties_of(*images: Image, kind: TablePlan = SEVERAL) -> Ties:
    (found,) = find_ties([(kind, batch_of(list(images), kind))], 7)
    return found


def test_rows_that_share_nothing_are_free() -> None:
    found = ties_of((Op.INSERT, 0, (1, 1, "a", 0)), (Op.INSERT, 1, (2, 2, "b", 0)), (Op.DELETE, 2, (1, 1, "a", 0)))
    assert found.ordered.tolist() == [False] * 3
    assert found.part[0] == found.part[2]
    assert found.born.tolist() == [True, True, True]


@pytest.mark.parametrize("second", [(2, 1, "b", 0), (2, 2, "A ", 0), (2, 2, "é", 0)], ids=["n", "folds", "no ASCII"])
def test_rows_that_may_share_a_value_keep_their_order(second: Row) -> None:
    found = ties_of((Op.DELETE, 0, (1, 1, "a", 0)), (Op.INSERT, 1, second), (Op.INSERT, 2, (9, 9, None, 0)))
    assert found.ordered.tolist() == [True, True, False]
    assert found.part[0] == found.part[1]


def test_nulls_and_a_change_of_the_key() -> None:
    found = ties_of(
        (Op.INSERT, 0, (1, None, None, 0)),
        (Op.INSERT, 1, (2, None, None, 0)),
        (Op.UPDATE_BEFORE, 2, (3, 3, "c", 0)),
        (Op.UPDATE_AFTER, 2, (4, 3, "c", 0)),
    )
    assert found.ordered.tolist() == [False, False, True, True]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_the_two_zeros_of_a_key_are_one_value(kind: str) -> None:
    """Their texts differ. In two partitions, a DELETE of the one would remove the other, which safe mode wrote."""
    own = plan(key=Column("id", kind, kind, nullable=False))
    images = [(Op.DELETE, 0, -0.0), (Op.INSERT, 1, 0.0), (Op.INSERT, 2, 0.5), (Op.DELETE, 3, -0.5)]
    columns = [[int(op), seq, key, None, None, None] for op, seq, key in images]
    number = pa.float32() if kind == "float" else pa.float64()
    types = [IMAGE_FIELDS[0].type, IMAGE_FIELDS[1].type, number, pa.int64(), pa.string(), pa.int64()]
    arrays = [pa.array(values, form) for values, form in zip(zip(*columns, strict=True), types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, ["op", "seq", "id", "n", "code", "note"])
    (ties,) = find_ties([(own, batch)], 1000)
    assert len(set(ties.key.to_pylist())) == 4
    assert ties.ordered.tolist() == [True, True, False, False]
    assert ties.part[0] == ties.part[1]


def test_a_prefix_counts_characters() -> None:
    pair = ties_of((Op.INSERT, 0, (1, 1, "abx", 0)), (Op.INSERT, 1, (2, 1, "aby", 0)), kind=PAIR)
    assert pair.ordered.all()
    assert not ties_of((Op.INSERT, 0, (1, 1, "abx", 0)), (Op.INSERT, 1, (2, 1, "ac", 0)), kind=PAIR).ordered.any()


def test_the_ties_span_all_source_tables_of_a_target() -> None:
    first, second = batch_of([(Op.INSERT, 0, (1, 1, "a", 0))]), batch_of([(Op.INSERT, 1, (2, 1, "b", 0))])
    one, other = find_ties([(SEVERAL, first), (SEVERAL, second)], 7)
    assert one.ordered.all()
    assert other.ordered.all()
    assert one.part[0] == other.part[0]


def fold(text: str) -> str:
    return text.rstrip(" ").upper().replace("É", "E")


def database(kind: str) -> sqlite3.Connection:
    found = sqlite3.connect(":memory:", isolation_level=None)
    found.create_collation("folds", lambda a, b: (fold(a) > fold(b)) - (fold(a) < fold(b)))
    found.execute("ATTACH ':memory:' AS d")
    found.execute(f"CREATE TABLE d.t ({SQL[kind]})")
    if kind == "pair":
        found.execute("CREATE UNIQUE INDEX d.p ON t (n, substr(code, 1, 2) COLLATE folds)")
    return found


def rows_of(connection: sqlite3.Connection) -> list[Row]:
    return sorted(connection.execute("SELECT * FROM d.t").fetchall(), key=repr)


def work(source: sqlite3.Connection, moves: list[tuple[int, int, int, Row]]) -> Iterator[tuple[int, Image]]:
    """Carry the moves out that the source allows; (shard, image) of each."""
    for seq, (what, which, shard, new) in enumerate(moves):
        there = source.execute("SELECT * FROM d.t ORDER BY note, id").fetchall()
        try:
            if what == 0 or not there:
                source.execute("INSERT INTO d.t VALUES (?,?,?,?)", new)
                yield shard, (Op.INSERT, seq, new)
                continue
            old = there[which % len(there)]
            if what == 1:
                source.execute("DELETE FROM d.t WHERE id = ?", old[:1])
                yield shard, (Op.DELETE, seq, old)
                continue
            after = (new[0] if what == 2 else old[0], *new[1:])
            source.execute("UPDATE d.t SET id=?, n=?, code=?, note=? WHERE id = ?", (*after, old[0]))
            yield shard, (Op.UPDATE_BEFORE, seq, old)
            yield shard, (Op.UPDATE_AFTER, seq, after)
        except sqlite3.IntegrityError:
            pass


def apply(target: sqlite3.Connection, statement: Statement) -> None:
    for sql in statement.sql.decode().split(";"):
        text = sql.replace(" LIMIT 1", "").replace("ON DUPLICATE KEY UPDATE", "ON CONFLICT DO UPDATE SET")
        before = target.total_changes
        target.execute(re.sub(r"VALUES\((`\w+`)\)", r"excluded.\1", text))
        if ";" in statement.sql.decode():
            assert target.total_changes == before + 1, f"{text} found no row"


CODES = [None, "a", "A", "b ", "B", "c", "vx", "wx", "é", "E"]
VALUES = {
    kind: st.tuples(
        st.sampled_from(["a", "A", "b", "b ", "c", "d", "é", "e"]) if kind == "string" else st.integers(1, 9),
        st.none() | st.integers(1, 5),
        st.sampled_from(CODES) | st.none(),
        st.integers(0, 99),
    )
    for kind in KINDS
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_the_target_ends_as_the_source(kind: str, data: st.DataObject) -> None:
    move = st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 1), VALUES[kind])
    source, target = database(kind), database(kind)
    for _ in work(source, [(0, 0, 0, row) for row in data.draw(st.lists(VALUES[kind], max_size=6))]):
        pass
    target.executemany("INSERT INTO d.t VALUES (?,?,?,?)", rows_of(source))
    done = list(work(source, data.draw(st.lists(move, max_size=30))))
    shape = BatchShape(
        data.draw(st.integers(1, 4)),
        data.draw(st.integers(1, 5)),
        compact=data.draw(st.booleans()),
        multiple_rows=data.draw(st.booleans()),
        range_digits=data.draw(st.integers(0, 2)),
    )
    table = KINDS[kind]
    batches = [(table, batch_of([image for shard, image in done if shard == one], table)) for one in (0, 1)]
    changes = encoded(batches, shape)
    waiting = [list(statements(changes, part, table, shape)) for part in range(shape.partitions)]
    random = data.draw(st.randoms(use_true_random=False))
    for statement in interleaved(waiting, random):
        apply(target, statement)
    assert rows_of(target) == rows_of(source)


def encoded(batches: list[tuple[TablePlan, pa.RecordBatch]], shape: BatchShape) -> pa.Table:
    """All changes, as two tasks find them that keep half of the partitions each."""
    found = []
    for share in (0, 1):
        mine = np.arange(share, shape.partitions, 2, dtype=np.int32)
        found_ties = find_ties(batches, shape.partitions, shape.range_digits)
        for (table, batch), ties in zip(batches, found_ties, strict=True):
            compact, several, digits = shape.compact, shape.multiple_rows, shape.range_digits
            done, _ = encode(
                table, batch, shape.partitions, mine, ties, compact=compact, multiple_rows=several, range_digits=digits
            )
            found.append(done)
    return pa.Table.from_batches(found, ENCODED_SCHEMA).sort_by(LOG_ORDER).combine_chunks()


def statements(changes: pa.Table, part: int, table: TablePlan, shape: BatchShape) -> Iterator[Statement]:
    own = changes.filter(pa.compute.equal(changes.column("part"), part))
    for chunk in merge(arrange(own, compacted=shape.compact), {0: table.target}, shape):
        yield from chunk.statements


def interleaved(waiting: list[list[Statement]], random: Random) -> Iterator[Statement]:
    """Each list in its own order, one from any of them at a time."""
    while left := [each for each in waiting if each]:
        yield random.choice(left).pop(0)
