"""Chunks that are too large for the target: in pieces, in order, each change once, also when it dies in between."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from support.reference import RowChange
from support.row_batches import Target, encoded
from unshard.errors import SyncError
from unshard.model.change import Op
from unshard.model.table import TableName
from unshard.sync.batch.plan import BatchPlan, BatchShape
from unshard.sync.changes.merge import Chunk, Statement
from unshard.sync.steps.pipeline import apply_partitions
from unshard.target.meta import MetaTables
from unshard.target.receipts import Applied, applied
from unshard.target.row_counts import add_left_out, add_to_ledger
from unshard.testing.binlog_count import row_events
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
TABLES = {
    "plain": "id INT PRIMARY KEY, v LONGTEXT COLLATE utf8mb4_bin",
    "twice": "id INT PRIMARY KEY, v INT UNIQUE",
}
SHAPE = BatchShape(1, 1000)
CACHE_BYTES, PACKET_BYTES = 16384, 65536
_numbers = itertools.count(20_000)


@pytest.fixture(scope="module")
def place() -> Iterator[Target]:
    """A target whose transactions are at most CACHE_BYTES in its binlog, statements at most PACKET_BYTES."""
    options = {"max_binlog_cache_size": str(CACHE_BYTES), "max_allowed_packet": str(PACKET_BYTES)}
    with MariadbServer(options) as server:
        found = Target(server, "split", TABLES)
        yield found
        found.connection.close()


def insert(table: str, *row: object) -> RowChange:
    return RowChange(TableName("split", table), Op.INSERT, after=row)


def delete(table: str, *row: object) -> RowChange:
    return RowChange(TableName("split", table), Op.DELETE, before=row)


def fresh(place: Target, table: str) -> BatchPlan:
    """A batch on connections of its own, into the empty table."""
    with place.connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {table}")
    plan = place.batch(SHAPE)
    return replace(plan, target=plan.target.with_session(wait_timeout=str(next(_numbers))))


def reached(place: Target, plan: BatchPlan) -> Applied:
    return applied(place.connection, plan.meta, "s1", 0, plan.epoch, plan.batch_id)


def chunk(*rows: int) -> Chunk:
    """One with a statement for each number of rows, which are cut at any place."""

    def cut(start: int, end: int) -> tuple[Statement, ...]:
        ends = list(itertools.accumulate(rows))
        bounds = [start, *(end_ for end_ in ends if start < end_ < end), end]
        return tuple(Statement(b"%d" % a, Op.INSERT, 0, b - a) for a, b in itertools.pairwise(bounds))

    return Chunk(1, sum(rows), cut(0, sum(rows)), cut)


def test_first_by_statements_then_by_halves_down_to_one() -> None:
    by_statement = chunk(4, 1, 2).smaller()
    assert [(piece.start, piece.end, piece.last) for piece in by_statement] == [
        (0, 4, False),
        (4, 5, False),
        (5, 7, True),
    ]
    halves = by_statement[0].smaller()
    assert [(piece.start, piece.end, piece.last) for piece in halves] == [(0, 2, False), (2, 4, False)]
    assert [(piece.start, piece.end) for piece in by_statement[2].smaller()] == [(5, 6), (6, 7)]
    assert by_statement[1].smaller() == ()


def test_a_chunk_over_the_binlog_cache_arrives_whole(place: Target) -> None:
    plan = fresh(place, "plain")
    rows = [(n, "x" * 500) for n in range(300)]
    assert place.run(plan, [insert("plain", *row) for row in rows])["plain"].inserted == 300
    assert place.rows("plain") == sorted(rows, key=repr)
    assert reached(place, plan) == Applied(1)


def test_a_statement_over_the_packet_is_never_sent(place: Target) -> None:
    plan = fresh(place, "plain")
    with place.connection.cursor() as cursor:
        cursor.execute("SET GLOBAL max_binlog_cache_size = 4294967296")
        try:
            place.run(plan, [insert("plain", n, "x" * 900) for n in range(300)])
        finally:
            cursor.execute(f"SET GLOBAL max_binlog_cache_size = {CACHE_BYTES}")
        cursor.execute("SELECT COUNT(*), SUM(LENGTH(v)) FROM plain")
        assert cursor.fetchone() == (300, 300 * 900)


def test_changes_of_an_ordered_table_keep_their_order(place: Target) -> None:
    plan = fresh(place, "twice")
    changes = [insert("twice", n, n) for n in range(400)]
    for n in range(400):
        changes += [delete("twice", n, n), insert("twice", n + 1000, n)]
    entry = place.run(plan, changes)["twice"]
    assert (entry.inserted, entry.deleted, entry.missing) == (800, 400, 0)
    assert sorted(place.rows("twice")) == [(n + 1000, n) for n in range(400)]


def test_what_was_missing_in_each_piece_adds_up(place: Target) -> None:
    place.run(fresh(place, "plain"), [insert("plain", n, "x" * 400) for n in range(300) if n % 100])
    plan = place.batch(SHAPE)
    changes = [delete("plain", n, "x" * 400) for n in range(300)]
    first = place.run(plan, changes)
    assert first["plain"].missing == 3
    assert first == place.run(plan, changes)


@pytest.mark.parametrize("size", [20_000, 70_000], ids=["cache", "packet"])
def test_one_row_that_is_too_large_is_told(place: Target, size: int) -> None:
    plan = fresh(place, "plain")
    changes = [insert("plain", n, "x" * (size if n == 5 else 10)) for n in range(9)]
    with pytest.raises(SyncError, match="SYNC-053") as caught:
        place.run(plan, changes)
    assert caught.value.where.table == "split.plain"
    assert ("max_allowed_packet" if size > PACKET_BYTES else "max_binlog_cache_size") in caught.value.cause
    assert len(place.rows("plain")) == 5


def test_a_row_passes_once_the_limit_is_raised_although_the_connection_is_older(place: Target) -> None:
    """A session keeps the limit that the server had when it began; another process may have kept one."""
    plan = fresh(place, "plain")
    place.run(plan, [insert("plain", 1, "x")])
    with place.connection.cursor() as cursor:
        cursor.execute("SET GLOBAL max_binlog_cache_size = 4294967296")
        cursor.execute(f"SET GLOBAL max_allowed_packet = {4 * PACKET_BYTES}")
        try:
            again = replace(place.batch(SHAPE), target=plan.target)
            assert place.run(again, [insert("plain", 2, "x" * 70_000)])["plain"].inserted == 1
        finally:
            cursor.execute(f"SET GLOBAL max_binlog_cache_size = {CACHE_BYTES}")
            cursor.execute(f"SET GLOBAL max_allowed_packet = {PACKET_BYTES}")
    assert [row[0] for row in place.rows("plain")] == [1, 2]


@pytest.mark.parametrize("place_of_death", ["sync-piece-commit:2", "sync-piece-after:3", "sync-chunk-before:4"])
def test_a_death_between_two_pieces(
    place: Target, place_of_death: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = fresh(place, "plain")
    place.server.run("RESET MASTER")
    rows = [(n, "x" * 500) for n in range(300)]
    changes = encoded(plan, [insert("plain", *row) for row in rows])
    monkeypatch.setenv("UNSHARD_CRASH_AT", place_of_death)
    process = get_context("spawn").Process(target=apply_partitions, args=(plan, changes, {0: 0}))
    process.start()
    process.join()
    assert process.exitcode == -9
    monkeypatch.delenv("UNSHARD_CRASH_AT")
    left = reached(place, plan)
    assert left.chunks == 0
    assert left.step == len(place.rows("plain"))
    ledger = apply_partitions(plan, changes, {0: 0})
    assert next(iter(ledger.values())).inserted == 300
    assert place.rows("plain") == sorted(rows, key=repr)
    assert reached(place, plan) == Applied(1)
    written = row_events(place.server, [TableName("split", "plain")])
    assert len(written) == 300
    assert set(written.values()) == {1}


def test_two_attempts_at_once_share_the_work(place: Target) -> None:
    plan = fresh(place, "plain")
    changes = encoded(plan, [insert("plain", n, "x" * 300) for n in range(400)])
    context = get_context("spawn")
    others = [context.Process(target=apply_partitions, args=(plan, changes, {0: 0})) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert [other.exitcode for other in others] == [0, 0]
    assert len(place.rows("plain")) == 400
    assert reached(place, plan) == Applied(1)


def questions(cursor: Any) -> int:
    cursor.execute("SHOW SESSION STATUS LIKE 'Questions'")
    return int(cursor.fetchone()[1])


def test_tables_of_an_earlier_version_get_the_columns(place: Target) -> None:
    meta = MetaTables("split", "Old")
    meta.create(place.connection)
    with place.connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {meta.partition} DROP COLUMN step")
        cursor.execute(f"INSERT INTO {meta.partition} (source, part, epoch, batch_id, chunk) VALUES ('s1', 0, 3, 7, 2)")
        cursor.execute(f"ALTER TABLE {meta.ledger} DROP COLUMN filtered")
        cursor.execute(f"INSERT INTO {meta.ledger} VALUES ('s1', 'd.t', 7, 1, 2, 3, 1, 0)")
        cursor.execute(f"DROP TABLE {meta.left_out}")
    meta.create(place.connection)
    with place.connection.cursor() as cursor:
        before = questions(cursor)
        meta.create(place.connection)
        assert questions(cursor) - before == 2, "one, and the count itself"
    assert applied(place.connection, meta, "s1", 0, 3, 7) == Applied(2)
    counts = {"decoded": 5, "filtered": 4, "compacted": 0, "inserted": 1, "updated": 0, "deleted": 0, "missing": 0}
    with place.connection.cursor() as cursor:
        add_to_ledger(cursor, meta, "s1", {"d.t": counts})
        add_left_out(cursor, meta, "s1", "changes", {("d.t", "filters.one"): 3})
        add_left_out(cursor, meta, "s1", "changes", {("d.t", "filters.one"): 1})
        add_left_out(cursor, meta, "s1", "events", {})
        cursor.execute(
            "SELECT decoded, filtered, compacted, inserted, updated, deleted, missing, changes"
            f" FROM {meta.ledger} JOIN {meta.left_out} ON name = target"
        )
        assert cursor.fetchall() == ((12, 4, 1, 3, 3, 1, 0, 4),)
