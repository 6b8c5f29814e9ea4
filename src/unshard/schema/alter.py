"""Applies the operations of an ALTER TABLE to a definition, as the servers do: all at once, and then arranged anew.

Column names in an operation are those from before the statement, except after AFTER and in new keys, where the new
names count (`mysql_prepare_alter_table`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod

from unshard.schema.definition import (
    Check,
    ColumnDefinition,
    DefaultKind,
    Dialect,
    ForeignKey,
    KeyDefinition,
    KeyKind,
    TableDefinition,
)
from unshard.schema.implied import Surroundings, arranged, charset_of, complete_column, converted, resolved
from unshard.schema.lex import tokens
from unshard.schema.operations import (
    END,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddKey,
    AlterCheck,
    AlterKey,
    ChangeColumn,
    ColumnClause,
    ConvertCharset,
    DropColumn,
    DropConstraint,
    DropForeignKey,
    DropKey,
    NoChange,
    Operation,
    Partitioning,
    Position,
    RenameColumn,
    RenameKey,
    SetDefault,
    SetOptions,
    SetVersioning,
    SetVisibility,
)
from unshard.schema.partitions import repartitioned
from unshard.schema.void_operations import without_void
from unshard.schema.words import ContradictionError, NotUnderstoodError


def altered(
    table: TableDefinition, operations: Sequence[Operation], name: str, around: Surroundings
) -> TableDefinition:
    """Return the definition of a table after the operations of one ALTER TABLE. `name` is the table's name.

    An operation that names something the table lacks, or adds something it has already, is skipped if the statement
    says IF EXISTS or IF NOT EXISTS, and otherwise raises ContradictionError. Raises NotUnderstoodError for an operation
    that is not supported here.
    """
    change = _Change(table, around, settled_charsets(table, operations, around))
    for operation in without_void(operations, table):
        change.take(operation)
    return arranged(change.result(), name, around)


@dataclass(frozen=True, slots=True)
class SettledCharsets:
    """The character sets of one ALTER TABLE, each with its collation.

    `table` is the table's own, behind the statement. `columns` are those of all text columns that the statement
    converts or defines: of a CONVERT TO, wherever in the statement it is, or else the table's, unless a column names
    others.
    """

    table: tuple[str, str]
    columns: tuple[str, str]


def settled_charsets(table: TableDefinition, operations: Sequence[Operation], around: Surroundings) -> SettledCharsets:
    """Return the character sets of the operations of one ALTER TABLE on `table`.

    For the table, MariaDB prefers a default that the statement names to that of CONVERT TO, and MySQL the last of them.
    """
    if around.dialect is Dialect.MARIADB:
        operations = sorted(operations, key=lambda one: isinstance(one, SetOptions))
    own, converts = (table.charset, table.collation), None
    for operation in operations:
        match operation:
            case ConvertCharset(name, collation):
                default = name or charset_of(around.collation)
                own = converts = resolved(default, collation, default, around)
            case SetOptions(name, collation) if name or collation:
                given = name or (None if collation else own[0])
                own = resolved(given, collation, own[0], around)
    return SettledCharsets(own, converts or own)


@dataclass(slots=True)
class _Change:
    """The operations of one statement, sorted by their effect."""

    table: TableDefinition
    around: Surroundings
    charsets: SettledCharsets
    dropped: set[str] = field(default_factory=set)
    changed: dict[str, ChangeColumn] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    renamed_keys: dict[str, str] = field(default_factory=dict)
    placed: list[tuple[ColumnClause, Position, str]] = field(default_factory=list)
    """New columns, and changed columns that move.

    The last value is the column's name from before the statement, empty for a new column.
    """
    new_keys: list[KeyDefinition] = field(default_factory=list)
    new_foreign_keys: list[ForeignKey] = field(default_factory=list)
    converts: bool = False

    @singledispatchmethod
    def take(self, operation: Operation) -> None:
        raise NotUnderstoodError(f"{type(operation).__name__} is not followed")

    @take.register
    def _(self, operation: AddColumn) -> None:
        self.placed.append((operation.written, operation.position, ""))
        self._bring(operation.written)

    @take.register
    def _(self, operation: ChangeColumn) -> None:
        self._require_column(operation.old)
        old = operation.old.lower()
        self.changed[old] = operation
        self.renamed[old] = operation.written.column.name
        if operation.position is not END:
            self.placed.append((operation.written, operation.position, old))
        self._bring(operation.written)

    @take.register
    def _(self, operation: DropColumn) -> None:
        self._require_column(operation.name)
        self.dropped.add(operation.name.lower())

    @take.register
    def _(self, operation: RenameColumn) -> None:
        self._require_column(operation.old)
        self.renamed[operation.old.lower()] = operation.new

    @take.register
    def _(self, operation: SetDefault) -> None:
        self._require_column(operation.name)
        columns = []
        for column in self.table.columns:
            if column.name.lower() == operation.name.lower():
                given = replace(column, default=operation.default)
                column = complete_column(given, *self.charsets.columns, self.around) if operation.default else given
                if operation.default is None or operation.default.kind is not DefaultKind.NOW:
                    column = replace(column, renewed=given.renewed)
            columns.append(column)
        self.table = replace(self.table, columns=tuple(columns))

    @take.register
    def _(self, operation: SetVisibility) -> None:
        self._require_column(operation.name)
        columns = tuple(
            replace(column, invisible=operation.invisible) if column.name.lower() == operation.name.lower() else column
            for column in self.table.columns
        )
        self.table = replace(self.table, columns=columns)

    @take.register
    def _(self, operation: AddKey) -> None:
        self.new_keys.append(operation.key)

    @take.register
    def _(self, operation: AddForeignKey) -> None:
        self.new_foreign_keys.append(operation.foreign_key)

    @take.register
    def _(self, operation: AddCheck) -> None:
        self.table = replace(self.table, checks=(*self.table.checks, operation.check))

    @take.register
    def _(self, operation: DropKey) -> None:
        if self.table.key(operation.name) is None:
            raise ContradictionError(f"the table has no key {operation.name}")
        kept = tuple(key for key in self.table.keys if key.name.lower() != operation.name.lower())
        self.table = replace(self.table, keys=kept)

    @take.register
    def _(self, operation: DropForeignKey) -> None:
        kept = tuple(key for key in self.table.foreign_keys if key.name.lower() != operation.name.lower())
        if len(kept) == len(self.table.foreign_keys):
            raise ContradictionError(f"the table has no foreign key {operation.name}")
        self.table = replace(self.table, foreign_keys=kept)

    @take.register
    def _(self, operation: DropConstraint) -> None:
        name = operation.name.lower()
        checks = tuple(check for check in self.table.checks if check.name.lower() != name)
        if len(checks) < len(self.table.checks):
            self.table = replace(self.table, checks=checks)
        elif any(key.name.lower() == name for key in self.table.foreign_keys):
            self.take(DropForeignKey(operation.name))
        elif self.table.key(name) is not None:
            self.take(DropKey(operation.name))
        else:
            raise ContradictionError(f"the table has no constraint {operation.name}")

    @take.register
    def _(self, operation: RenameKey) -> None:
        if self.table.key(operation.old) is None:
            raise ContradictionError(f"the table has no key {operation.old}")
        self.renamed_keys[operation.old.lower()] = operation.new

    @take.register
    def _(self, operation: AlterKey) -> None:
        words = ("INVISIBLE",) if operation.invisible else ()
        keys = tuple(
            replace(key, options=(*(o for o in key.options if o.upper() not in ("INVISIBLE", "VISIBLE")), *words))
            if key.name.lower() == operation.name.lower()
            else key
            for key in self.table.keys
        )
        self.table = replace(self.table, keys=keys)

    @take.register
    def _(self, operation: AlterCheck) -> None:
        rest = "" if operation.enforced else "NOT ENFORCED"
        checks = tuple(
            replace(check, rest=rest) if check.name.lower() == operation.name.lower() else check
            for check in self.table.checks
        )
        self.table = replace(self.table, checks=checks)

    @take.register
    def _(self, operation: ConvertCharset) -> None:
        self.converts = True
        columns = tuple(converted(column, *self.charsets.columns) for column in self.table.columns)
        self.table = replace(self.table, columns=columns)

    @take.register
    def _(self, operation: SetOptions) -> None:
        self.table = self.table.with_options(dict(operation.options))

    @take.register
    def _(self, operation: Partitioning) -> None:
        self.table = replace(self.table, partitions=repartitioned(self.table.partitions, operation))

    @take.register
    def _(self, operation: SetVersioning) -> None:
        self.table = self.table.with_options({"WITH SYSTEM VERSIONING": "1" if operation.on else ""})
        if not operation.on:
            columns = tuple(column for column in self.table.columns if not column.period)
            others = tuple(replace(c, others=tuple(o for o in c.others if "VERSIONING" not in o)) for c in columns)
            self.table = replace(self.table, columns=others)

    @take.register
    def _(self, operation: NoChange) -> None:
        return

    def result(self) -> TableDefinition:
        """Return the table with all operations applied, not yet arranged."""
        columns = self._columns()
        keys = [key for old in self.table.keys if (key := self._key(old)) is not None]
        renamed = {old: new for old, new in self.renamed.items() if old not in self.dropped}
        foreign_keys = tuple(
            replace(key, columns=tuple(renamed.get(column.lower(), column) for column in key.columns))
            for key in self.table.foreign_keys
        )
        keys += self.new_keys
        foreign_keys += tuple(self.new_foreign_keys)
        _refuse_doubles("column", [column.name for column in columns])
        _refuse_doubles("key", ["PRIMARY" if key.kind is KeyKind.PRIMARY else key.name for key in keys])
        _refuse_doubles("foreign key", [key.name for key in foreign_keys])
        _refuse_doubles("check", [check.name for check in self.table.checks])
        return replace(
            self.table,
            columns=tuple(columns),
            keys=tuple(keys),
            foreign_keys=foreign_keys,
            checks=tuple(check for check in self.table.checks if not self._names_dropped(check)),
            charset=self.charsets.table[0],
            collation=self.charsets.table[1],
        )

    def _names_dropped(self, check: Check) -> bool:
        """Return whether a CHECK names a dropped column: the server drops the CHECK together with the column."""
        return any(token.value.lower() in self.dropped for token in tokens(check.expression) if self.dropped)

    def _columns(self) -> list[ColumnDefinition]:
        columns: list[ColumnDefinition] = []
        for column in self.table.columns:
            name = column.name.lower()
            if name in self.dropped:
                continue
            if name in self.changed:
                column = self._complete(self.changed[name].written)
            elif name in self.renamed:
                column = replace(column, name=self.renamed[name])
            columns.append(column)
        for written, position, old in self.placed:
            made = self._complete(written)
            if old:  # the column kept its old place so far, for new columns that go AFTER it
                columns.remove(made)
            columns.insert(_place(columns, position), made)
        return columns

    def _complete(self, written: ColumnClause) -> ColumnDefinition:
        charset, collation = self.charsets.columns
        made = complete_column(written.column, charset, collation, self.around)
        if self.converts and made.charset not in (None, "binary"):  # CONVERT TO applies to new columns too
            made = replace(made, charset=charset, collation=collation)
        return made

    def _key(self, key: KeyDefinition) -> KeyDefinition | None:
        """Return the key with the current column names and without dropped columns; None if no column is left."""
        parts = []
        for part in key.parts:
            name = part.column.lower()
            if name and name in self.dropped:
                continue
            parts.append(replace(part, column=self.renamed.get(name, part.column)) if name else part)
        new = self.renamed_keys.get(key.name.lower())
        if new is not None:
            key = replace(key, name=new, generated=False)
        return replace(key, parts=tuple(parts)) if parts else None

    def _bring(self, written: ColumnClause) -> None:
        self.new_keys += written.keys
        self.new_foreign_keys += written.foreign_keys

    def _require_column(self, name: str) -> None:
        if self.table.column(name) is None:
            raise ContradictionError(f"the table has no column {name}")


def _place(columns: Sequence[ColumnDefinition], position: Position) -> int:
    if position is END:
        return len(columns)
    if not position:
        return 0
    names = [column.name.lower() for column in columns]
    if position.lower() not in names:
        raise ContradictionError(f"the table has no column {position}")
    return names.index(position.lower()) + 1


def _refuse_doubles(what: str, names: Iterable[str]) -> None:
    """Refuse a name that occurs twice: raise ContradictionError.

    Empty names are skipped, since the server makes up a name for them.
    """
    seen: set[str] = set()
    for name in filter(None, (name.lower() for name in names)):
        if name in seen:
            raise ContradictionError(f"the table has {what} {name} already")
        seen.add(name)
