"""`compact` and `multiple-rows`, on and off: the same rows in the end; off is one statement a change, in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.reference import ReferenceDatabase, RowChange
from support.row_batches import Target, valid_changes
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchShape
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.scenarios]
SCHEMA = "one_by_one"
TABLES = {
    "keyed": "id INT PRIMARY KEY, v INT, w VARCHAR(9)",
    "pair": "a INT, b VARCHAR(9) COLLATE utf8mb4_bin, v INT, PRIMARY KEY (b, a)",
    "bare": "id INT, v INT, w VARCHAR(9)",
}
VALUES: dict[str, tuple[st.SearchStrategy[Any], ...]] = {
    "keyed": (st.integers(1, 4), st.none() | st.integers(0, 2), st.sampled_from(["", "a'", "\\", None])),
    "pair": (st.integers(1, 2), st.sampled_from(["", "a", "A", "\\'"]), st.none() | st.integers(0, 2)),
    "bare": (st.none() | st.integers(1, 2), st.none() | st.integers(0, 1), st.sampled_from(["", "a", None])),
}


@pytest.fixture(scope="module")
def place(target_server: MariadbServer) -> Iterator[Target]:
    found = Target(target_server, SCHEMA, TABLES)
    yield found
    found.connection.close()


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.booleans(), st.booleans(), st.integers(1, 2), st.data())
def test_every_switch_ends_where_the_source_ended(
    place: Target, compact: bool, multiple_rows: bool, partitions: int, data: st.DataObject
) -> None:
    reference = ReferenceDatabase(*place.tables.values())
    rows = {name: st.tuples(*strategies) for name, strategies in VALUES.items()}
    begin = [RowChange(named(name), Op.INSERT, after=data.draw(rows[name])) for name in sorted(rows) * 3]
    valid_changes(reference, begin)
    for table, found in reference.rows.items():
        place.fill(table.table, [row for row, times in found.items() for _ in range(times)])
    changes: list[RowChange] = []
    for _ in range(data.draw(st.integers(0, 14))):
        name = data.draw(st.sampled_from(sorted(rows)))
        there = sorted(reference.tables[named(name)].rows, key=repr)
        op = data.draw(st.sampled_from([Op.INSERT, Op.UPDATE, Op.DELETE])) if there else Op.INSERT
        before = data.draw(st.sampled_from(there)) if op != Op.INSERT else None
        after = data.draw(rows[name]) if op != Op.DELETE else None
        changes += valid_changes(reference, [RowChange(named(name), op, before, after)])
    shape = BatchShape(partitions, 3, compact=compact, multiple_rows=multiple_rows)
    ledger = place.run(place.batch(shape, "stop"), changes)
    for table, found in reference.rows.items():
        assert place.rows(table.table) == sorted((row for row, times in found.items() for _ in range(times)), key=repr)
    for entry in ledger.values():
        assert entry.decoded == entry.compacted + entry.applied
        assert not entry.missing
        assert compact or not entry.compacted


def test_off_means_one_statement_a_change_in_the_order_of_the_log(place: Target, target_server: MariadbServer) -> None:
    for name in TABLES:
        place.fill(name, [])
    changes = [
        RowChange(named("keyed"), Op.INSERT, after=(1, 1, "a")),
        RowChange(named("bare"), Op.INSERT, after=(1, 1, "a")),
        RowChange(named("keyed"), Op.INSERT, after=(2, 1, "a")),
        RowChange(named("keyed"), Op.UPDATE, before=(1, 1, "a"), after=(1, 2, "b")),
        RowChange(named("keyed"), Op.UPDATE, before=(1, 2, "b"), after=(1, 3, "c")),
        RowChange(named("bare"), Op.UPDATE, before=(1, 1, "a"), after=(1, 2, "a")),
        RowChange(named("keyed"), Op.UPDATE, before=(1, 3, "c"), after=(4, 3, "c")),
        RowChange(named("bare"), Op.DELETE, before=(1, 2, "a")),
        RowChange(named("keyed"), Op.DELETE, before=(4, 3, "c")),
        RowChange(named("keyed"), Op.DELETE, before=(2, 1, "a")),
    ]
    ((file, offset, *_),) = target_server.query(target_server.position_query)
    place.run(place.batch(BatchShape(1, 100, compact=False, multiple_rows=False)), changes)
    events = target_server.query(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset}")
    found = [text for _, _, kind, _, _, text in events if kind == "Annotate_rows" and "apply_" not in text]
    kinds = [(text.split()[0], "keyed" if "`keyed`" in text else "bare", "DUPLICATE" in text) for text in found]
    assert kinds == [
        ("INSERT", "keyed", False),
        ("INSERT", "bare", False),
        ("INSERT", "keyed", False),
        ("UPDATE", "keyed", False),
        ("UPDATE", "keyed", False),
        ("UPDATE", "bare", False),
        ("UPDATE", "keyed", False),
        ("DELETE", "bare", False),
        ("DELETE", "keyed", False),
        ("DELETE", "keyed", False),
    ]


def named(table: str) -> TableName:
    return TableName(SCHEMA, table)
