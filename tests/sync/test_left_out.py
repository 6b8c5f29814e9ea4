"""A batch that goes on without some of its changes: what is applied stays, what is left comes to the rest of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.sync.batch.excluded_changes import runs, within, without


def changes(*rows: tuple[Op, int, bytes, bool]) -> pa.Table:
    """(op, seq, key, ordered) each, of one target."""
    forms = [
        {"target": 1, "table": 1, "op": int(op), "seq": seq, "key": key, "ordered": ordered, "part": 0}
        for op, seq, key, ordered in rows
    ]
    return pa.Table.from_pylist(forms, schema=ENCODED_SCHEMA)


def test_numbers_as_runs() -> None:
    assert runs([]) == ()
    assert runs([7, 3, 4, 5, 7]) == ((3, 5), (7, 7))
    assert within(np.array([2, 3, 5, 6, 7]), ((3, 5), (7, 7))).tolist() == [False, True, True, False, True]
    assert within(np.array([1]), ()).tolist() == [False]


def test_what_a_chunk_holds_of_a_free_key_is_all_of_it() -> None:
    done = changes((Op.UPDATE, 9, b"(1),", False))
    rest = changes((Op.INSERT, 3, b"(1),", False), (Op.INSERT, 4, b"(2),", False))
    assert without(rest, done, compacted=True).column("seq").to_pylist() == [4]


def test_ordered_changes_are_done_one_by_one() -> None:
    done = changes((Op.DELETE, 3, b"(1),", True))
    rest = changes((Op.DELETE, 3, b"(1),", True), (Op.INSERT, 3, b"(2),", True), (Op.UPDATE, 5, b"(1),", True))
    assert without(rest, done, compacted=True).column("key").to_pylist() == [b"(2),", b"(1),"]
    free = rest.set_column(rest.schema.get_field_index("ordered"), "ordered", pa.array([False] * 3))
    assert without(free, done, compacted=False).column("seq").to_pylist() == [3, 5]


def test_nothing_done_leaves_all() -> None:
    rest = changes((Op.INSERT, 3, b"(1),", False))
    assert len(without(rest, rest.slice(0, 0), compacted=True)) == 1
