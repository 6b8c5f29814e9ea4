"""Safe mode on a real server: changes that are applied again, over any later state, end where the source ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unshard.errors import Where
from unshard.model.change import ENCODED_SCHEMA, Op
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.sync.batch.plan import BatchShape, TablePlan, TargetPlan
from unshard.sync.changes.encode import encode
from unshard.sync.changes.merge import merge
from unshard.sync.changes.order import arrange
from unshard.sync.planning.target_plan import plan_target
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

DEFINITIONS = {
    "plain": "id INT PRIMARY KEY, u INT, v INT",
    "twice": "id INT PRIMARY KEY, u INT UNIQUE, v INT",
    "folds": "id VARCHAR(5) COLLATE utf8mb4_general_ci PRIMARY KEY, u INT, v INT",
}
KEYS = {"plain": (1, 2, 3), "twice": (1, 2, 3), "folds": ("a", "A", "b", "B ")}
Row = tuple[Any, int | None, int]
Move = tuple[int, int, int | None]
"""Which row, under which key it goes on, and its `u`."""


class Place:
    """The three tables in the target, with their plans and a connection."""

    def __init__(self, server: MariadbServer, schema: str) -> None:
        server.run(f"CREATE DATABASE {schema}")
        self.connection = server.connection(schema)
        self.plans: dict[str, TablePlan] = {}
        for name, columns in DEFINITIONS.items():
            server.run(f"CREATE TABLE {schema}.{name} ({columns})")
            table = read_table(self.connection, TableName(schema, name))
            assert table is not None
            self.plans[name] = TablePlan(table, plan_target(table, table, Where()))

    def run(self, sql: bytes | str) -> None:
        self.connection.query(sql)

    def rows(self, name: str) -> set[Row]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT id, u, v FROM {name}")
            return set(cursor.fetchall())


@pytest.fixture(scope="module")
def place(target_server: MariadbServer) -> Iterator[Place]:
    found = Place(target_server, "safe_rows")
    yield found
    found.connection.close()


def states(name: str, moves: Sequence[Move]) -> list[set[Row]]:
    """What the source holds before the first change and behind each; moves that it would refuse are left out."""
    rows: set[Row] = set()
    found: list[set[Row]] = [set()]
    for number, (which, becomes, unique) in enumerate(moves):
        keys = KEYS[name]
        old = next((row for row in rows if same_key(row[0], keys[which % len(keys)])), None)
        new: Row = (keys[becomes % len(keys)], unique, number)
        if old is not None and becomes == which and unique is None:
            after = rows - {old}
        else:
            after = (rows - {old} if old else rows) | {new}
        ids = [key_of(row[0]) for row in after]
        uniques = [row[1] for row in after if row[1] is not None]
        if len(set(ids)) == len(ids) and (name != "twice" or len(set(uniques)) == len(uniques)):
            rows = after
            found.append(rows)
    return found


def key_of(key: Any) -> Any:
    return key.lower().rstrip() if isinstance(key, str) else key


def same_key(one: Any, other: Any) -> bool:
    return bool(key_of(one) == key_of(other))


def images(plan: TablePlan, steps: Sequence[set[Row]]) -> pa.RecordBatch:
    """The row images of the changes that lead through those states."""
    rows: list[tuple[int, int, Any, Any, Any]] = []
    for seq, (before, after) in enumerate(pairwise(steps)):
        old, new = next(iter(before - after), None), next(iter(after - before), None)
        if old and new:
            rows += [(Op.UPDATE_BEFORE, seq, *old), (Op.UPDATE_AFTER, seq, *new)]
        elif new:
            rows.append((Op.INSERT, seq, *new))
        elif old:
            rows.append((Op.DELETE, seq, *old))
    key = pa.string() if plan.table.column("id").type == "varchar" else pa.int64()
    types = (pa.int8(), pa.int64(), key, pa.int64(), pa.int64())
    columns = list(zip(*rows, strict=True)) or [()] * 5
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, ["op", "seq", "id", "u", "v"])


def statements(plan: TablePlan, steps: Sequence[set[Row]], *, compacted: bool) -> list[bytes]:
    encoded, _ = encode(plan, images(plan, steps), 1, None)
    changes = arrange(pa.Table.from_batches([encoded], ENCODED_SCHEMA), compacted=compacted, safe=True)
    targets: dict[int, TargetPlan] = {plan.target.id: plan.target}
    shape = BatchShape(1, 3)
    return [s.sql for chunk in merge(changes, targets, shape, safe=True) for s in chunk.statements]


moves = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.none() | st.integers(0, 2)), min_size=1, max_size=12
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(DEFINITIONS)), moves, st.data(), st.booleans())
def test_a_replay_over_any_mixture_of_later_rows_ends_where_the_source_ended(
    place: Place, name: str, moves: list[Move], data: st.DataObject, compacted: bool
) -> None:
    plan, steps = place.plans[name], states(name, moves)
    begin = data.draw(st.integers(0, len(steps) - 1))
    place.run(f"TRUNCATE TABLE {name}")
    for key in KEYS[name]:  # each row as it was at some moment since `begin`: what a dump without a lock reads
        moment = data.draw(st.integers(begin, len(steps) - 1))
        for row in steps[moment]:
            if same_key(row[0], key):
                unique = "NULL" if row[1] is None else row[1]
                place.run(f"REPLACE INTO {name} VALUES ('{row[0]}', {unique}, {row[2]})")
    for sql in statements(plan, steps[begin:], compacted=compacted):
        place.run(sql)
    assert place.rows(name) == steps[-1]


def test_what_safe_mode_writes(place: Place) -> None:
    plain, twice = place.plans["plain"], place.plans["twice"]
    row: Row = (1, 2, 3)
    born: list[set[Row]] = [set(), {row}]
    changed: list[set[Row]] = [{row}, {(1, 5, 6)}]
    moved: list[set[Row]] = [{row}, {(2, 2, 3)}]
    into = "REPLACE INTO `safe_rows`.{} (`id`,`u`,`v`) VALUES "
    assert shown(plain, born) == [into.format("`plain`") + "(1,2,3)"]
    assert shown(plain, changed) == [into.format("`plain`") + "(1,5,6)"]
    assert shown(plain, moved) == [
        "DELETE FROM `safe_rows`.`plain` WHERE `id` IN (1)",
        into.format("`plain`") + "(2,2,3)",
    ]
    assert shown(twice, changed) == ["REPLACE INTO `safe_rows`.`twice` SET `id`=1,`u`=5,`v`=6"]
    assert shown(twice, moved) == [
        "DELETE FROM `safe_rows`.`twice` WHERE `id` IN (1)",
        "REPLACE INTO `safe_rows`.`twice` SET `id`=2,`u`=2,`v`=3",
    ]
    assert shown(twice, [{row}, set()]) == ["DELETE FROM `safe_rows`.`twice` WHERE `id` IN (1)"]


def shown(plan: TablePlan, steps: Sequence[set[Row]]) -> list[str]:
    return [sql.decode() for sql in statements(plan, steps, compacted=False)]
