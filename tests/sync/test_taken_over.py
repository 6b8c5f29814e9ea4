"""Safe mode, change by change: a row that moves to another shard stays, whatever its old shard says behind it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.sync.changes.safe_mode_moves import without_taken_over

Fold = Callable[[bytes], bytes]
Change = tuple[int, Op, bytes, bytes | None, bytes | None]
"""Shard, what it does, the key, the key before an UPDATE, the row."""


def table(changes: list[Change]) -> pa.Table:
    fields = ("table", "op", "key", "old_key", "row")
    rows = [
        {**dict(zip(fields, change, strict=True)), "target": 0, "seq": n, "ordered": True, "part": 0}
        for n, change in enumerate(changes)
    ]
    return pa.Table.from_pylist(rows, schema=ENCODED_SCHEMA)


def applied(changes: list[Change], start: dict[bytes, bytes], fold: Fold = lambda key: key) -> dict[bytes, bytes]:
    """What is there behind them in safe mode, on a target for which keys of one `fold` are equal."""
    rows = {fold(key): (key, row) for key, row in start.items()}
    for form in without_taken_over(table(changes)).to_pylist():
        gone = form["key"] if form["op"] == Op.DELETE else form["old_key"] or b""
        for key in re.findall(b"[^,]*,", gone):
            rows.pop(fold(key), None)
        if form["op"] != Op.DELETE:
            rows[fold(form["key"])] = (form["key"], form["row"])
    return dict(rows.values())


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


EQUAL: list[tuple[list[Change], dict[bytes, bytes]]] = [
    ([(1, Op.INSERT, b"A,", None, b"b"), (0, Op.DELETE, b"a,", None, None)], {b"A,": b"b"}),
    ([(1, Op.INSERT, b"A,", None, b"b"), (0, Op.UPDATE, b"c,", b"a,", b"a")], {b"A,": b"b", b"c,": b"a"}),
    ([(1, Op.UPDATE, b"A,", b"d,", b"b"), (0, Op.UPDATE, b"c,", b"a,", b"a")], {b"A,": b"b", b"c,": b"a"}),
    (
        [
            (1, Op.INSERT, b"A,", None, b"b"),
            (0, Op.UPDATE, b"a,", b"a,", b"goes"),
            (0, Op.DELETE, b"a,", None, None),
        ],
        {b"A,": b"b"},
    ),
    (
        [
            (1, Op.INSERT, b"A,", None, b"b"),
            (0, Op.UPDATE, b"c,", b"a,", b"goes"),
            (0, Op.UPDATE, b"a,", b"c,", b"is back"),
            (0, Op.DELETE, b"a,", None, None),
        ],
        {b"A,": b"b"},
    ),
    (
        [
            (1, Op.INSERT, b"A,", None, b"b"),
            (1, Op.UPDATE, b"A,", b"A,", b"b2"),
            (0, Op.UPDATE, b"\xc3\xa4,", b"a,", b"goes"),
            (0, Op.DELETE, b"\xc3\xa4,", None, None),
        ],
        {b"A,": b"b2"},
    ),
    ([(0, Op.UPDATE, b"A,", b"a,", b"a2")], {b"A,": b"a2"}),
    ([(1, Op.INSERT, b"A,", None, b"b"), (0, Op.DELETE, b"a,", None, None), (1, Op.DELETE, b"A,", None, None)], {}),
]


@pytest.mark.parametrize(("changes", "left"), EQUAL)
def test_a_row_that_moves_to_a_key_of_another_text(changes: list[Change], left: dict[bytes, bytes]) -> None:
    """The target takes the texts for one key."""
    assert applied(changes, {b"a,": b"old"}, lambda key: key.lower().replace(b"\xc3\xa4", b"a")) == left


@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 3, st.booleans(), st.booleans()), max_size=40),
    st.booleans(),
    st.sampled_from(["fold", "apart"]),
)
def test_rows_end_where_they_are_whatever_texts_are_equal(
    steps: list[tuple[int, int, int, bool, bool]], insert_first: bool, kind: str
) -> None:
    """A key lives in two shards, in two texts, for a moment while it moves; where texts are apart there are more keys.

    The step does not know which texts the target takes for equal, so both kinds of target end as the sources.
    """
    fold: Fold = bytes.lower if kind == "fold" else lambda key: key
    shards: dict[int, dict[bytes, bytes]] = {0: {b"a,": b"old", b"B,": b"old"}, 1: {b"c,": b"old"}, 2: {}}
    start = shards[0] | shards[1]
    changes: list[Change] = []

    def owner_of(key: bytes) -> tuple[int, bytes] | None:
        return next(((n, own) for n, rows in shards.items() for own in rows if fold(own) == fold(key)), None)

    for n, (number, other, shard, upper, keeps) in enumerate(steps):
        shard %= 3
        key, new, row = b"abcd"[number : number + 1] + b",", b"abcd"[other : other + 1] + b",", b"%d" % n
        if upper:
            key, new = key.upper(), new.swapcase()
        owner = owner_of(key)
        if owner is None:
            changes.append((shard, Op.INSERT, key, None, row))
            shards[shard][key] = row
            continue
        where, own = owner
        taken = owner_of(new)
        free = taken is None or taken == owner
        if where == shard and keeps:
            changes.append((shard, Op.UPDATE, new if free else own, own, row))
            del shards[shard][own]
            shards[shard][new if free else own] = row
        elif where == shard:
            changes.append((shard, Op.DELETE, own, None, None))
            del shards[shard][own]
        else:
            insert: Change = (shard, Op.INSERT, key, None, row)
            gives = taken is None and keeps
            gone: Change = (where, Op.UPDATE, new, own, b"moved") if gives else (where, Op.DELETE, own, None, None)
            late: list[Change] = [(where, Op.UPDATE, own, own, b"goes")] if n % 2 else []
            changes += [insert, *late, gone] if insert_first else [*late, gone, insert]
            del shards[where][own]
            if gives:
                shards[where][new] = b"moved"
            shards[shard][key] = row
    assert applied(changes, start, fold) == shards[0] | shards[1] | shards[2]
