"""Safe mode, change by change: a row that moves to another shard stays, whatever its old shard says behind it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.sync.changes.safe_mode_moves import without_taken_over

Change = tuple[int, Op, bytes, bytes | None, bytes | None]
"""Shard, what it does, the key, the key before an UPDATE, the row."""


def table(changes: list[Change]) -> pa.Table:
    fields = ("table", "op", "key", "old_key", "row")
    rows = [
        {**dict(zip(fields, change, strict=True)), "target": 0, "seq": n, "ordered": True, "part": 0}
        for n, change in enumerate(changes)
    ]
    return pa.Table.from_pylist(rows, schema=ENCODED_SCHEMA)


def applied(changes: list[Change], start: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """What is there behind them in safe mode."""
    rows = dict(start)
    for form in without_taken_over(table(changes)).to_pylist():
        if form["op"] == Op.DELETE or (form["op"] == Op.UPDATE and form["old_key"] != form["key"]):
            rows.pop(form["old_key"] if form["op"] == Op.UPDATE else form["key"], None)
        if form["op"] != Op.DELETE:
            rows[form["key"]] = form["row"]
    return rows


CASES: list[tuple[list[Change], dict[bytes, bytes]]] = [
    ([(1, Op.INSERT, b"1,", None, b"b"), (0, Op.DELETE, b"1,", None, None)], {b"1,": b"b"}),
    ([(1, Op.INSERT, b"1,", None, b"b"), (0, Op.UPDATE, b"2,", b"1,", b"a")], {b"1,": b"b", b"2,": b"a"}),
    ([(1, Op.UPDATE, b"1,", b"3,", b"b"), (0, Op.DELETE, b"1,", None, None)], {b"1,": b"b"}),
    (
        [
            (1, Op.INSERT, b"1,", None, b"b"),
            (0, Op.UPDATE, b"1,", b"1,", b"goes"),
            (0, Op.DELETE, b"1,", None, None),
        ],
        {b"1,": b"b"},
    ),
    ([(1, Op.INSERT, b"1,", None, b"b"), (1, Op.DELETE, b"1,", None, None)], {}),
    ([(0, Op.UPDATE, b"2,", b"1,", b"a"), (1, Op.INSERT, b"1,", None, b"b")], {b"1,": b"b", b"2,": b"a"}),
    (
        [
            (1, Op.INSERT, b"1,", None, b"b"),
            (2, Op.INSERT, b"1,", None, b"c"),
            (0, Op.DELETE, b"1,", None, None),
            (1, Op.DELETE, b"1,", None, None),
        ],
        {b"1,": b"c"},
    ),
    (
        [
            (1, Op.INSERT, b"1,", None, b"b"),
            (0, Op.UPDATE, b"1,", b"1,", b"goes"),
            (2, Op.INSERT, b"1,", None, b"c"),
            (0, Op.DELETE, b"1,", None, None),
            (2, Op.DELETE, b"1,", None, None),
        ],
        {b"1,": b"b"},
    ),
    (
        [
            (1, Op.INSERT, b"1,", None, b"b"),
            (0, Op.DELETE, b"1,", None, None),
            (0, Op.UPDATE, b"1,", b"3,", b"a"),
            (0, Op.DELETE, b"1,", None, None),
        ],
        {b"1,": b"b"},
    ),
    ([(0, Op.DELETE, b"1,", None, None)], {}),
    ([], {b"1,": b"old"}),
]


@pytest.mark.parametrize(("changes", "left"), CASES)
def test_what_is_there_of_a_row_that_moves(changes: list[Change], left: dict[bytes, bytes]) -> None:
    assert applied(changes, {b"1,": b"old"}) == left


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=40))
def test_a_key_that_shards_share_for_a_while_is_the_last_ones(steps: list[tuple[int, int, int]]) -> None:
    """Any number of shards have a row of a key at once; in the end, one at most. Shard 0 had rows before."""
    shards: dict[int, dict[bytes, bytes]] = {shard: {} for shard in range(4)}
    shards[0] = {b"0,": b"old", b"1,": b"old"}
    start = dict(shards[0])
    changes: list[Change] = []
    for n, (number, other, shard) in enumerate(steps):
        rows, key, new, row = shards[shard], b"%d," % number, b"%d," % other, b"%d" % n
        if key not in rows:
            changes.append((shard, Op.INSERT, key, None, row))
            rows[key] = row
        elif new not in rows or (new == key and n % 2):
            changes.append((shard, Op.UPDATE, new, key, row))
            del rows[key]
            rows[new] = row
        else:
            changes.append((shard, Op.DELETE, key, None, None))
            del rows[key]
    wanted: dict[bytes, bytes] = {}
    for key in (b"%d," % number for number in range(4)):
        touched = {change[0] for change in changes if key in (change[2], change[3])}
        having = [shard for shard, rows in shards.items() if key in rows]
        if len(having) == 1 and having[0] in touched:
            wanted[key] = shards[having[0]][key]
        elif having and (len(having) > 1 or touched):
            return  # two rows of one key, or one that no change tells of
        elif having:
            wanted[key] = start[key]
    assert applied(changes, start) == wanted


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 1), st.booleans()), max_size=40),
    st.booleans(),
)
def test_rows_end_where_they_are(steps: list[tuple[int, int, int, bool]], insert_first: bool) -> None:
    """Each key lives in one shard, and in two for a moment while it moves."""
    shards: dict[int, dict[bytes, bytes]] = {0: {b"0,": b"old", b"1,": b"old"}, 1: {b"2,": b"old"}}
    start = shards[0] | shards[1]
    changes: list[Change] = []
    for n, (number, other, shard, keeps) in enumerate(steps):
        key, new, row = b"%d," % number, b"%d," % other, b"%d" % n
        owner = next((one for one in shards if key in shards[one]), None)
        free = not any(new in rows for rows in shards.values())
        insert: Change = (shard, Op.INSERT, key, None, row)
        if owner is None:
            changes.append(insert)
            shards[shard][key] = row
        elif owner == shard and keeps:
            changes.append((shard, Op.UPDATE, new if free else key, key, row))
            del shards[shard][key]
            shards[shard][new if free else key] = row
        elif owner == shard:
            changes.append((shard, Op.DELETE, key, None, None))
            del shards[shard][key]
        else:
            gone: Change = (
                (owner, Op.UPDATE, new, key, b"moved") if free and keeps else (owner, Op.DELETE, key, None, None)
            )
            late: list[Change] = [(owner, Op.UPDATE, key, key, b"goes")] if n % 2 else []
            changes += [insert, *late, gone] if insert_first else [*late, gone, insert]
            del shards[owner][key]
            if gone[1] is Op.UPDATE:
                shards[owner][new] = b"moved"
            shards[shard][key] = row
    assert applied(changes, start) == shards[0] | shards[1]
