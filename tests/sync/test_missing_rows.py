"""An UPDATE or DELETE that finds no row: counted, named, stopped where the task says so, and not lost by a restart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

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
    "two_keys": "id INT NOT NULL UNIQUE, v INT NOT NULL UNIQUE",
    "empty_member": "id INT PRIMARY KEY, v ENUM('', 'a') COLLATE utf8mb4_bin",
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


REBORN: dict[str, Callable[[int, int], tuple[Any, ...]]] = {
    "plain": lambda n, value: (n, value),
    "pair": lambda n, value: (n, "k'", value),
    "twice": lambda n, value: (n, 100 * value + n),
    "two_keys": lambda n, value: (n, 100 * value + n),
    "empty_member": lambda n, value: (n, ["", "a"][value]),
}
SHAPES = {
    "lists": BatchShape(1, 100),
    "chunks": BatchShape(1, 4),
    "one by one": BatchShape(1, 100, multiple_rows=False),
    "not compacted": BatchShape(1, 100, compact=False),
    "neither": BatchShape(1, 100, compact=False, multiple_rows=False),
}


def reborn(table: str) -> list[RowChange]:
    """Rows 1 to 10 are deleted and inserted, changed and inserted, or changed only, in turn."""
    row = REBORN[table]
    changes = []
    for n in range(1, 11):
        old, new = row(n, 0), row(n, 1)
        again = [delete(table, *old), insert(table, *new)]
        over = [update(table, old, new), delete(table, *new), insert(table, *new)]
        changes += (again, over, [update(table, old, new)])[n % 3]
    return changes


@pytest.mark.parametrize("lacking", [(), (7,), (3, 4, 5, 9), tuple(range(1, 11))], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("table", REBORN)
def test_a_row_that_the_batch_inserts_is_there_behind_it(
    place: Target, table: str, shape: str, lacking: tuple[int, ...]
) -> None:
    """Whatever changes of the row came before, and whether they found it.

    An UPDATE of a row that the target lacks makes that row only where it is written by an upsert.
    """
    row = REBORN[table]
    place.fill(table, [row(n, 0) for n in range(1, 11) if n not in lacking])
    entry = place.run(place.batch(SHAPES[shape]), reborn(table))[table]
    upserts = table in ("plain", "pair") and SHAPES[shape].multiple_rows
    wanted = [row(n, 1) for n in range(1, 11) if upserts or n % 3 != 2 or n not in lacking]
    assert sorted(place.rows(table)) == sorted(wanted)
    assert bool(entry.missing) == bool(entry.example) == bool(lacking)
    assert entry.decoded == entry.applied + entry.compacted
    if SHAPES[shape].compact:
        assert entry.missing == len(lacking)


@pytest.mark.parametrize("table", REBORN)
def test_a_missing_row_that_the_batch_inserts_stops_the_task_too(place: Target, table: str) -> None:
    row = REBORN[table]
    place.fill(table, [row(n, 0) for n in range(1, 11) if n != 7])
    before = place.rows(table)
    with pytest.raises(SyncError, match=r"SYNC-048[\s\S]*\b7\b"):
        place.run(place.batch(SHAPE, "stop"), reborn(table))
    assert place.rows(table) == before


@pytest.mark.parametrize("table", ["twice", "two_keys"])
def test_a_missing_row_whose_value_another_row_has_is_refused(place: Target, table: str) -> None:
    row = REBORN[table]
    other = (50, *row(6, 1)[1:])
    place.fill(table, [*(row(n, 0) for n in range(1, 11) if n != 6), other])
    before = place.rows(table)
    with pytest.raises(SyncError, match="SYNC-003") as caught:
        place.run(place.batch(SHAPE), reborn(table))
    assert caught.value.values["seq"] == next(
        n for n, change in enumerate(reborn(table)) if change.op is Op.INSERT and (change.after or ())[0] == 6
    )
    assert place.rows(table) == before


def test_a_second_attempt_does_not_insert_again(place: Target) -> None:
    place.fill("twice", [])
    plan = place.batch(BatchShape(1, 4))
    first = place.run(plan, reborn("twice"))
    rows = place.rows("twice")
    assert place.run(plan, reborn("twice")) == first
    assert place.rows("twice") == rows
    assert first["twice"].missing == 10


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
