"""The plan of a batch: ranges of relay files, the tables in them, and how their rows are distributed.

A `BatchPlan` is all that a task gets. Two attempts at one batch get equal plans: the same ranges, partitions and chunk
sizes, and therefore the same chunks in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from unshard.model.position import Position
from unshard.model.table import Table, TableName

if TYPE_CHECKING:  # a worker process loads what the plans that it gets have in them
    from unshard.binlog.payload import PayloadPart
    from unshard.config.units import OnMissingRow
    from unshard.mysql.connection import Endpoint
    from unshard.sync.batch.excluded_changes import ExclusionEpoch
    from unshard.target.meta import MetaTables
    from unshard.target.rate_limiter import RateLimiter
    from unshard.transform.column_mapping import ColumnMapping
    from unshard.transform.extract import Constant
    from unshard.transform.row_filter import RowFilter


@dataclass(frozen=True, slots=True)
class Range:
    """A byte range of a relay file, from `start` to `end`.

    `path` is where the file is, `file` its binlog name. Changes in the range are numbered from `seq_base`. `maps` are
    the offsets of the TABLE_MAPs before `start` that its first rows need. With a `part` the range is a part of one
    TRANSACTION_PAYLOAD. `carried` are the bytes themselves, by offset, for tasks that can't read the file; empty for
    others.
    """

    path: str
    file: str
    start: int
    end: int
    seq_base: int = 0
    maps: tuple[int, ...] = ()
    part: PayloadPart | None = None
    carried: tuple[tuple[int, bytes], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ConflictKey:
    """A unique key of a target: rows that share a value of it must keep their order.

    `prefixes`: by column, the indexed length or 0. `forms`: by column, the form in which its values are compared
    (`sync.changes.causality`): `exact`, `trimmed` or `folded`.
    """

    columns: tuple[str, ...]
    prefixes: tuple[int, ...]
    forms: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """True if equal values have equal texts."""
        return not any(self.prefixes) and set(self.forms) == {"exact"}


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """The plan for writing one target table.

    | field | what |
    |---|---|
    | `id` | the number of the target in the batch |
    | `columns` | the columns that are written |
    | `key` | the columns by which a row is found; all columns where there is no key (`keyless`) |
    | `ordered` | all changes of the table are in one partition and keep their order |
    | `bytewise` | key columns whose text is compared byte by byte |
    | `documents` | key columns that the target stores as JSON |
    | `doubles` | key columns that are FLOAT in the source and DOUBLE in the target |
    | `times` | written columns that the target may renew by itself with an UPDATE |
    | `enums` | written columns that may contain an ENUM's error value |
    | `zeros` | those `enums` that have an empty member, with the error value's text instead (`mysql.types.zero_text`) |
    | `ties` | all unique keys, where the key alone doesn't decide which changes keep their order (step *causality*) |
    | `family` | ordered tables of one family, which foreign keys connect, keep their order among each other |
    | `locked_upserts` | the table has several unique keys, and an upsert finds an existing row by `key` first |
    | `why` | says by what a row is found, and which changes keep their order |
    """

    id: int
    name: TableName
    columns: tuple[str, ...]
    key: tuple[str, ...]
    ordered: bool = False
    keyless: bool = False
    bytewise: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()
    doubles: frozenset[str] = frozenset()
    times: frozenset[str] = frozenset()
    enums: frozenset[str] = frozenset()
    zeros: tuple[tuple[str, str], ...] = ()
    ties: tuple[ConflictKey, ...] = ()
    family: TableName | None = None
    locked_upserts: bool = False
    why: str = field(default="", compare=False)

    @property
    def tied(self) -> bool:
        """True if step *causality* has to look at the table."""
        return bool(self.ties) and not self.ordered

    @property
    def order_name(self) -> bytes:
        """The name from which the table's partition follows if all of it is ordered."""
        return str(self.family or self.name).encode()

    @property
    def by_condition(self) -> bool:
        """True if an UPDATE finds its row by WHERE, and is no upsert.

        An upsert could change another row by a second key, unless its own row is locked. And TiDB's VALUES() turns an
        ENUM's number 0 into its empty member.
        """
        return (len(self.ties) > 1 and not self.locked_upserts) or bool(self.zeros)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The plan for an upstream table in a batch.

    Args:
        mapping: the column mapping of its rows.
        after: its events before this position are in the target already, by a later snapshot.
        defaults: by column, the SQL text that an INSERT uses for a column that its row image lacks; known only in
            batches with such images.
        filters: the row filters in order; a change is counted for the first filter that drops it.
        constants: columns of the target with one value for all rows of the table.
        until: its events from this position on are not for the batch.
        id: the number of the table in the batch.
        kept: those `constants` that an UPDATE does not change, because older rows may have other values.
        documents: JSON columns whose opaque values stop the task (step *documents*).
        clamped: columns of TIME that are clamped to the range of the target (step *clamp*).
    """

    table: Table
    target: TargetPlan
    mapping: ColumnMapping | None = None
    after: Position | None = None
    defaults: tuple[tuple[str, str], ...] = ()
    filters: tuple[RowFilter, ...] = ()
    constants: tuple[Constant, ...] = ()
    until: Position | None = None
    id: int = 0
    kept: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()
    clamped: frozenset[str] = frozenset()

    def takes(self, file: str, offset: int) -> bool:
        """Return whether the table's event at that position is for the batch."""
        if self.after is None and self.until is None:
            return True
        place = Position(file, offset)
        return (self.after is None or place >= self.after) and (self.until is None or place < self.until)


@dataclass(frozen=True, slots=True)
class BatchShape:
    """The division of a batch into partitions and chunks, and the form of its statements.

    It is decided when the batch is planned, and stored in the batch's plan.

    Args:
        partitions: the number of partitions.
        chunk_rows, chunk_bytes: the largest size of a chunk.
        compact: whether step *compact* runs.
        multiple_rows: whether a statement may write many rows.
        slice_bytes: a larger batch, which is a single large transaction, is decoded and applied slice by slice, so that
            only one slice is in memory at a time; 0: never.
        locked_upserts: whether UPDATEs of free rows of tables with several unique keys are upserts, where
            `TargetPlan.locked_upserts` allows it.
        range_digits: keys that differ only in this many last decimal digits are in one partition, so that few
            connections write to one page of the target; 0: partitions are by the hash of the key.
    """

    partitions: int
    chunk_rows: int
    chunk_bytes: int = 4 << 20
    compact: bool = True
    multiple_rows: bool = True
    slice_bytes: int = 0
    locked_upserts: bool = True
    range_digits: int = 0


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """One batch of one source, ready to run.

    `epoch`, `batch_id`: the claim and the number under which receipts are written. `begin`, `end`: its range of the
    log. `ranges`: the bytes to decode. `checksum`: the events end with one. `shares`: the number of tasks among which
    the partitions are divided. `row_events`: the number of row events in the ranges, as the index counted them.
    `shuffled`: rows are moved between tasks. The ranges of a `sliced` batch are applied one after the other, those of
    any other batch all at once. A `safe` batch may meet rows that have its changes already, or later changes, and is
    written so that this does no harm. Without `receipts` (at-least-once delivery) every attempt applies all chunks.
    `on_missing_row` does not affect the cutting, and may have changed when a later process finishes the batch.

    `rows_per_second` and `connections` limit how its tasks together use the target; 0: no limit. They are set when the
    batch is run, and do not affect what is written. `gate` has the limits that all writers of the target share.
    `operators` are the operators that exclude changes from the batch: by a filter of its tables, or by `stages` if they
    were given while the batch was open. In a slice that is a job of its own, a partition's chunks are numbered after
    the `before` chunks of earlier slices. With `reports_keys` the tasks report which keys they have changed. `here`
    marks a small batch, whose only task runs in the driver's process.
    """

    source: str
    epoch: int
    batch_id: int
    begin: Position
    end: Position
    ranges: tuple[Range, ...]
    checksum: bool
    shape: BatchShape
    tables: tuple[TablePlan, ...]
    meta: MetaTables
    target: Endpoint = field(repr=False)
    row_events: int = 0
    shares: int = 1
    shuffled: bool = False
    sliced: bool = False
    safe: bool = False
    on_missing_row: OnMissingRow = "warn"
    receipts: bool = True
    rows_per_second: float = 0
    connections: int = 0
    gate: RateLimiter | None = None
    stages: tuple[ExclusionEpoch, ...] = ()
    operators: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    reports_keys: bool = False
    here: bool = False

    @property
    def writer(self) -> str:
        """The owner of the connections that write the batch (`target.writer`)."""
        return writer_name(self.meta, self.source, self.epoch) if self.here else ""

    @property
    def filters(self) -> tuple[RowFilter, ...]:
        """The row filters of its first table. Those that exclude changes by their numbers are the same for all."""
        return self.tables[0].filters if self.tables else ()

    def slices(self) -> tuple[tuple[Range, ...], ...]:
        """Return the ranges that are decoded, compacted and applied together, in order."""
        return tuple((piece,) for piece in self.ranges) if self.sliced else (self.ranges,)

    def by_name(self) -> dict[TableName, TablePlan]:
        """Return the plans of its tables by upstream name."""
        return {plan.table.name: plan for plan in self.tables}

    def targets(self) -> dict[int, TargetPlan]:
        """Return the plans of its target tables by id."""
        return {plan.target.id: plan.target for plan in self.tables}

    def partitions_of(self, share: int) -> tuple[int, ...]:
        """Return the partitions that task number `share` applies."""
        return tuple(range(share, self.shape.partitions, self.shares))


def writer_name(meta: MetaTables, source: str, epoch: int) -> str:
    """Return the owner of the connections by which the driver's process writes rows of a source that it has claimed."""
    return f"{meta.schema}/{meta.task}/{source}/{epoch}"
