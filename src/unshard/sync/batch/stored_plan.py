"""The plan of a batch of rows as it is stored in the target, and the digests by which a later process checks it.

| key | there | what |
|---|---|---|
| `version` | from 2 on | the version of this form (`model.stored_form`) |
| `kind` | always | `rows` |
| `ranges` | always | file, first byte and end of each range |
| `shape` | always | how the batch is cut |
| `tables` | always | by source table, the digest of all that decides how its rows become SQL |
| `safe` | always | whether it is written in safe mode |
| `moved` | with rows that moved between shards | the changes that are excluded for it, as (first, last) of each run |
| `operators`, `left_out`, `stages` | with operators | their numbers, and the changes that they exclude |
| `xid` | for a prepared transaction | its name |
| `group` | in a re-sync of a sharding group | schema and table of the target |
| `end_gtid` | always | the GTID set after the batch |
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from unshard.errors import Where
from unshard.model.stored_form import VERSION, stamped, version_of
from unshard.model.table import TableName
from unshard.sync.batch.excluded_changes import MOVED, OPERATOR, ExclusionEpoch, LeftOutRows, Seqs, seqs_for
from unshard.sync.batch.plan import BatchPlan, BatchShape, TablePlan
from unshard.target.receipts import OpenBatch
from unshard.transform.expressions.filter import ExpressionFilter
from unshard.transform.row_filter import EventRowFilter, RowFilter

KIND = "rows"
"""Tells the plan of a batch of rows from that of a statement."""


@dataclass(frozen=True, slots=True)
class StoredRange:
    """Bytes `start` to `end` of a relay file."""

    file: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RowsRecord:
    """The stored plan of an open batch of rows; the module's table describes its fields.

    `digests` is the field that is stored as `tables`.
    """

    version: int
    ranges: tuple[StoredRange, ...]
    shape: BatchShape
    digests: Mapping[str, str]
    safe: bool
    end_gtid: str
    moved: Seqs = ()
    operators: tuple[int, ...] = ()
    left_out: Seqs = ()
    stages: tuple[ExclusionEpoch, ...] = ()
    xid: str = ""
    group: TableName | None = None

    @classmethod
    def of(cls, batch: OpenBatch) -> RowsRecord:
        """Return the plan of an open batch whose `kind` is `KIND`. Raises SyncError SYNC-075 for a later version's."""
        form = batch.plan
        version = version_of(form, "the open batch", Where(position=f"{batch.begin} to {batch.end}"))
        if version == 1:
            ranges = tuple(StoredRange(*one) for one in form["ranges"])
            shape = replace(BatchShape(*form["shape"]), locked_upserts=False)
        else:
            ranges = tuple(StoredRange(one["file"], one["start"], one["end"]) for one in form["ranges"])
            shape = _shape_of(form["shape"])
        return cls(
            version,
            ranges,
            shape,
            form["tables"],
            form["safe"],
            form["end_gtid"],
            _seqs_of(form.get("moved", ())),
            tuple(form.get("operators", ())),
            _seqs_of(form.get("left_out", ())),
            tuple(ExclusionEpoch(_seqs_of(seqs), tuple(base)) for seqs, base in form.get("stages", ())),
            form.get("xid", ""),
            TableName(*form["group"]) if "group" in form else None,
        )


def record_of(plan: BatchPlan, xid: str = "", group: TableName | None = None) -> dict[str, Any]:
    """Return the form that is stored before anything of a batch is applied, except `end_gtid`. JSON-ready."""
    form = {
        "kind": KIND,
        "ranges": [{"file": one.file, "start": one.start, "end": one.end} for one in plan.ranges],
        "shape": _shape_form(plan.shape),
        "tables": digests(plan),
        "safe": plan.safe,
    }
    if moved := seqs_for(MOVED, plan.filters):
        form["moved"] = moved
    if plan.operators:
        form["operators"] = plan.operators
        form["left_out"] = seqs_for(OPERATOR, plan.filters)
        form["stages"] = [[one.seqs, one.base] for one in plan.stages]
    if xid:
        form["xid"] = xid
    if group is not None:
        form["group"] = [group.schema, group.table]
    return stamped(form)


def digests(plan: BatchPlan, version: int = VERSION) -> dict[str, str]:
    """Return the digest of each table of the batch, by its name."""
    return {str(table.table.name): digest(table, version) for table in plan.tables}


def digest(plan: TablePlan, version: int = VERSION) -> str:
    """Return a digest of all that decides how rows become SQL; it is equal in every attempt at a batch.

    It does not cover the lengths of the target's columns: a target that was too narrow is widened while the batch is
    open.
    """
    form = _digested_1(plan) if version == 1 else _digested(plan, version)
    return hashlib.sha256(json.dumps(form).encode()).hexdigest()[:16]


def _digested(plan: TablePlan, version: int) -> dict[str, Any]:
    """Return the digest's form. The target decides whether a text's bytes are passed through: charset `binary`."""
    target, columns = plan.target, plan.table.columns
    charsets = {"charsets": [one.charset for one in columns]} if version > 3 else {}
    upserts = {"locked_upserts": True} if target.locked_upserts else {}
    kept = {"kept": sorted(plan.kept)} if plan.kept else {}
    return (
        upserts
        | kept
        | charsets
        | {
            "columns": [[one.name, one.definition, one.collation, one.generated] for one in columns],
            "target": [target.name.schema, target.name.table],
            "written": target.columns,
            "key": target.key,
            "ordered": target.ordered,
            "keyless": target.keyless,
            "documents": sorted(target.documents),
            "doubles": sorted(target.doubles),
            "unique_keys": [[tie.columns, tie.prefixes, tie.forms] for tie in target.ties],
            "foreign_keys_of": str(target.family or ""),
            "mapping": plan.mapping.mark if plan.mapping else None,
            "constants": [[one.column.name, _plain(one.value)] for one in plan.constants],
            "defaults": plan.defaults,
            "filters": [rule.to_dict() for rule in plan.filters],
            "after": str(plan.after or ""),
            "until": str(plan.until or ""),
        }
    )


def _plain(value: str | int | float | bytes | None) -> str | int | float | dict[str, str] | None:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def _digested_1(plan: TablePlan) -> list[Any]:
    """Return the form of version 1's digest: texts of Python's `repr`, under the names that its classes had then."""
    target = plan.target
    written = [plan.mapping.mark if plan.mapping else None, [(one.column.name, one.value) for one in plan.constants]]
    filters = ", ".join(map(_filter_1, plan.filters)) + ("," if len(plan.filters) == 1 else "")
    return [
        [[one.name, one.definition, one.collation, one.generated] for one in plan.table.columns],
        str(target.name),
        target.columns,
        target.key,
        target.ordered,
        target.keyless,
        sorted(target.documents),
        sorted(target.doubles),
        [[tie.columns, tie.prefixes, tie.forms] for tie in target.ties],
        str(target.family),
        repr(written),
        str(plan.after),
        *plan.defaults,
        f"({filters})",
        *([str(plan.until)] if plan.until is not None else []),
    ]


def _filter_1(rule: RowFilter) -> str:
    match rule:
        case LeftOutRows():
            return f"{'LeftOut' if rule.rule == OPERATOR else 'Moved'}(seqs={rule.seqs})"
        case EventRowFilter():
            return f"EventRowFilter(rule={rule.rule!r}, events={rule.events!r})"
        case ExpressionFilter():
            asked = ", ".join(f"(<Op.{op.name}: {op.value}>, {text!r})" for op, text in rule.expressions)
            asked += "," if len(rule.expressions) == 1 else ""
            return f"ExpressionFilter(rule={rule.rule!r}, expressions=({asked}), moments={rule.moments!r})"
    return str(rule.to_dict())


def _shape_form(shape: BatchShape) -> dict[str, Any]:
    return {
        "partitions": shape.partitions,
        "chunk_rows": shape.chunk_rows,
        "chunk_bytes": shape.chunk_bytes,
        "compact": shape.compact,
        "multiple_rows": shape.multiple_rows,
        "slice_bytes": shape.slice_bytes,
        "locked_upserts": shape.locked_upserts,
        "range_digits": shape.range_digits,
    }


def _shape_of(form: Mapping[str, Any]) -> BatchShape:
    return BatchShape(
        form["partitions"],
        form["chunk_rows"],
        form["chunk_bytes"],
        form["compact"],
        form["multiple_rows"],
        form["slice_bytes"],
        form.get("locked_upserts", False),  # older plans lack it, and the next
        form.get("range_digits", 0),
    )


def _seqs_of(form: Iterable[tuple[int, int]]) -> Seqs:
    return tuple((first, last) for first, last in form)
