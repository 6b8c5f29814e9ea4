"""An UPDATE or DELETE that finds no row: counted, named, stopped where the task says so, and not lost by a restart."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.reference import RowChange
from support.row_batches import Target
from unshard.errors import SyncError
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchShape
from unshard.target.row_counts import missing_of
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
SHAPE = BatchShape(1, 100)
TABLES = {
    "plain": "id INT PRIMARY KEY, v INT",
    "pair": "a INT, b VARCHAR(9) COLLATE utf8mb4_bin, v INT, PRIMARY KEY (a, b)",
    "twice": "id INT PRIMARY KEY, v INT UNIQUE",
    "bare": "id INT, v INT",
}


@pytest.fixture(scope="module")
def place(target_server: MariadbServer) -> Iterator[Target]:
    found = Target(target_server, "missing_rows", TABLES)
    yield found
    found.connection.close()


def delete(table: str, *row: object) -> RowChange:
    return RowChange(TableName("missing_rows", table), Op.DELETE, before=row)


def update(table: str, before: tuple[object, ...], after: tuple[object, ...]) -> RowChange:
    return RowChange(TableName("missing_rows", table), Op.UPDATE, before=before, after=after)


def insert(table: str, *row: object) -> RowChange:
    return RowChange(TableName("missing_rows", table), Op.INSERT, after=row)


CASES = {
    "delete of many": ("plain", [delete("plain", n, 0) for n in range(1, 11)], "`id` IN (7)"),
    "update of many": ("plain", [update("plain", (n, 0), (n, 1)) for n in range(1, 11)], "`id` IN (7)"),
    "update of one": ("plain", [update("plain", (7, 0), (7, 1))], "`id` IN (7)"),
    "composite key": ("pair", [delete("pair", n, "k'", 0) for n in range(1, 11)], r"(`a`=7 AND `b`='k\'')"),
    "several unique keys": ("twice", [update("twice", (n, n), (n, n + 50)) for n in range(1, 11)], "`id` IN (7)"),
    "no key": ("bare", [delete("bare", n, None) for n in range(1, 11)], "(`id`<=>7 AND `v`<=>NULL)"),
}
ROWS = {"plain": (0,), "pair": ("k'", 0), "twice": None, "bare": (None,)}


def fill(place: Target, table: str) -> None:
    """Rows 1 to 10 without the 7."""
    rest = ROWS[table]
    place.fill(table, [(n, *((n,) if rest is None else rest)) for n in range(1, 11) if n != 7])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("multiple_rows", [True, False], ids=["lists", "single"])
def test_it_is_counted_and_named(place: Target, case: str, multiple_rows: bool) -> None:
    table, changes, key = CASES[case]
    fill(place, table)
    shape = BatchShape(1, 100, compact=multiple_rows, multiple_rows=multiple_rows)
    entry = place.run(place.batch(shape), changes)[table]
    assert (entry.missing, entry.example) == (1, key)
    assert entry.applied == entry.decoded == len(changes)


@pytest.mark.parametrize("case", CASES)
def test_it_stops_the_task_with_nothing_of_its_chunk_applied(place: Target, case: str) -> None:
    table, changes, key = CASES[case]
    fill(place, table)
    before = place.rows(table)
    with pytest.raises(SyncError) as caught:
        place.run(place.batch(SHAPE, "stop"), changes)
    told = str(caught.value)
    assert caught.value.code == "SYNC-048"
    assert f"in the target: {key}" in told
    assert changes[0].op.name in told
    assert f"missing_rows.{table}" in told
    assert "mysql-bin.000001:4 to" in told
    assert "on-missing-row: warn" in told
    assert place.rows(table) == before


def test_a_row_born_and_deleted_in_the_batch_is_not_missing(place: Target) -> None:
    fill(place, "plain")
    changes = [insert("plain", 50, 1), delete("plain", 50, 1), delete("plain", 1, 0), delete("plain", 7, 0)]
    entry = place.run(place.batch(SHAPE), changes)["plain"]
    assert (entry.missing, entry.example, entry.compacted) == (1, "`id` IN (7)", 2)
    fill(place, "plain")
    assert place.run(place.batch(SHAPE, "stop"), changes[:3])["plain"].missing == 0


def test_a_second_attempt_still_has_the_count(place: Target) -> None:
    fill(place, "plain")
    shape = BatchShape(1, 4)
    plan = place.batch(shape)
    changes = [delete("plain", n, 0) for n in range(1, 11)]
    first = place.run(plan, changes)
    assert place.run(plan, changes) == first
    assert first["plain"].missing == 1
    assert missing_of(place.connection, place.meta, "s1", 0, plan.batch_id) == {
        (2, 0): {"missing_rows.plain": (1, "`id` IN (7)")}
    }


def test_the_chunks_before_it_stay_applied(place: Target) -> None:
    fill(place, "plain")
    plan = place.batch(BatchShape(1, 3), "stop")
    changes = [delete("plain", n, 0) for n in range(1, 11)]
    with pytest.raises(SyncError, match="SYNC-048"):
        place.run(plan, changes)
    assert [row[0] for row in place.rows("plain")] == [10, 8, 9]  # 1 to 6 are gone, 7 to 9 are a chunk
    place.connection.query("INSERT INTO plain VALUES (7, 0)")
    assert place.run(plan, changes)["plain"].missing == 0
    assert place.rows("plain") == []
