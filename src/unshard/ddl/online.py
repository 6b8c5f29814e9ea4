"""Step *online DDL*: what the statements of gh-ost and pt-online-schema-change mean for the table that they alter.

These tools alter a copy of a table, the ghost table, and rename it to the table's name. The statements that they ran
on the ghost are recorded until then, and run on the table itself in place of the RENAME:

| statement | becomes |
|---|---|
| CREATE TABLE ghost | nothing; the record of an earlier ghost of that name is deleted |
| ALTER and index statements on the ghost | nothing; recorded |
| DROP, TRUNCATE of the ghost | nothing; DROP deletes the record |
| RENAME table TO trash | nothing |
| RENAME ghost TO table | the recorded statements, on the table |
| RENAME ghost TO trash | nothing; the record is deleted |
| anything on trash, RENAME trash TO table or trash | nothing |
| RENAME table TO ghost | DdlError DDL-023 |
| RENAME ghost or trash TO ghost | DdlError DDL-024 |
| RENAME ghost TO table, with nothing recorded | DdlError DDL-025 |
| EXCHANGE or CONVERT PARTITION between a table and its ghost or trash | DdlError DDL-041: rows move |

The block-allow list decides by the table, not by its ghost: a table that the list keeps out has no ghosts. In
`__t_new` the table may be `_t` or `t`: the list keeps the ghost out if it keeps out both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.rewrite import renames, routed, split
from unshard.ddl.statement import Ddl, StatementKind
from unshard.errors import DdlError, Where
from unshard.model.table import TableName
from unshard.transform.online_tables import OnlineTablePart, OnlineTables

_WITHOUT_EFFECT = frozenset({StatementKind.TRUNCATE_TABLE})


@dataclass(frozen=True, slots=True)
class Kept:
    """A recorded statement that was run on a ghost table, with the ghost's name in it, and its session."""

    sql: str
    context: Context

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {"sql": self.sql, "context": self.context.to_dict()}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Kept:
        """Read the form of `to_dict`."""
        return cls(form["sql"], Context.from_dict(form["context"]))


Records = Mapping[TableName, tuple[Kept, ...]]
"""The recorded statements by ghost table. In a set of changes, an empty tuple deletes a ghost's record."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """The replacement of a statement of an online DDL tool: the statements to `run`, in the source's names.

    `logged` has, for each of them, the statement that the source logged for it. `records` are the changes of the
    recorded statements; `why` is the reason for the replacement.
    """

    why: str = field(compare=False)
    run: tuple[Ddl, ...] = ()
    logged: tuple[Ddl, ...] = ()
    records: Records = field(default_factory=dict)


@dataclass(slots=True)
class OnlineDdl:
    """The online DDL of one source. `records` has the statements that the target has on record, by ghost table.

    `tables` distinguishes ghost, trash and real tables by their names. Used by the sync unit's thread.
    """

    tables: OnlineTables = field(default_factory=OnlineTables)
    records: dict[TableName, tuple[Kept, ...]] = field(default_factory=dict)

    def meaning(self, ddl: Ddl, allows: Callable[[TableName], bool]) -> Meaning | None:
        """Return the replacement of a single operation; None where it is on real tables only, and is run as it is.

        Changes nothing. Raises DdlError DDL-023, DDL-024, DDL-025, DDL-041.
        """
        if ddl.kind.on_schema or ddl.kind is StatementKind.TEMPORARY_TABLE:
            return None
        if all(self.tables.is_real(name) for name in ddl.tables):
            return None
        if not any(self._is_of_allowed(name, allows) for name in ddl.tables):
            return Meaning("it is on helper tables of one that block-allow-list keeps out")
        pairs = renames(ddl)
        if pairs:
            return self._renamed(ddl, *pairs[0])
        name = next(name for name in ddl.tables if not self.tables.is_real(name))
        real = next((one for one in ddl.tables if self.tables.is_real(one) and allows(one)), None)
        if ddl.kind is StatementKind.ALTER_TABLE and real is not None:
            values = {"table": str(real), "helper": str(name), "statement": ddl.text}
            raise DdlError("DDL-041", replace(ddl.context.where, table=str(real)), values=values)
        part, table, rule = self.tables.told(name)
        is_part = f"{name} is {part} of {table} ({rule})"
        if part is OnlineTablePart.TRASH or ddl.kind in _WITHOUT_EFFECT:
            return Meaning(f"{is_part}: nothing is run")
        if ddl.kind in (StatementKind.CREATE_TABLE, StatementKind.DROP_TABLE):
            why = f"{is_part}: nothing is run, and what was kept of an earlier {name} goes"
            return Meaning(why, records={name: ()} if name in self.records else {})
        kept = (*self.records.get(name, ()), Kept(ddl.text, ddl.context))
        return Meaning(f"{is_part}: kept until {name} takes its place", records={name: kept})

    def changes(self, ddl: Ddl, allows: Callable[[TableName], bool]) -> Records:
        """Return how a whole statement changes the records. Raises as `meaning`."""
        found = (self.meaning(single, allows) for single in split(ddl))
        return {ghost: kept for meaning in found if meaning is not None for ghost, kept in meaning.records.items()}

    def forgotten(self, ddl: Ddl) -> Records:
        """Return the deletion of its ghosts' records, for a statement that came before the snapshot of its table."""
        return {name: () for name in ddl.tables if name in self.records}

    def apply(self, changes: Records) -> None:
        """Apply changes of the records that the target has stored durably."""
        for ghost, kept in changes.items():
            if kept:
                self.records[ghost] = kept
            else:
                self.records.pop(ghost, None)

    def ghost_of(self, table: TableName) -> TableName | None:
        """Return a ghost of the table that statements are recorded for, None if there is none."""
        recorded = ((ghost, self.tables.told(ghost).table) for ghost, kept in self.records.items() if kept)
        return next((ghost for ghost, told in recorded if table in (told, _plain(told))), None)

    def real_names(self, ddl: Ddl) -> tuple[TableName, ...]:
        """Return the tables of a statement without ghost tables and trash."""
        return tuple(name for name in ddl.tables if self.tables.is_real(name))

    def _is_of_allowed(self, name: TableName, allows: Callable[[TableName], bool]) -> bool:
        """Return whether the list allows the table that this one is, or is a helper of.

        The name of a helper may begin with several underscores: pt-online-schema-change takes up to ten to find a name
        that is free.
        """
        part, table, _ = self.tables.told(name)
        plain = _plain(table)
        return allows(table) or (part is not OnlineTablePart.REAL and bool(plain.table) and allows(plain))

    def _renamed(self, ddl: Ddl, old: TableName, new: TableName) -> Meaning:
        values = {"old": str(old), "new": str(new), "statement": ddl.text}
        where = replace(ddl.context.where, table=str(old))
        match self.tables.told(old).part, self.tables.told(new).part:
            case OnlineTablePart.REAL, OnlineTablePart.GHOST:
                raise DdlError("DDL-023", where, values=values)
            case ((OnlineTablePart.GHOST | OnlineTablePart.TRASH), OnlineTablePart.GHOST):
                raise DdlError("DDL-024", where, values=values)
            case OnlineTablePart.GHOST, OnlineTablePart.TRASH:
                return Meaning(f"{old}, a ghost, becomes trash: what was kept of it goes", records={old: ()})
            case OnlineTablePart.GHOST, OnlineTablePart.REAL:
                kept = [_as_logged(one, ddl.context.where) for one in self.records.get(old, ())]
                beside = [part for part in alter_parts(ddl) if not renames(part)]
                if not kept and not beside:
                    raise DdlError("DDL-025", where, values=values)
                why = f"{old}, a ghost, takes the place of {new}: what was kept of it is run on {new}"
                run = tuple(_on_table(one, old, new) for one in (*kept, *beside))
                return Meaning(why, run, (*kept, *(ddl for _ in beside)), {old: ()})
        return Meaning(f"{old} becomes {new}, and one of them is trash: nothing is run")


def _plain(name: TableName) -> TableName:
    """Return the name without underscores in front."""
    return TableName(name.schema, name.table.lstrip("_"))


def _as_logged(kept: Kept, where: Where) -> Ddl:
    """Return a recorded statement with the ghost's name in it; `where` is the position of the RENAME."""
    return classify_ddl(kept.sql, replace(kept.context, where=where))


def _on_table(ddl: Ddl, ghost: TableName, table: TableName) -> Ddl:
    """Return a tool's statement with `table` in the place of `ghost`."""
    ddl = replace(ddl, context=replace(ddl.context, by_tool=True))
    return routed(ddl, lambda name: table if name == ghost else name, lambda schema: schema)
