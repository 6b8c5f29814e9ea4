"""The way of a statement past a source's rules, step by step in DM's order (its reference, section 5.1).

| step | where | what comes of it |
|---|---|---|
| parse | `parse.classify` | a `Ddl`, or a reason to pass it over |
| split | `rewrite.split` | a piece for each dropped table and each renamed pair |
| online DDL | `online_ddl` here, `online` | for a statement on a ghost of gh-ost: nothing, or what was kept |
| block-allow list | `block_allow` | pieces of names that are let through |
| event filter | `event_filter` | of a piece: all, nothing, or some parts of its ALTER |
| sequences, temporary tables | `sequence`, `temporary_table` | refused, where the event filter doesn't leave them out |
| route | `route_rename` here, names in `prepare` | no statement where the old and the new name are one on the target |
| sharding | `sync.sharded_statements` | with `shard-mode` it waits for the other tables of its group |
| | `sync.no_shard_mode` | without, refused where several tables share the target's |
| plan, carry out | `prepare`, `carry_out` | an intent, run once |

Between `STEPS` pieces only get fewer, or change what of them is run. Each says why (`AlterOperation.notes`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.online import OnlineDdl
from unshard.ddl.provenance import MarksOf, unmarked
from unshard.ddl.rewrite import Route, renames, split
from unshard.ddl.statement import Ddl, StatementKind
from unshard.errors import DdlError
from unshard.model.table import Table, TableName
from unshard.transform.event_filter import Verdict

StructureOf = Callable[[TableName], Table | None]
"""A source table as it is before the statement; None where nobody knows it."""


def _taken(_: Ddl, __: StructureOf) -> Verdict | None:
    return None


@dataclass(frozen=True, slots=True)
class StatementRules:
    """A source's rules, as functions.

    `judge` is asked for single operations (one part of an ALTER, one dropped table): what the event filter says of it,
    None where it is run. It may raise, which stops the task in front of the statement. `marks` tells what a table's
    rows carry of it. `online` is asked first of all. `collations` are those that the user wants a TiDB target to have
    in the place of others.
    """

    allows: Callable[[TableName], bool]
    allows_schema: Callable[[str], bool]
    route: Route
    route_schema: Callable[[str], str]
    judge: Callable[[Ddl, StructureOf], Verdict | None] = _taken
    marks: MarksOf = unmarked
    online: OnlineDdl = field(default_factory=OnlineDdl)
    collations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperationNote:
    """What a step did to a piece, and why."""

    step: str
    why: str


@dataclass(frozen=True, slots=True)
class AlterOperation:
    """One operation, in the source's names.

    Args:
        ddl: the operation, which the tracker follows.
        run: what of it is run on the target, in order: itself, some parts of an ALTER, or nothing.
        leaves: the table that gets a name by it which isn't let through: it is followed no longer.
        dropped: whether a step took it out whole, so that the tracker doesn't follow it either.
        parts: its operations, and what the event filter says of each.
        notes: what the steps did to it, in order.
        tracked: whether the source ran it; what an operator gives is for the target alone.
        given: whether an operator gives it: a human has written it for the target as it is.
    """

    ddl: Ddl
    run: tuple[Ddl, ...]
    leaves: TableName | None = None
    dropped: bool = False
    parts: tuple[tuple[Ddl, Verdict | None], ...] = ()
    notes: tuple[OperationNote, ...] = ()
    tracked: bool = True
    given: bool = False

    def noted(self, step: str, why: str) -> AlterOperation:
        return replace(self, notes=(*self.notes, OperationNote(step, why)))

    def drop(self, step: str, why: str) -> AlterOperation:
        return replace(self.noted(step, why), run=(), dropped=True)


Step = Callable[[AlterOperation, StatementRules, StructureOf], tuple[AlterOperation, ...]]

ONLINE_DDL, BLOCK_ALLOW, EVENT_FILTER, ROUTE = "online-ddl", "block-allow-list", "event-filter", "route"
"""Steps, as notes name them."""


def pieces(ddl: Ddl, rules: StatementRules, structure: StructureOf) -> tuple[AlterOperation, ...]:
    """What the rules leave of a statement, in order. Raises as `all_pieces`."""
    return tuple(piece for piece in all_pieces(ddl, rules, structure) if not piece.dropped)


def all_pieces(ddl: Ddl, rules: StatementRules, structure: StructureOf) -> tuple[AlterOperation, ...]:
    """Every piece of a statement, those too that a step drops.

    Raises DdlError DDL-011, DDL-013 and DDL-035, what `rules.judge` raises, and as `OnlineDdl.meaning`.
    """
    rules = replace(rules, allows=_with_passing(ddl, rules))
    found = tuple(AlterOperation(single, (single,)) for single in split(ddl))
    for step in STEPS:
        found = tuple(
            after for piece in found for after in ((piece,) if piece.dropped else step(piece, rules, structure))
        )
    return found


def online_ddl(piece: AlterOperation, rules: StatementRules, _: StructureOf) -> tuple[AlterOperation, ...]:
    """Of a statement on a ghost or on trash, what stands in its place."""
    meaning = rules.online.meaning(piece.ddl, rules.allows)
    if meaning is None:
        return (piece,)
    if not meaning.run:
        return (piece.drop(ONLINE_DDL, meaning.why),)
    return tuple(AlterOperation(ddl, (ddl,)).noted(ONLINE_DDL, meaning.why) for ddl in meaning.run)


def block_allow(piece: AlterOperation, rules: StatementRules, _: StructureOf) -> tuple[AlterOperation, ...]:
    """Whole pieces of names that are let through; those whose table leaves by RENAME; none of the others."""
    ddl = piece.ddl
    if ddl.kind.on_schema:
        return (piece,) if rules.allows_schema(ddl.schema) else (piece.drop(BLOCK_ALLOW, f"{ddl.schema} is kept out"),)
    shut = [name for name in ddl.tables if not rules.allows(name)]
    if not shut or (ddl.kind is StatementKind.SEQUENCE and len(shut) < len(ddl.tables)):
        return (piece,)
    if len(shut) == len(set(ddl.tables)):
        return (piece.drop(BLOCK_ALLOW, f"{', '.join(map(str, shut))} kept out"),)
    for old, new in renames(ddl):
        if shut == [new]:
            why = f"{old} leaves for {new}, which is kept out: its rows are followed no longer"
            return (replace(piece, leaves=old).noted(BLOCK_ALLOW, why),)
    values = {"table": ", ".join(map(str, shut)), "statement": ddl.text}
    raise DdlError("DDL-011", replace(ddl.context.where, table=str(ddl.tables[0])), values=values)


def event_filter(piece: AlterOperation, rules: StatementRules, structure: StructureOf) -> tuple[AlterOperation, ...]:
    """The parts that the filter takes; all of a statement stay one. The tracker follows it whole in any case."""
    single = alter_parts(piece.ddl)
    judged = tuple((part, rules.judge(part, structure)) for part in single)
    piece = replace(piece, parts=judged)
    taken = tuple(part for part, verdict in judged if verdict is None)
    if taken == single:
        return (piece,)
    by = ", ".join(dict.fromkeys(verdict.rule for _, verdict in judged if verdict is not None))
    rest = ", and the rest is run part by part" if taken else ""
    return (replace(piece, run=taken).noted(EVENT_FILTER, f"left out by {by}{rest}; the tracker follows it whole"),)


def sequence(piece: AlterOperation, rules: StatementRules, _: StructureOf) -> tuple[AlterOperation, ...]:
    """Sequences are not carried: nothing of one that the event filter leaves out. Raises DDL-013 for another."""
    if piece.ddl.kind is not StatementKind.SEQUENCE:
        return (piece,)
    if not piece.run:
        return (replace(piece, dropped=True),)
    name = str(next(name for name in piece.ddl.tables if rules.allows(name)))
    values = {"sequence": name, "statement": piece.ddl.text}
    raise DdlError("DDL-013", replace(piece.ddl.context.where, table=name), values=values)


def temporary_table(piece: AlterOperation, _: StatementRules, __: StructureOf) -> tuple[AlterOperation, ...]:
    """Nothing of one that the event filter leaves out. Raises DDL-035 for another."""
    if piece.ddl.kind is not StatementKind.TEMPORARY_TABLE:
        return (piece,)
    if not piece.run:
        return (replace(piece, dropped=True),)
    where = replace(piece.ddl.context.where, table=str(piece.ddl.tables[0]))
    raise DdlError("DDL-035", where, values={"statement": piece.ddl.text})


def route_rename(piece: AlterOperation, rules: StatementRules, _: StructureOf) -> tuple[AlterOperation, ...]:
    """Nothing is run of a RENAME whose two names are one on the target: shards that change their number."""
    if any(rules.route(old) != rules.route(new) for old, new in renames(piece.ddl)) or not renames(piece.ddl):
        return (piece,)
    single = (part for run in piece.run for part in alter_parts(run))
    piece = piece.noted(ROUTE, "old and new name are one on the target: there is nothing to rename there")
    return (replace(piece, run=tuple(part for part in single if not renames(part))),)


STEPS: tuple[Step, ...] = (online_ddl, block_allow, event_filter, sequence, temporary_table, route_rename)


def _with_passing(ddl: Ddl, rules: StatementRules) -> Callable[[TableName], bool]:
    """`rules.allows`, and names that a RENAME list only passes a table through on its way (a TO tmp, …, tmp TO b)."""
    origin: dict[TableName, TableName] = {}
    through: dict[TableName, set[TableName]] = {}
    for old, new in renames(ddl):
        first = origin.pop(old, old)
        origin[new] = first
        if old != first:
            through.setdefault(first, set()).add(old)
    passing = {
        name
        for new, first in origin.items()
        if rules.allows(new) and rules.allows(first)
        for name in through.get(first, ())
    }
    return lambda name: name in passing or rules.allows(name)
