"""The plan of a target table: how rows of a source table are written to it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from unshard.errors import SyncError, Where
from unshard.model.shape import misfits, without_made_up_key
from unshard.model.table import Column, Index, Table
from unshard.mysql.types import zero_text
from unshard.schema.zoned import zone_faults
from unshard.sync.batch.plan import ConflictKey, TablePlan, TargetPlan
from unshard.transform.extract import Constant

RENEWED = frozenset({"timestamp", "datetime"})
"""Types that can have ON UPDATE CURRENT_TIMESTAMP."""

FLOATING = frozenset({"float", "double"})
EXACT_TEXTS = frozenset({"float", "double", "decimal", "bit", "enum", "binary"})
ODD_COLLATIONS = ("hungarian", "_hu_", "lithuanian", "_lt_", "macce")
"""Parts of the names of collations in which `ccs` is `cscs`, `ch` is `c` or M is N: no simple form is coarser."""


_OVERLAPS, _BY_HASH, _NOT_CLUSTERED = "WITHOUT OVERLAPS", "USING HASH", "NONCLUSTERED"
_FREE = "it has one unique key, whose values are equal just where their texts are: its rows may pass each other"
_KEYLESS = "it has no PRIMARY KEY and no UNIQUE key of NOT NULL columns, so all of its changes keep their order"
UNLIKE = "its source tables write the values of its keys in different types: all of its changes keep their order"


def plan_target(
    upstream: Table,
    target: Table,
    where: Where,
    plain: Collection[str] = frozenset(),
    zone: Callable[[], str] = lambda: "",
) -> TargetPlan:
    """Return how rows of `upstream` are written to `target`. Raises SyncError SYNC-007 where they can't be.

    `plain` are columns, in lower case, whose values are equal only where their texts are; `zone` gives the time zone of
    the source's sessions.
    """
    target = without_made_up_key(target, upstream)
    written = [column for column in upstream.columns if not column.generated]
    faults = misfits(upstream, target) or zone_faults(upstream, target, zone)
    names = {column.name.lower() for column in upstream.columns}
    key = target.identity
    faults += [f"key column {name} is not in the source" for name in key if name.lower() not in names]
    if not faults:
        faults += _reordered(upstream, target, key or tuple(column.name for column in written))
    if faults:
        raise SyncError("SYNC-007", where, cause="; ".join(faults), values={"target": str(target.name)})
    columns = tuple(column.name for column in written)
    times = frozenset(column.name for column in written if column.type in RENEWED)
    enums = frozenset(column.name for column in written if column.type == "enum")
    zeros = tuple(
        (column.name, zero)
        for column in written
        if column.type == "enum" and column.members and (zero := zero_text(column))
    )
    if not key:
        text = frozenset(column.name for column in written if column.text_with_collation)
        json = frozenset(name for name in columns if target.column(name).type == "json")
        plan = TargetPlan(0, target.name, columns, columns, ordered=True, keyless=True, times=times, why=_KEYLESS)
        plan = replace(plan, enums=enums, zeros=zeros)
        return replace(plan, bytewise=text, documents=json, doubles=_doubles(upstream, target, columns))
    own = tuple(upstream.column(name).name for name in key)
    plan = TargetPlan(0, target.name, columns, own, times=times, enums=enums, zeros=zeros, why=_FREE)
    plan = replace(plan, doubles=_doubles(upstream, target, own))
    if _OVERLAPS in target.create_sql.upper():
        return replace(plan, ordered=True, why=f"a key of it is {_OVERLAPS}: all of its changes keep their order")
    texts = [target.column(name) for name in key if name.lower() not in plain]
    if len(target.unique_keys) == 1 and not any(map(_ambiguous, texts)):
        return plan
    ties = [_tie(upstream, target, index) for index in target.unique_keys]
    known = tuple(tie for tie in ties if tie is not None)
    if len(known) < len(ties):
        odd = [index.name for index, tie in zip(target.unique_keys, ties, strict=True) if tie is None]
        why = f"texts don't tell which rows share a value of {_either(odd)}, so all of its changes keep their order"
        return replace(plan, ordered=True, why=why)
    why = f"rows that may share a value of {_either([index.name for index in target.unique_keys])} keep their order"
    return replace(plan, ties=known, locked_upserts=len(known) > 1 and _met_by_key(target), why=why)


def _met_by_key(target: Table) -> bool:
    """Return whether INSERT … ON DUPLICATE KEY UPDATE finds an existing row by its identity before any other key.

    The identity must be the primary key: one with a prefix of a column finds other rows. InnoDB writes the index that
    holds the rows first, and TiDB asks for the row's handle first: a clustered primary key. MariaDB asks unique keys
    that are hashed before it.
    """
    text = target.create_sql.upper()
    primary = (index for index in target.unique_keys if index.primary and not any(index.prefixes))
    own = any(index.columns == target.identity for index in primary)
    return own and _BY_HASH not in text and _NOT_CLUSTERED not in text


def _either(names: Sequence[str]) -> str:
    names = sorted(names, key=str.lower)  # servers list keys in various orders
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _reordered(upstream: Table, target: Table, names: Iterable[str]) -> list[str]:
    """Return a fault for each SET column by which rows are found and whose values have another text in the target."""
    found = []
    for column, other in ((upstream.column(name), target.column(name)) for name in names):
        if column.type == "set":
            common = [member for member in other.members if member in column.members]
            if common != list(column.members):
                found.append(
                    f"column {column.name}, which rows are found by, is {column.definition}, in the target"
                    f" {other.definition}, with its members in another order"
                )
    return found


def _doubles(upstream: Table, target: Table, names: Iterable[str]) -> frozenset[str]:
    return frozenset(n for n in names if upstream.column(n).type == "float" and target.column(n).type == "double")


def plain_constants(added: Iterable[Constant]) -> frozenset[str]:
    """Return constants that no collation makes equal to another one: anything but text, and digits."""
    values = ((one.column.name.lower(), one.value) for one in added)
    return frozenset(
        name for name, value in values if not isinstance(value, str) or (value.isascii() and value.isdigit())
    )


def _tie(upstream: Table, target: Table, index: Index) -> ConflictKey | None:
    """Return a unique key's conflict key; None where images don't show it: the target makes it, or folds it oddly."""
    there = {column.name.lower(): column for column in upstream.columns if not column.generated}
    own = [there.get((name or "").lower()) for name in index.columns]
    forms = [_form(target.column(column.name)) for column in own if column is not None]
    if len(forms) < len(own) or None in forms:
        return None
    names = tuple(column.name for column in own if column is not None)
    return ConflictKey(names, index.prefixes, tuple(form for form in forms if form is not None))


def _form(column: Column) -> str | None:
    """Return the form in which step *causality* compares values of a key's column; None where none is coarse enough."""
    if column.generated or column.type == "set":
        return None
    if not column.text_with_collation or column.type == "enum":
        return "exact"
    collation = column.collation or ""
    if collation.endswith("_bin"):
        return "trimmed"
    return None if any(name in collation for name in ODD_COLLATIONS) else "folded"


def alike(plans: Iterable[TablePlan]) -> bool:
    """Return whether the source tables of one target write equal values of its keys as equal texts."""
    written = set()
    for plan in plans:
        names = {name for tie in plan.target.ties for name in tie.columns} or set(plan.target.key)
        columns = [column for column in plan.table.columns if column.name in names]
        forms = tuple((c.name.lower(), c.type if c.type in EXACT_TEXTS else "", c.scale, c.fsp) for c in columns)
        written.add((plan.target.tied, forms))
    return len(written) == 1


def _ambiguous(column: Column) -> bool:
    """Return whether two different texts may be one key: collations fold case and blanks, floats have two zeros."""
    folds = column.text_with_collation and column.type not in ("enum", "set")
    return folds or column.type in FLOATING
