"""Translates the operations of an ALTER TABLE into statements that TiDB accepts.

The table in `schema.tidb` says what becomes of each. TiDB runs several changes in one statement, but checks each of
them against the table from before the statement. A change of a column or key that another change makes or alters
therefore needs its own statement (errors 8200, 1072, 1054).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from unshard.model.table import TableName, quote_name
from unshard.schema.definition import (
    BLOB_TYPES,
    CLOB_TYPES,
    ColumnDefinition,
    Dialect,
    ForeignKey,
    KeyDefinition,
    KeyKind,
    TableDefinition,
)
from unshard.schema.free_names import with_free_names
from unshard.schema.implied import Surroundings, charset_of, complete_column, converted, named_foreign_keys, resolved
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
    Operation,
    Partitioning,
    Position,
    RenameColumn,
    RenameKey,
    SetDefault,
    SetOptions,
)
from unshard.schema.text import column_text, default_text, key_body
from unshard.schema.tidb import LEFT_OUT_KEYS, NotInTidbError, TidbWords, Translation, listed, tidb_column, tidb_key

_BARE = TableDefinition(())


@dataclass(frozen=True, slots=True)
class _Change:
    """One change of a table, as it is written in an ALTER TABLE for TiDB.

    Several changes share a statement, except a change that is `alone`, one that changes the same column or key as
    another change, and one that needs a column (`needed`) which another change makes.
    """

    text: str
    columns: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    needed: frozenset[str] = frozenset()
    alone: bool = False

    def goes_with(self, others: Sequence[_Change]) -> bool:
        if self.alone or any(other.alone for other in others):
            return False
        return not any(
            self.columns & (other.columns | other.needed) or self.needed & other.columns or self.keys & other.keys
            for other in others
        )


def alter_table(
    operations: Sequence[Operation],
    name: TableName,
    before: TableDefinition,
    there: TableDefinition | None,
    around: Surroundings,
    words: TidbWords,
) -> Translation:
    """Translate the operations of a source's ALTER TABLE into statements on TiDB's table `name`.

    `before` is the source's table, complete, and `there` is TiDB's table, None if it is not known; both from before the
    statement. Raises NotInTidbError.
    """
    translator = _Translator(name.table, before, there, around, words)
    for operation in sorted(with_free_names(operations, before), key=_turn):
        translator.take(operation)
    statements = tuple(
        f"ALTER TABLE {name.quoted} {', '.join(change.text for change in group)}"
        for group in _grouped(translator.changes)
    )
    return Translation(statements, tuple(translator.left_out))


def _turn(operation: Operation) -> int:
    """Return an operation's rank: drops of foreign keys first, then drops of keys, then the rest.

    Dropped keys are from before the statement; once they are dropped, they block no change of a column.
    """
    if isinstance(operation, DropForeignKey):
        return 0
    return 1 if isinstance(operation, DropKey | DropConstraint) else 2


def _grouped(changes: Sequence[_Change]) -> list[list[_Change]]:
    groups: list[list[_Change]] = []
    for change in changes:
        if groups and change.goes_with(groups[-1]):
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


class _Translator:
    """The translator of the operations of one ALTER TABLE, which are given to it in order.

    `changes` are the results for TiDB.
    """

    def __init__(
        self, name: str, before: TableDefinition, there: TableDefinition | None, around: Surroundings, words: TidbWords
    ) -> None:
        self.name = name
        self.before = before
        self.there = there
        self.shape = there or _BARE
        self.around = around
        self.words = words
        self.charset = (before.charset, before.collation)
        self.changes: list[_Change] = []
        self.left_out: list[str] = []

    def take(self, operation: Operation) -> None:
        match operation:
            case AddColumn(written, position, if_not_exists):
                self._add_column(written, position, if_not_exists)
            case ChangeColumn():
                self._change_column(operation)
            case DropColumn(name, if_exists):
                self._drop_column(name, if_exists)
            case RenameColumn(old, new):
                self._change(f"RENAME COLUMN {quote_name(old)} TO {quote_name(new)}", columns={old, new})
            case SetDefault():
                self._set_default(operation)
            case AddKey(key, if_not_exists):
                self._add_key(key, if_not_exists)
            case DropKey(name, if_exists):
                self._drop_key(name, if_exists)
            case RenameKey(old, new) if self._has_key(old):
                self._change(f"RENAME INDEX {quote_name(old)} TO {quote_name(new)}", keys={old, new})
            case AlterKey(name, invisible) if self._has_key(name):
                self._change(f"ALTER INDEX {quote_name(name)} {'INVISIBLE' if invisible else 'VISIBLE'}", keys={name})
            case AddForeignKey(key) if self.before.option("ENGINE").upper() not in ("", "INNODB"):
                self.left_out.append(f"FOREIGN KEY {key.name}, which the source's engine has not either")
            case AddForeignKey(key):
                self._add_foreign_key(key)
            case DropForeignKey(name):
                self._alone(f"DROP FOREIGN KEY {quote_name(name)}")
            case AddCheck(check):
                own = f"CONSTRAINT {quote_name(check.name)} " if check.name else ""
                self._alone(f"ADD {own}CHECK ({check.expression}) {check.rest}".rstrip())
            case DropConstraint(name, if_exists):
                self._drop_constraint(name, if_exists)
            case AlterCheck(name, enforced) if self._has_check(name):
                self._alone(f"ALTER CONSTRAINT {quote_name(name)} {'' if enforced else 'NOT '}ENFORCED")
            case ConvertCharset():
                self._convert(operation)
            case SetOptions():
                self._set_options(operation)
            case Partitioning(_, text):
                self._alone(text)
            case _:
                self._leave_out(operation)

    def _change(
        self, text: str, columns: Collection[str] = (), keys: Collection[str] = (), needed: Collection[str] = ()
    ) -> None:
        self.changes.append(_Change(text, _folded(columns), _folded(keys), _folded(needed)))

    def _alone(self, text: str) -> None:
        self.changes.append(_Change(text, alone=True))

    def _leave_out(self, operation: Operation) -> None:
        """Leave out a change of storage, or of something that TiDB's table never had."""
        self.left_out.append(type(operation).__name__)

    def _column(self, written: ColumnClause, old: str = "") -> ColumnDefinition:
        complete = complete_column(written.column, *self.charset, self.around)
        primary = [key for key in (*self.before.keys, *written.keys) if key.kind is KeyKind.PRIMARY]
        if any({complete.name.lower(), old.lower()}.intersection(key.columns) for key in primary):
            complete = replace(complete, nullable=False)
        self.left_out += complete.checks
        return tidb_column(complete, self.words)

    def _add_column(self, written: ColumnClause, position: Position, if_not_exists: bool) -> None:
        if if_not_exists and self.before.column(written.column.name) is not None:
            return  # the source has made no key of it either
        column = self._column(written)
        if column.auto_increment:
            raise NotInTidbError(f"column {column.name}: TiDB adds no AUTO_INCREMENT column to a table")
        if column.stored:
            column = replace(column, stored=False)
            self.left_out.append(f"STORED of column {column.name}")
        unless = "IF NOT EXISTS " if if_not_exists else ""
        text = f"ADD COLUMN {unless}{_line(column)}{_position(position)}"
        self._change(text, columns={column.name}, needed={position} if position else ())
        self._take_shape(column)
        for key in written.keys:
            self._add_key(key, False)
        for foreign_key in written.foreign_keys:
            self.take(AddForeignKey(foreign_key))

    def _change_column(self, operation: ChangeColumn) -> None:
        column = self._column(operation.written, operation.old)
        position = _position(operation.position)
        needed = {operation.position} if operation.position else ()
        if operation.old.lower() == column.name.lower() and operation.old == column.name:
            text = f"MODIFY COLUMN {_maybe(operation.if_exists)}{_line(column)}{position}"
        else:
            text = f"CHANGE COLUMN {_maybe(operation.if_exists)}{quote_name(operation.old)} {_line(column)}{position}"
        cut = self._cut_keys(operation.old, column)
        for key in cut:
            self._change(f"DROP INDEX {quote_name(key.name)}", columns=key.columns, keys={key.name})
        self._change(text, columns={operation.old, column.name}, needed=needed)
        self._take_shape(column)
        for key in cut:
            self._add_key(key, False)
        for key in operation.written.keys:
            self._add_key(key, False)

    def _cut_keys(self, old: str, column: ColumnDefinition) -> list[KeyDefinition]:
        """Return the keys over a column that becomes a TEXT or BLOB, under its new name.

        MariaDB cuts such keys to prefixes.
        """
        if column.type.name not in (*CLOB_TYPES, *BLOB_TYPES):
            return []
        found = []
        for key in self.shape.keys:
            if any(part.column.lower() == old.lower() and not part.prefix for part in key.parts):
                parts = (
                    replace(part, column=column.name) if part.column.lower() == old.lower() else part
                    for part in key.parts
                )
                found.append(replace(key, parts=tuple(parts)))
        return found

    def _drop_column(self, name: str, if_exists: bool) -> None:
        """Drop a column.

        TiDB refuses to drop a column of a key over several columns, so such a key is dropped first and added again
        without the column.
        """
        smaller = []
        for key in self.shape.keys:
            if name.lower() not in key.columns or len(key.parts) == 1:
                continue
            if key.kind is KeyKind.PRIMARY:
                raise NotInTidbError(f"column {name}: TiDB drops no column of a primary key")
            self._change(f"DROP INDEX {quote_name(key.name)}", columns=key.columns, keys={key.name})
            smaller.append(replace(key, parts=tuple(part for part in key.parts if part.column.lower() != name.lower())))
        self._change(f"DROP COLUMN {_maybe(if_exists)}{quote_name(name)}", columns={name})
        for key in smaller:
            self._add_key(key, False)
        names = {key.name.lower(): key for key in smaller}
        keys = tuple(names.get(key.name.lower(), key) for key in self.shape.keys)
        self.shape = replace(self.shape, keys=keys)

    def _set_default(self, operation: SetDefault) -> None:
        name = quote_name(operation.name)
        column = self.before.column(operation.name)
        if operation.default is None:
            self._change(f"ALTER COLUMN {name} DROP DEFAULT", columns={operation.name})
        elif column is not None:
            complete = complete_column(replace(column, default=operation.default), *self.charset, self.around)
            text = default_text(complete, Dialect.TIDB) or "NULL"
            self._change(f"ALTER COLUMN {name} SET DEFAULT {text}", columns={operation.name})

    def _add_key(self, key: KeyDefinition, if_not_exists: bool) -> None:
        if key.kind in LEFT_OUT_KEYS:
            self.left_out.append(f"{key.kind} {key.name}")
            return
        if if_not_exists and self.shape.key(key.name) is not None:
            return
        key = tidb_key(key, self.shape)
        columns = {part.column for part in key.parts if part.column}
        name = f" {quote_name(key.name)}" if key.name and key.kind is not KeyKind.PRIMARY else ""
        own = key.name or f"key {len(self.changes)}"
        self._change(f"ADD {key.kind}{name} {key_body(key)}", keys={own}, needed=columns)

    def _add_foreign_key(self, key: ForeignKey) -> None:
        """Add a foreign key by the name that the source's server gives it, since TiDB would make up another one."""
        known = (*self.shape.foreign_keys, key)
        key = named_foreign_keys(known, self.name)[-1]
        self.shape = replace(self.shape, foreign_keys=(*self.shape.foreign_keys, key))
        index = f" {quote_name(key.index)}" if key.index else ""
        own = quote_name(key.name)
        self._alone(f"ADD CONSTRAINT {own} FOREIGN KEY{index} ({listed(key.columns)}) {key.reference}")

    def _take_shape(self, column: ColumnDefinition) -> None:
        """Record a column's new definition, for later keys of the statement that cover it."""
        others = tuple(one for one in self.shape.columns if one.name.lower() != column.name.lower())
        self.shape = replace(self.shape, columns=(*others, column))

    def _drop_key(self, name: str, if_exists: bool) -> None:
        if name.upper() == "PRIMARY":
            self._alone("DROP PRIMARY KEY")
        elif self._has_key(name):
            key = self.shape.key(name)
            columns = key.columns if key is not None else ()
            self._change(f"DROP INDEX {_maybe(if_exists)}{quote_name(name)}", columns=columns, keys={name})
            kept = tuple(one for one in self.shape.keys if one.name.lower() != name.lower())
            self.shape = replace(self.shape, keys=kept)

    def _has_key(self, name: str) -> bool:
        """Return whether TiDB's table may have a key: False for a kind of key that was left out there."""
        key = self.before.key(name)
        if key is None or key.kind not in LEFT_OUT_KEYS:
            return True
        self.left_out.append(f"{key.kind} {name}")
        return False

    def _has_check(self, name: str) -> bool:
        return self.there is None or any(check.name.lower() == name.lower() for check in self.there.checks)

    def _drop_constraint(self, name: str, if_exists: bool) -> None:
        if any(check.name.lower() == name.lower() for check in self.before.checks):
            if self._has_check(name):
                self._alone(f"DROP CONSTRAINT {quote_name(name)}")
            else:
                self.left_out.append(f"CHECK {name}")
        elif any(key.name.lower() == name.lower() for key in self.before.foreign_keys):
            self._alone(f"DROP FOREIGN KEY {quote_name(name)}")
        else:
            self._drop_key(name, if_exists)

    def _convert(self, operation: ConvertCharset) -> None:
        default = operation.charset or charset_of(self.around.collation)
        self.charset = resolved(operation.charset or default, operation.collation, default, self.around)
        for column in self.before.columns:
            behind = converted(column, *self.charset)
            one, other = tidb_column(column, self.words), tidb_column(behind, self.words)
            if one != other:
                self._change(f"MODIFY COLUMN {_line(other)}", columns={column.name})
        self._set_charset(*self.charset)

    def _set_options(self, operation: SetOptions) -> None:
        if operation.charset or operation.collation:
            given = operation.charset or (None if operation.collation else self.charset[0])
            self.charset = resolved(given, operation.collation, self.charset[0], self.around)
            self._set_charset(*self.charset)
        if operation.counter:
            self._alone(f"AUTO_INCREMENT = {operation.counter}")
        for name, value in operation.options:
            if name == "COMMENT":
                self._alone(f"COMMENT = {value}")
            else:
                self.left_out.append(f"{name} = {value}")

    def _set_charset(self, charset: str, collation: str) -> None:
        there = self.words.collation_for(collation)
        if there != self.words.collation_for(self.before.collation):
            self._alone(f"DEFAULT CHARACTER SET = {charset_of(there)} COLLATE = {there}")


def _folded(names: Collection[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def _line(column: ColumnDefinition) -> str:
    """Return a column's text with its character set, even if that is the table's."""
    return column_text(column, _BARE, Dialect.TIDB)


def _position(position: Position) -> str:
    if position is END:
        return ""
    return f" AFTER {quote_name(position)}" if position else " FIRST"


def _maybe(if_exists: bool) -> str:
    return "IF EXISTS " if if_exists else ""
