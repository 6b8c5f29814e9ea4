"""Compaction: every cell of its table, and a property against the reference database."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.sync.changes.compact import compact
from unshard.sync.changes.order import order

Change = tuple[Op, bytes, bytes | None]


def table(changes: list[Change]) -> pa.Table:
    rows = [
        {
            "target": 0,
            "table": 0,
            "op": op,
            "seq": n,
            "key": key,
            "old_key": None,
            "row": row,
            "ordered": False,
            "part": 0,
        }
        for n, (op, key, row) in enumerate(changes)
    ]
    return pa.Table.from_pylist(rows, schema=ENCODED_SCHEMA)


def outcome(changes: list[Change], *, safe: bool = False) -> list[Change]:
    return [(Op(r["op"]), r["key"], r["row"]) for r in compact(table(changes), safe=safe).to_pylist()]


CELLS = [
    ([Op.INSERT, Op.UPDATE], Op.INSERT),
    ([Op.INSERT, Op.DELETE], None),
    ([Op.INSERT, Op.UPDATE, Op.DELETE], None),
    ([Op.INSERT, Op.DELETE, Op.INSERT, Op.DELETE], None),
    ([Op.INSERT, Op.DELETE, Op.INSERT], Op.INSERT),
    ([Op.UPDATE, Op.UPDATE], Op.UPDATE),
    ([Op.UPDATE, Op.DELETE], Op.DELETE),
    ([Op.UPDATE, Op.DELETE, Op.INSERT], Op.UPDATE_OR_INSERT),
    ([Op.UPDATE, Op.DELETE, Op.INSERT, Op.UPDATE], Op.UPDATE_OR_INSERT),
    ([Op.DELETE, Op.INSERT], Op.UPDATE_OR_INSERT),
    ([Op.DELETE, Op.INSERT, Op.UPDATE], Op.UPDATE_OR_INSERT),
    ([Op.DELETE, Op.INSERT, Op.DELETE], Op.DELETE),
    ([Op.UPDATE_SET, Op.UPDATE_SET], Op.UPDATE_SET),
    ([Op.UPDATE_SET, Op.DELETE], Op.DELETE),
    ([Op.INSERT], Op.INSERT),
    ([Op.UPDATE], Op.UPDATE),
    ([Op.UPDATE_SET], Op.UPDATE_SET),
    ([Op.DELETE], Op.DELETE),
]


@pytest.mark.parametrize(("ops", "result"), CELLS, ids=["-".join(op.name for op in ops) for ops, _ in CELLS])
def test_a_key_comes_to_one_change_at_most(ops: list[Op], result: Op | None) -> None:
    """What is born and dies in the batch leaves a row of another shard alone that has its key by now."""
    changes: list[Change] = [(op, b"1,", None if op is Op.DELETE else b"(1,%d)," % n) for n, op in enumerate(ops)]
    assert outcome(changes) == ([(result, b"1,", changes[-1][2])] if result is not None else [])
    assert outcome(changes, safe=True) == [(result if result is not None else Op.DELETE, b"1,", changes[-1][2])]


def run(changes: list[Change], start: dict[bytes, bytes | None]) -> dict[bytes, bytes | None]:
    rows = dict(start)
    for op, key, row in changes:
        if op is Op.DELETE:
            rows.pop(key, None)
        else:
            assert (key in rows) == (op in (Op.UPDATE, Op.UPDATE_OR_INSERT)), f"{op.name} of {key!r} doesn't fit"
            rows[key] = row
    return rows


def run_lenient(changes: list[Change], start: dict[bytes, bytes | None]) -> dict[bytes, bytes | None]:
    """As `run`, where the target may lack rows: an UPDATE of such a row changes nothing."""
    rows = dict(start)
    for op, key, row in changes:
        if op is Op.DELETE:
            rows.pop(key, None)
        elif op is not Op.UPDATE or key in rows:
            assert op is not Op.INSERT or key not in rows
            rows[key] = row
    return rows


@given(
    st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=60),
    st.sets(st.integers(0, 5)),
    st.sets(st.integers(0, 5)),
)
def test_the_target_ends_as_without_compaction(
    moves: list[tuple[int, bool]], there: set[int], lacking: set[int]
) -> None:
    """Also where it lacks rows of the source."""
    start: dict[bytes, bytes | None] = {b"%d," % n: b"old" for n in there}
    living = dict(start)
    changes: list[Change] = []
    for n, (number, keep) in enumerate(moves):
        key = b"%d," % number
        if key not in living:
            changes.append((Op.INSERT, key, b"%d" % n))
        elif keep:
            changes.append((Op.UPDATE, key, b"%d" % n))
        else:
            changes.append((Op.DELETE, key, None))
        living = run(changes[-1:], living)
    compacted = [(Op(r["op"]), r["key"], r["row"]) for r in order(compact(table(changes))).to_pylist()]
    assert run(compacted, start) == living
    assert len({key for _, key, _ in compacted}) == len(compacted)
    some = {key: row for key, row in start.items() if int(key[:-1]) not in lacking}
    assert run_lenient(compacted, some) == run_lenient(changes, some)


def test_updates_of_rows_that_the_batch_inserts_keep_their_place_among_the_others() -> None:
    """The order decides where chunks end, and a batch that an earlier version has begun has the same ones."""
    changes: list[Change] = []
    for n in range(6):
        key = b"%d," % n
        changes += [(Op.UPDATE, key, b"new")] if n % 2 else [(Op.DELETE, key, None), (Op.INSERT, key, b"new")]
    found = order(compact(table(changes))).to_pylist()
    assert [row["key"] for row in found] == [b"%d," % n for n in range(6)]
    assert {Op(row["op"]) for row in found} == {Op.UPDATE, Op.UPDATE_OR_INSERT}


SHARDS = (0, 1)
Shards = dict[int, dict[bytes, bytes]]


def of_shards(changes: list[tuple[int, Change]]) -> list[Change]:
    """What is applied of the changes of two shards, in order."""
    rows = table([change for _, change in changes])
    shard = pa.array([number for number, _ in changes], pa.int32())
    rows = rows.set_column(rows.schema.get_field_index("table"), rows.schema.field("table"), shard)
    return [(Op(r["op"]), r["key"], r["row"]) for r in order(compact(rows)).to_pylist()]


@pytest.mark.parametrize(
    ("changes", "applied"),
    [
        ([(1, Op.INSERT, b"new"), (0, Op.DELETE, None)], [(Op.DELETE, None), (Op.INSERT, b"new")]),
        ([(0, Op.DELETE, None), (1, Op.INSERT, b"new")], [(Op.DELETE, None), (Op.INSERT, b"new")]),
        (
            [(1, Op.INSERT, b"a"), (0, Op.DELETE, None), (0, Op.INSERT, b"b"), (1, Op.DELETE, None)],
            [(Op.UPDATE_OR_INSERT, b"b")],
        ),
        ([(0, Op.INSERT, b"a"), (1, Op.INSERT, b"b")], [(Op.INSERT, b"a"), (Op.INSERT, b"b")]),
        ([(0, Op.UPDATE, b"a"), (1, Op.INSERT, b"b")], [(Op.INSERT, b"b"), (Op.UPDATE, b"a")]),
    ],
    ids=["moved, INSERT first", "moved, DELETE first", "there and back", "both have it", "the second has it too"],
)
def test_rows_of_two_shards_with_one_key_are_not_folded(
    changes: list[tuple[int, Op, bytes | None]], applied: list[tuple[Op, bytes | None]]
) -> None:
    """What can't be is left to the target to refuse."""
    found = of_shards([(shard, (op, b"1,", row)) for shard, op, row in changes])
    assert found == [(op, b"1,", row) for op, row in applied]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(SHARDS), st.booleans()), max_size=60), st.booleans())
def test_rows_that_move_between_shards_end_where_they_are(
    moves: list[tuple[int, int, bool]], insert_first: bool
) -> None:
    """Each key lives in one shard at most before and behind the batch, and in both for a moment while it moves."""
    shards: Shards = {0: {b"%d," % n: b"old" for n in range(2)}, 1: {b"2,": b"old"}}
    start: dict[bytes, bytes | None] = {key: row for rows in shards.values() for key, row in rows.items()}
    changes: list[tuple[int, Change]] = []

    def do(shard: int, op: Op, key: bytes, row: bytes | None) -> None:
        changes.append((shard, (op, key, row)))
        if row is None:
            del shards[shard][key]
        else:
            shards[shard][key] = row

    for n, (number, shard, moves_away) in enumerate(moves):
        key, row = b"%d," % number, b"%d" % n
        owner = next((one for one in SHARDS if key in shards[one]), None)
        if owner is None:
            do(shard, Op.INSERT, key, row)
        elif owner == shard:
            do(shard, Op.UPDATE, key, row) if moves_away else do(shard, Op.DELETE, key, None)
        elif insert_first:
            do(shard, Op.INSERT, key, row)
            do(owner, Op.DELETE, key, None)
        else:
            do(owner, Op.DELETE, key, None)
            do(shard, Op.INSERT, key, row)
    assert run(of_shards(changes), start) == shards[0] | shards[1]
