"""Row changes as a user's tables have them, carried from images to a real target by the pipeline's own steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa

from support.reference import ConflictError, ReferenceDatabase, RowChange
from unshard.config.units import OnMissingRow
from unshard.errors import Where
from unshard.model.change import Op
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.mysql.types import arrow_type
from unshard.sync.batch.plan import BatchPlan, BatchShape, TablePlan
from unshard.sync.batch.row_counts import RowCounts, add_up
from unshard.sync.changes.causality import tie_rows
from unshard.sync.changes.decode import Images
from unshard.sync.changes.gather import encode_changes
from unshard.sync.changes.stages import encode_stages
from unshard.sync.planning.planner import written_as
from unshard.sync.planning.target_plan import plan_target
from unshard.sync.steps.pipeline import apply_partitions
from unshard.target import receipts
from unshard.target.meta import MetaTables
from unshard.testing.throwaway_server import ThrowawayServer

BEGIN, END = Position("mysql-bin.000001", 4), Position("mysql-bin.000001", 999)


class Target:
    """Tables in a schema of their own, with a source's receipts beside them."""

    def __init__(self, server: ThrowawayServer, schema: str, definitions: dict[str, str]) -> None:
        server.run(f"CREATE DATABASE {schema}")
        self.server, self.schema = server, schema
        self.connection = server.connection(schema)
        self.meta = MetaTables(schema, "task")
        self.meta.create(self.connection)
        self.claim = receipts.claim(self.connection, self.meta, "s1")
        self.tables: dict[str, Table] = {}
        for name, columns in definitions.items():
            server.run(f"CREATE TABLE {schema}.{name} ({columns})")
            table = read_table(self.connection, TableName(schema, name))
            assert table is not None
            self.tables[name] = table
        self._numbers = itertools.count(1)

    def batch(self, shape: BatchShape, on_missing_row: OnMissingRow = "warn") -> BatchPlan:
        """A new batch, opened; the one before is closed."""
        number = next(self._numbers)
        with self.connection.cursor() as cursor:
            cursor.execute(f"UPDATE {self.meta.batch} SET state = 'done'")
        found = receipts.OpenBatch(number, BEGIN, END, {})
        receipts.open_batch(self.connection, self.meta, "s1", self.claim.epoch, found, shape.partitions)
        plans = [TablePlan(table, plan_target(table, table, Where())) for table in self.tables.values()]
        plans = [written_as(table, shape, safe=False) for table in plans]
        return BatchPlan(
            source="s1",
            epoch=self.claim.epoch,
            batch_id=number,
            begin=BEGIN,
            end=END,
            ranges=(),
            checksum=False,
            shape=shape,
            tables=tuple(_numbered(plans)),
            meta=self.meta,
            target=self.server.endpoint,
            on_missing_row=on_missing_row,
        )

    def run(self, plan: BatchPlan, changes: Sequence[RowChange]) -> dict[str, RowCounts]:
        """Encode and apply; what each table's ledger has."""
        chunks = dict.fromkeys(range(plan.shape.partitions), 0)
        ledger = add_up([apply_partitions(plan, encoded(plan, changes), chunks)])
        names = {target.id: target.name.table for target in plan.targets().values()}
        return {names[target]: entry for target, entry in ledger.items()}

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {name}")
            return sorted(cursor.fetchall(), key=repr)

    def fill(self, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """These rows and no others."""
        marks = ", ".join(["%s"] * len(self.tables[name].columns))
        with self.connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {name}")
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", list(rows))


def _numbered(plans: Iterable[TablePlan]) -> Iterator[TablePlan]:
    for number, plan in enumerate(plans):
        yield replace(plan, target=replace(plan.target, id=number))


def encoded(plan: BatchPlan, changes: Sequence[RowChange]) -> pa.Table:
    """The changes behind steps *causality* and *encode*, in their order."""
    batches: list[Images] = []
    for table in plan.tables:
        images: list[tuple[Any, ...]] = []
        for seq, change in enumerate(changes):
            if change.table != table.table.name:
                continue
            both = change.op == Op.UPDATE
            if change.before is not None:
                images.append((Op.UPDATE_BEFORE if both else Op.DELETE, seq, *change.before))
            if change.after is not None:
                images.append((Op.UPDATE_AFTER if both else Op.INSERT, seq, *change.after))
        if images:
            types = [pa.int8(), pa.int64(), *(arrow_type(column) for column in table.table.columns)]
            arrays = [pa.array(list(c), kind) for c, kind in zip(zip(*images, strict=True), types, strict=True)]
            names = ["op", "seq", *(column.name for column in table.table.columns)]
            batches.append((table, pa.RecordBatch.from_arrays(arrays, names)))
    ties = tie_rows(plan, batches)
    found = encode_changes(plan, batches, None, ties)[0]
    return encode_stages(plan, batches, None, ties, frozenset(), found) if plan.stages else found


def valid_changes(reference: ReferenceDatabase, wished: Iterable[RowChange]) -> list[RowChange]:
    """Those of the wished changes that a server would carry out one after the other; the reference has them then."""
    done = []
    for change in wished:
        with suppress(ConflictError):
            _apply_whole(reference, change)
            done.append(change)
    return done


def _apply_whole(reference: ReferenceDatabase, change: RowChange) -> None:
    """As one statement: an UPDATE that is refused leaves the old row."""
    try:
        reference.apply(change)
    except ConflictError:
        if change.op == Op.UPDATE and change.before is not None:
            table = reference.tables[change.table]
            with suppress(ConflictError):
                if not table.rows[change.before]:
                    table.insert(change.before)
        raise
