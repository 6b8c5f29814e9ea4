"""The effect of a source's rules on a statement, step by step in DM's order (its reference, section 5.1).

| step | where | result |
|---|---|---|
| parse | `parse.classify` | a `Ddl`, or a reason to skip it |
| split | `rewrite.split` | an operation for each dropped table and each renamed pair |
| online DDL | `online_ddl` here, `online` | a statement on a shadow table is recorded until its RENAME |
| block-allow list | `block_allow` | the operations on names that the list allows |
| event filter | `event_filter` | the operation, nothing, or an ALTER with some of its parts |
| sequences, temporary tables | `sequence`, `temporary_table` | an error, unless the event filter drops them |
| route | `route_rename` here, names in `prepare` | a RENAME within one target table is dropped |
| sharding | `sync.sharding.statements` | with `shard-mode`: waits for the other tables of its sharding group |
| | `sync.statements.refused` | without `shard-mode`: an error if several tables are merged into the target table |
| | `with_routed_away` here | without `shard-mode`: DROP DATABASE, and DROP TABLE of what is routed to other schemas |
| plan, execute | `prepare`, `plan`, `execute` | an intent, run once |

The functions of `STEPS` drop operations or change the statement of one, and note the reason (`AlterOperation.notes`).
The statements of a binlog operator (`binlog replace`) skip these steps; `parse_given` requires a schema before each
table name in them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.context import Context
from unshard.ddl.online import OnlineDdl
from unshard.ddl.parse import classify_ddl
from unshard.ddl.provenance import MarksOf, unmarked
from unshard.ddl.rewrite import Route, renames, split
from unshard.ddl.statement import Ddl, StatementKind
from unshard.errors import DdlError
from unshard.model.table import Table, TableName
from unshard.schema.lex import tokens
from unshard.transform.event_filter import Verdict

StructureOf = Callable[[TableName], Table | None]
"""Returns a source table as it is before the statement; None where nobody knows it."""


def _taken(_: Ddl, __: Ddl, ___: StructureOf) -> Verdict | None:
    return None


@dataclass(frozen=True, slots=True)
class StatementRules:
    """A source's rules, as functions.

    Args:
        allows, allows_schema: whether the block-allow list allows a table, a schema.
        route, route_schema: a table's, a schema's name on the target.
        judge: asked about a logged statement and a single operation of it (one part of an ALTER, one dropped table):
            the event filter's verdict, None where the operation is run. It may raise, which stops the task before the
            statement.
        marks: the values in a table's rows that depend on the table's names (`provenance.Marks`).
        online: the online DDL of the source, which is asked before all other rules.
        collations: by collation of the source, the one that the user wants on a TiDB target in its place.
    """

    allows: Callable[[TableName], bool]
    allows_schema: Callable[[str], bool]
    route: Route
    route_schema: Callable[[str], str]
    judge: Callable[[Ddl, Ddl, StructureOf], Verdict | None] = _taken
    marks: MarksOf = unmarked
    online: OnlineDdl = field(default_factory=OnlineDdl)
    collations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OperationNote:
    """A note on an operation: the step that changed it, and the reason."""

    step: str
    why: str


@dataclass(frozen=True, slots=True)
class AlterOperation:
    """One operation of a statement, in the source's names.

    Args:
        ddl: the operation, which the tracker follows.
        run: the statements that run on the target for it, in order: the operation itself, some parts of an ALTER, or
            nothing.
        leaves: the table that the operation renames to a name that is not allowed: it is no longer followed.
        dropped: whether a step dropped the whole operation, so that the tracker doesn't follow it either.
        parts: its single operations, each with the event filter's verdict.
        notes: what the steps did to it, in order.
        tracked: whether the source ran it; a statement that an operator gives is for the target alone.
        given: whether an operator gives it: a human has written it for the target as it is.
        logged: the statement of the log that it is an operation of. What an online DDL tool ran on a ghost table was
            logged before the RENAME by which it counts. None: the operation itself.
    """

    ddl: Ddl
    run: tuple[Ddl, ...]
    leaves: TableName | None = None
    dropped: bool = False
    parts: tuple[tuple[Ddl, Verdict | None], ...] = ()
    notes: tuple[OperationNote, ...] = ()
    tracked: bool = True
    given: bool = False
    logged: Ddl | None = None

    @property
    def is_filtered(self) -> bool:
        """True if the event filter leaves the operation out, or a part of it."""
        return any(verdict is not None for _, verdict in self.parts)

    def noted(self, step: str, why: str) -> AlterOperation:
        """Return the operation with a further note."""
        return replace(self, notes=(*self.notes, OperationNote(step, why)))

    def drop(self, step: str, why: str) -> AlterOperation:
        """Return the operation with nothing to run, and the note why."""
        return replace(self.noted(step, why), run=(), dropped=True)


_TABLE_FILES = "DISCARD and IMPORT move table files, which are not in the log"

Step = Callable[[AlterOperation, StatementRules, StructureOf], tuple[AlterOperation, ...]]

ONLINE_DDL, BLOCK_ALLOW, EVENT_FILTER, ROUTE = "online-ddl", "block-allow-list", "event-filter", "route"
"""Names of the steps, as in notes."""


def pieces(ddl: Ddl, rules: StatementRules, structure: StructureOf) -> tuple[AlterOperation, ...]:
    """Return the operations of a statement that the rules leave, in order. Raises as `all_pieces`."""
    return tuple(piece for piece in all_pieces(ddl, rules, structure) if not piece.dropped)


def all_pieces(ddl: Ddl, rules: StatementRules, structure: StructureOf) -> tuple[AlterOperation, ...]:
    """Return every operation of a statement, also those that a step drops.

    Raises DdlError DDL-002, DDL-011, DDL-013 and DDL-035, what `rules.judge` raises, and as `OnlineDdl.meaning`.
    """
    rules = replace(rules, allows=_with_passing(ddl, rules))
    found = tuple(AlterOperation(single, (single,), logged=ddl) for single in split(ddl))
    for step in STEPS:
        found = tuple(
            after for piece in found for after in ((piece,) if piece.dropped else step(piece, rules, structure))
        )
    return found


def online_ddl(piece: AlterOperation, rules: StatementRules, _: StructureOf) -> tuple[AlterOperation, ...]:
    """Replace a statement on a ghost table or on trash by what it means for the table."""
    meaning = rules.online.meaning(piece.ddl, rules.allows)
    if meaning is None:
        return (piece,)
    if not meaning.run:
        return (piece.drop(ONLINE_DDL, meaning.why),)
    told = zip(meaning.run, meaning.logged, strict=True)
    return tuple(AlterOperation(ddl, (ddl,), logged=logged).noted(ONLINE_DDL, meaning.why) for ddl, logged in told)


def block_allow(piece: AlterOperation, rules: StatementRules, _: StructureOf) -> tuple[AlterOperation, ...]:
    """Keep operations on allowed names, and those that rename a table to a name that is not allowed; drop the others.

    Raises DdlError DDL-011 for one that mixes names in any other way.
    """
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
    """Keep the parts that the filter lets run; if it lets all, the statement stays one. It is tracked whole."""
    single = alter_parts(piece.ddl)
    judged = tuple((part, rules.judge(piece.logged or piece.ddl, part, structure)) for part in single)
    piece = replace(piece, parts=judged)
    taken = tuple(part for part, verdict in judged if verdict is None)
    if taken == single:
        return (piece,)
    by = ", ".join(dict.fromkeys(verdict.rule for _, verdict in judged if verdict is not None))
    rest = ", and the rest is run part by part" if taken else ""
    return (replace(piece, run=taken).noted(EVENT_FILTER, f"left out by {by}{rest}; the tracker follows it whole"),)


def sequence(piece: AlterOperation, rules: StatementRules, _: StructureOf) -> tuple[AlterOperation, ...]:
    """Drop a statement on sequences that the event filter leaves out. Raises DDL-013 for one that it takes."""
    if piece.ddl.kind is not StatementKind.SEQUENCE:
        return (piece,)
    if not piece.run:
        return (replace(piece, dropped=True),)
    name = str(next(name for name in piece.ddl.tables if rules.allows(name)))
    values = {"sequence": name, "statement": piece.ddl.text}
    raise DdlError("DDL-013", replace(piece.ddl.context.where, table=name), values=values)


def temporary_table(piece: AlterOperation, _: StatementRules, __: StructureOf) -> tuple[AlterOperation, ...]:
    """Drop a temporary table's statement that the event filter leaves out. Raises DDL-035 for one that it takes."""
    if piece.ddl.kind is not StatementKind.TEMPORARY_TABLE:
        return (piece,)
    if not piece.run:
        return (replace(piece, dropped=True),)
    where = replace(piece.ddl.context.where, table=str(piece.ddl.tables[0]))
    raise DdlError("DDL-035", where, values={"statement": piece.ddl.text})


def table_files(piece: AlterOperation, _: StatementRules, __: StructureOf) -> tuple[AlterOperation, ...]:
    """Drop a DISCARD or IMPORT that the event filter leaves out. Raises DDL-002 for one of a table that it takes."""
    if piece.ddl.kind is not StatementKind.TABLE_FILES:
        return (piece,)
    if not piece.run:
        return (replace(piece, dropped=True),)
    where = replace(piece.ddl.context.where, table=str(piece.ddl.tables[0]))
    raise DdlError("DDL-002", where, _TABLE_FILES, {"statement": piece.ddl.text})


def route_rename(piece: AlterOperation, rules: StatementRules, _: StructureOf) -> tuple[AlterOperation, ...]:
    """Run nothing of a RENAME whose two names are one on the target: a shard gets another number."""
    if any(rules.route(old) != rules.route(new) for old, new in renames(piece.ddl)) or not renames(piece.ddl):
        return (piece,)
    single = (part for run in piece.run for part in alter_parts(run))
    piece = piece.noted(ROUTE, "old and new name are one on the target: there is nothing to rename there")
    return (replace(piece, run=tuple(part for part in single if not renames(part))),)


def with_routed_away(
    found: Sequence[AlterOperation], known: Collection[TableName], rules: StatementRules
) -> tuple[AlterOperation, ...]:
    """Return the operations with a DROP TABLE for each table of a dropped schema that is routed to another schema.

    On the target a DROP DATABASE takes only what is in the one schema that the source's schema is routed to. `known`
    are the source's tables. An operator's statement stays as it is.
    """
    return tuple(
        piece
        if piece.given
        else replace(piece, run=tuple(one for ddl in piece.run for one in _drops(ddl, known, rules)))
        for piece in found
    )


def _drops(ddl: Ddl, known: Collection[TableName], rules: StatementRules) -> Iterator[Ddl]:
    if ddl.drops_schema:
        there = rules.route_schema(ddl.schema)
        for name in sorted(name for name in known if name.schema == ddl.schema and name.table and rules.allows(name)):
            if rules.route(name).schema != there:
                yield classify_ddl(f"DROP TABLE IF EXISTS {name.quoted}", ddl.context)
    yield ddl


STEPS: tuple[Step, ...] = (online_ddl, block_allow, event_filter, sequence, temporary_table, table_files, route_rename)


def _with_passing(ddl: Ddl, rules: StatementRules) -> Callable[[TableName], bool]:
    """Return `rules.allows`, extended to the intermediate names of a RENAME list (a TO tmp, …, tmp TO b)."""
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


def parse_given(text: str, context: Context) -> Ddl:
    """Parse one statement; `context` has no schema. Raises DdlError DDL-026: it is no DDL, or a name has no schema."""
    try:
        ddl = classify_ddl(text, context)
    except DdlError as error:
        raise DdlError("DDL-026", context.where, error.cause, {"statement": text}) from error
    if ddl.kind is StatementKind.TABLE_FILES:
        raise DdlError("DDL-026", context.where, _TABLE_FILES, {"statement": text})
    return ddl


def given_pieces(ddl: Ddl, rules: StatementRules, structure: StructureOf) -> tuple[AlterOperation, ...]:
    """Return the operations of a given statement; only the block-allow list and routes apply, online DDL does not.

    Raises DdlError DDL-033 where the rules drop an operation, and as `ddl.pieces.all_pieces`.
    """
    found = all_pieces(ddl, replace(rules, online=OnlineDdl()), structure)
    for piece in found:
        if piece.dropped:
            raise DdlError("DDL-033", ddl.context.where, piece.notes[-1].why, {"statement": ddl.text})
    return tuple(replace(piece, given=True) for piece in found)


def split_given(text: str) -> tuple[str, ...]:
    """Split a text into statements at semicolons outside of strings and comments. Raises ValueError: unreadable."""
    found, start = [], 0
    ends = [(token.start, token.end) for token in tokens(text) if token.is_symbol(";")]
    for end, after in [*ends, (len(text), len(text))]:
        if one := text[start:end].strip():
            found.append(one)
        start = after
    return tuple(found)
