"""Names that the source tells apart by case, and the target does not: TiDB, and servers with `lower_case_table_names`.

There, the rows of two such tables would go into one, and a DROP of one would take those of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unshard.ddl.pieces import AlterOperation
from unshard.ddl.rewrite import renames
from unshard.ddl.statement import Ddl, StatementKind
from unshard.errors import DdlError, Where
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.sync.statements.tracked_tables import TrackedTables

Targets = dict[str, dict[TableName, TableName]]
Like = Callable[[Collection[TableName]], dict[TableName, tuple[str, TableName]]]


@dataclass(slots=True)
class NamesByCase:
    """The check whether a name on the target is another's but for case. Used by the sync unit's thread.

    Its methods raise DdlError DDL-049 where it is, if the target takes such names for one; else they do nothing.

    Args:
        like: returns a table of another source, and its target, for each target that differs from that in case only.
        on_target: calls a function with a connection to the target.
    """

    tables: TrackedTables
    like: Like
    on_target: Callable[[Callable[[Any], bool]], bool]
    _folds: bool | None = None
    _present: frozenset[TableName] = frozenset()
    _targets: Targets = field(default_factory=dict)

    def refuse(self, found: Sequence[AlterOperation]) -> None:
        """Check the names of a statement's operations. Those that only an operator gives are as a human wants them."""
        found = [piece for piece in found if piece.tracked]
        if not found or not self._target_folds():
            return
        after = _after(self.tables.present, found)
        named = {name for piece in found for name in piece.ddl.tables}
        targets = self._by_target(after)
        for piece in found:
            ddl, where = piece.ddl, piece.ddl.context.where
            if ddl.kind.on_schema and piece.run:
                self._refuse_schema(ddl, after)
            concerned = _concerned(piece)
            for name in filter(self.tables.rules.allows, concerned):
                others = [(one, there) for one, there in self._like(name, targets) if name in after or one not in named]
                for other, taken in others:
                    raise self._error(name, str(other), taken, where, ddl.text[:500])
            self._refuse_others(concerned, where, ddl.text[:500])

    def refuse_known(self, names: Iterable[TableName] | None = None) -> None:
        """Check names, else all that are tracked, against those of the task's other sources.

        Two sources may make such tables at once. Each looks after it has declared its own, so one of them sees both.
        """
        if self._target_folds():
            self._refuse_others(self.tables.tracker.names if names is None else names)

    def refuse_read(self, name: TableName) -> None:
        """Check a table whose structure is needed for the first time."""
        if not self._target_folds() or not self.tables.rules.allows(name):
            return
        for other, taken in self._like(name, self._by_target(self.tables.present | {name})):
            raise self._error(name, str(other), taken)
        self._refuse_others([name])

    def _refuse_others(self, names: Iterable[TableName], where: Where | None = None, text: str = "") -> None:
        rules = self.tables.rules
        routed = {name: rules.route(name) for name in names if name.table and rules.allows(name)}
        found = self.like(frozenset(routed.values()))
        for name, target in routed.items():
            if target in found:
                raise self._error(name, *found[target], where, text)

    def _error(
        self, name: TableName, other: str, taken: TableName, where: Where | None = None, text: str = ""
    ) -> DdlError:
        target = self.tables.rules.route(name)
        values = {"name": str(name), "target": str(target), "other": other, "taken": str(taken)}
        return DdlError("DDL-049", replace(where or Where(source=self.tables.source), table=str(name)), text, values)

    def _refuse_schema(self, ddl: Ddl, after: frozenset[TableName]) -> None:
        rules = self.tables.rules
        target = rules.route_schema(ddl.schema)
        for name in sorted(after):
            followed = rules.allows(name) if name.table else rules.allows_schema(name.schema)
            if name.schema == ddl.schema or not followed:
                continue
            for taken in {rules.route_schema(name.schema), rules.route(name).schema if name.table else ""}:
                if taken != target and taken.lower() == target.lower():
                    values = {"name": ddl.schema, "target": target, "other": name.schema, "taken": taken}
                    raise DdlError("DDL-049", replace(ddl.context.where, table=ddl.schema), ddl.text[:500], values)

    def _like(self, name: TableName, targets: Targets) -> list[tuple[TableName, TableName]]:
        """Return the source's tables, and their targets, whose targets differ from the name's in case only."""
        target = self.tables.rules.route(name)
        there = targets.get(_folded(target), {})
        return [(one, taken) for one, taken in sorted(there.items()) if one != name and taken != target]

    def _by_target(self, names: frozenset[TableName]) -> Targets:
        """Return the targets of followed tables by their name in lower case. Only names that are new are routed."""
        for name in self._present ^ names:
            if name.table and self.tables.rules.allows(name):
                target = self.tables.rules.route(name)
                there = self._targets.setdefault(_folded(target), {})
                if name in names:
                    there[name] = target
                else:
                    del there[name]
        self._present = names
        return self._targets

    def _target_folds(self) -> bool:
        if self._folds is None:
            self._folds = self.on_target(folds_names)
        return self._folds


def folds_names(connection: Any) -> bool:
    """Return whether a server takes names of tables and schemas that differ only in case for one."""
    ((folds,),) = rows(connection, "SELECT @@lower_case_table_names")
    return int(folds) != 0


def _folded(target: TableName) -> str:
    return f"{target.schema}\0{target.table}".lower()


def _concerned(piece: AlterOperation) -> tuple[TableName, ...]:
    """Return the tables that an operation makes, and those on which it is run."""
    makes = piece.ddl.kind is StatementKind.CREATE_TABLE or renames(piece.ddl)
    return piece.ddl.tables if piece.run or makes else ()


def _after(present: frozenset[TableName], found: Sequence[AlterOperation]) -> frozenset[TableName]:
    """Return the tables of the source after a statement."""
    names = set(present)
    for ddl in (piece.ddl for piece in found):
        if ddl.kind is StatementKind.DROP_TABLE:
            names -= set(ddl.tables)
        elif ddl.drops_schema:
            names = {name for name in names if name.schema != ddl.schema}
        elif ddl.kind is StatementKind.CREATE_TABLE:
            names |= set(ddl.tables)
        for old, new in renames(ddl):
            names.discard(old)
            names.add(new)
    return frozenset(names)
