"""What a batch is: ranges of relay files, the tables in them, and how their rows are shared out.

A `BatchPlan` is all that a task gets, and two attempts at one batch get equal plans: same ranges, partitions
and chunk sizes, hence the same chunks in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from unshard.binlog.payload import PayloadPart
from unshard.model.missing import OnMissingRow
from unshard.model.position import Position
from unshard.model.table import Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.sync.batch.excluded_changes import ExclusionEpoch, LeftOutRows, Seqs
from unshard.target.meta import MetaTables
from unshard.target.rate_limiter import RateLimiter
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.event_filter import RowFilter
from unshard.transform.extract import Constant, with_constants


@dataclass(frozen=True, slots=True)
class Range:
    """Bytes `start` to `end` of the relay file at `path`; changes in it are numbered from `seq_base`.

    `maps` are offsets of TABLE_MAPs before `start` that its first rows need. With a `part` it is that of one payload.
    `carried` are the bytes themselves, by offset, for tasks that can't read the file; empty where they can.
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
    """A unique key of a target: rows that share a value of it may not pass each other.

    `prefixes` holds, by column, the indexed length or 0, `forms` what its values are compared as (`sync.causality`):
    `exact`, `trimmed` or `folded`.
    """

    columns: tuple[str, ...]
    prefixes: tuple[int, ...]
    forms: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether equal values have equal texts."""
        return not any(self.prefixes) and set(self.forms) == {"exact"}


@dataclass(frozen=True, slots=True)
class TargetPlan:
    """How one target table is written.

    `columns` are those written, `key` those that name a row (all columns where there is no key). An `ordered`
    table lives in one partition and keeps the order of all of its changes. Where the key alone doesn't tell which
    changes may pass each other, `ties` are all unique keys, and step *causality* finds those that keep their order.
    Ordered tables of one `family`, which foreign keys connect, keep their order among each other.
    `why` tells people by what a row is found, and which changes keep their order.
    `bytewise` are key columns whose text has to be compared byte by byte, `documents`
    those that the target holds as JSON, `doubles` those that are FLOAT in the source and DOUBLE here, `times` those of
    `columns` that it may renew by itself with an UPDATE, `enums` those that may hold an ENUM's error value, `zeros`
    those of them with an empty member, with the text that the error value has instead (`mysql.types.zero_text`).
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
    why: str = field(default="", compare=False)

    @property
    def tied(self) -> bool:
        """Whether step *causality* has to look at the table."""
        return bool(self.ties) and not self.ordered

    @property
    def order_name(self) -> bytes:
        """What the partition of the table follows from, as long as all of it is ordered."""
        return str(self.family or self.name).encode()

    @property
    def by_condition(self) -> bool:
        """Whether an UPDATE finds its row by WHERE, and is no upsert.

        An upsert could meet another row by a second key. And TiDB's VALUES() makes the empty member out of an ENUM's
        number 0.
        """
        return len(self.ties) > 1 or bool(self.zeros)


@dataclass(frozen=True, slots=True)
class TablePlan:
    """An upstream table in a batch. Its events before `after` are in the target already (a later snapshot), those
    from `until` on are not for the batch.

    `defaults` are by column the SQL text that an INSERT takes for a column that its row image lacks; they are
    known in batches with such images only. `filters` are asked in order; the first that drops a change is counted.
    `constants` are columns of the target that the source's names fill. `id` numbers the tables of a batch.
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

    def takes(self, file: str, offset: int) -> bool:
        """Whether the table's event at that place is for the batch."""
        if self.after is None and self.until is None:
            return True
        place = Position(file, offset)
        return (self.after is None or place >= self.after) and (self.until is None or place < self.until)

    def mapped(self) -> TablePlan:
        """The plan for images behind step *map*, which has laid the constants beside the table's own columns."""
        return replace(self, table=with_constants(self.table, self.constants), mapping=None, constants=())


@dataclass(frozen=True, slots=True)
class BatchShape:
    """How a batch is cut: fixed for the batch when it is planned, kept in its plan.

    A batch of more than `slice_bytes` (a single large transaction) is decoded and applied slice by slice, so that
    memory holds one slice; 0 never does.
    """

    partitions: int
    chunk_rows: int
    chunk_bytes: int = 4 << 20
    compact: bool = True
    multiple_rows: bool = True
    slice_bytes: int = 0


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """One batch of one source, ready to run. `shares` is how many tasks divide the partitions.

    `row_events` is what the index counted in its ranges.

    The ranges of a `sliced` batch are applied one after the other, those of any other all at once. A `safe` batch may
    meet rows that have its changes already, or later ones: it is written so that this changes nothing. Without
    `receipts` (at-least-once delivery) chunks are applied by every attempt. `on_missing_row` is no part of how it is
    cut: it may be another one when the batch is taken up again.

    `rows_per_second` and `connections` are what its tasks together may use of the target, 0 for no limit; they are
    given when it is run, and change nothing of what is written. `gate` holds the limits of all who write to the target.
    A slice that is a job of its own goes on from the chunks that each partition has had `before`.
    `operators` are those that leave changes out of it, by a filter of its tables, or by `stages` where it was open
    already.
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

    def slices(self) -> tuple[tuple[Range, ...], ...]:
        """Ranges that are decoded, compacted and applied together, in order."""
        return tuple((piece,) for piece in self.ranges) if self.sliced else (self.ranges,)

    def by_name(self) -> dict[TableName, TablePlan]:
        return {plan.table.name: plan for plan in self.tables}

    def targets(self) -> dict[int, TargetPlan]:
        return {plan.target.id: plan.target for plan in self.tables}

    def partitions_of(self, share: int) -> tuple[int, ...]:
        """The partitions that task number `share` applies."""
        return tuple(range(share, self.shape.partitions, self.shares))


def seqs_for(rule: str, tables: tuple[TablePlan, ...]) -> Seqs:
    """The changes that are left out for that of a batch from its beginning on: the same for all of its tables."""
    rules = tables[0].filters if tables else ()
    return tuple(run for one in rules if isinstance(one, LeftOutRows) and one.rule == rule for run in one.seqs)
