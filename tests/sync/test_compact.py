"""Compaction: every cell of its table, and a property against the reference database."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.sync.compact import compact
from unshard.sync.order import order

Change = tuple[Op, bytes, bytes | None]


def table(changes: list[Change]) -> pa.Table:
    rows = [
        {"target": 0, "op": op, "seq": n, "key": key, "old_key": None, "row": row, "ordered": False, "part": 0}
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
    ([Op.UPDATE, Op.DELETE, Op.INSERT], Op.UPDATE),
    ([Op.DELETE, Op.INSERT], Op.UPDATE),
    ([Op.DELETE, Op.INSERT, Op.UPDATE], Op.UPDATE),
    ([Op.DELETE, Op.INSERT, Op.DELETE], Op.DELETE),
    ([Op.INSERT], Op.INSERT),
    ([Op.UPDATE], Op.UPDATE),
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
            assert (key in rows) == (op is Op.UPDATE), f"{op.name} of {key!r} doesn't fit"
            rows[key] = row
    return rows


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=60), st.sets(st.integers(0, 5)))
def test_the_target_ends_as_without_compaction(moves: list[tuple[int, bool]], there: set[int]) -> None:
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
