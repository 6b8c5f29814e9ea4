"""Translates the operations of an ALTER TABLE into statements that TiDB accepts.

The table in `schema.tidb` says what becomes of each. TiDB runs several changes in one statement, but checks each of
them against the table from before the statement. A change of a column or key that another change makes or alters
therefore needs its own statement (errors 8200, 1072, 1054).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from unshard.model.table import TableName, quote_name
from unshard.schema.alter import altered, settled_charsets
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
from unshard.schema.implied import Surroundings, charset_of, complete_column, converted, named_foreign_keys
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
from unshard.schema.tidb_changes import TidbChange, columns_of, grouped, names_in, needed_by
from unshard.schema.tidb_conversions import converts_alike
from unshard.schema.void_operations import without_void

_BARE = TableDefinition(())


def alter_table(
    operations: Sequence[Operation],
    name: TableName,
    before: TableDefinition,
    there: TableDefinition | None,
    around: Surroundings,
    words: TidbWords,
) -> Translation:
    """Translate the operations of a source's ALTER TABLE into statements on TiDB's table `name`.

    `before` is the source's table, complete, or one without columns if it is not known, and `there` is TiDB's table,
    None if it is not known; both from before the statement. Raises NotInTidbError, and what `altered` raises for
    `before`.
    """
    operations = without_void(operations, before)
    translator = _Translator(operations, name.table, before, there, around, words)
    for operation in sorted(with_free_names(operations), key=_turn):
        translator.take(operation)
    statements = tuple(
        f"ALTER TABLE {name.quoted} {', '.join(change.text for change in group)}"
        for group in grouped(translator.changes)
    )
    return Translation(statements, tuple(translator.left_out))


def _turn(operation: Operation) -> int:
    """Return an operation's rank: drops of foreign keys first, then drops of keys, then a conversion, then the rest.

    Dropped keys are from before the statement; once they are dropped, they block no change of a column. A conversion is
    of the columns that the other operations change, and of columns by their old names.
    """
    match operation:
        case DropForeignKey():
            return 0
        case DropKey() | DropConstraint():
            return 1
        case ConvertCharset():
            return 2
    return 3


class _Translator:
    """The translator of the operations of one ALTER TABLE, which are given to it in order.

    `changes` are the results for TiDB. `after` is the source's table after the statement, or only that table's
    character set if `before` is not known. `replaced` are the columns that the statement drops or defines anew,
    `dropping` those still to be dropped. `shape` is TiDB's table as the changes so far leave it, as far as later ones
    depend on it.
    """

    def __init__(
        self,
        operations: Sequence[Operation],
        name: str,
        before: TableDefinition,
        there: TableDefinition | None,
        around: Surroundings,
        words: TidbWords,
    ) -> None:
        self.name = name
        self.before = before
        self.charsets = settled_charsets(before, operations, around)
        if before.columns:
            self.after = altered(before, operations, name, around)
        else:
            charset, collation = self.charsets.table
            self.after = replace(before, charset=charset, collation=collation)
        self.dropping = {one.name.lower() for one in operations if isinstance(one, DropColumn)}
        self.replaced = self.dropping | {one.old.lower() for one in operations if isinstance(one, ChangeColumn)}
        self.there = there
        self.shape = there or _BARE
        self.around = around
        self.words = words
        self.collation = words.collation_for(before.collation)
        self.changes: list[TidbChange] = []
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
                self._rename_in_shape(old, new)
            case SetDefault():
                self._set_default(operation)
            case AddKey(key, if_not_exists):
                self._add_key(key, if_not_exists)
            case DropKey(name, if_exists):
                self._drop_key(name, if_exists)
            case RenameKey(old, new) if self._has_key(old):
                self._rename_key(old, new)
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
                self._convert()
            case SetOptions():
                self._set_options(operation)
            case Partitioning(_, text):
                self._alone(text)
            case _:
                self._leave_out(operation)

    def _change(
        self, text: str, columns: Collection[str] = (), keys: Collection[str] = (), needed: Collection[str] = ()
    ) -> None:
        self.changes.append(TidbChange(text, _folded(columns), _folded(keys), _folded(needed)))

    def _alone(self, text: str) -> None:
        self.changes.append(TidbChange(text, alone=True))

    def _leave_out(self, operation: Operation) -> None:
        """Leave out a change of storage, or of something that TiDB's table never had."""
        self.left_out.append(type(operation).__name__)

    def _column(self, written: ColumnClause) -> ColumnDefinition:
        """Return a written column as the source has it after the whole statement, on which its properties depend."""
        column = self.after.column(written.column.name) or self._completed(written.column)
        self.left_out += written.column.checks
        return tidb_column(column, self.words)

    def _completed(self, column: ColumnDefinition) -> ColumnDefinition:
        return complete_column(column, *self.charsets.columns, self.around)

    def _add_column(self, written: ColumnClause, position: Position, if_not_exists: bool) -> None:
        column = self._column(written)
        if column.auto_increment:
            raise NotInTidbError(f"column {column.name}: TiDB adds no AUTO_INCREMENT column to a table")
        if column.stored:
            column = replace(column, stored=False)
            self.left_out.append(f"STORED of column {column.name}")
        unless = "IF NOT EXISTS " if if_not_exists else ""
        text = f"ADD COLUMN {unless}{_line(column)}{_position(position)}"
        self._change(text, columns={column.name}, needed=needed_by(column, after=position))
        self._take_shape(column)
        for key in written.keys:
            self._add_key(key, False)
        for foreign_key in written.foreign_keys:
            self.take(AddForeignKey(foreign_key))

    def _change_column(self, operation: ChangeColumn) -> None:
        column = self._column(operation.written)
        position = _position(operation.position)
        needed = needed_by(column, self.shape.column(operation.old), after=operation.position)
        if operation.old == column.name:
            text = f"MODIFY COLUMN {_maybe(operation.if_exists)}{_line(column)}{position}"
        else:
            text = f"CHANGE COLUMN {_maybe(operation.if_exists)}{quote_name(operation.old)} {_line(column)}{position}"
        self._rename_in_shape(operation.old, column.name)
        cut = self._cut_keys(column)
        for key in cut:
            self._change(f"DROP INDEX {quote_name(key.name)}", columns=columns_of(key), keys={key.name})
        self._change(text, columns={operation.old, column.name}, needed=needed)
        self._take_shape(column)
        for key in cut:
            self._add_key(key, False)
        for key in operation.written.keys:
            self._add_key(key, False)

    def _cut_keys(self, column: ColumnDefinition) -> list[KeyDefinition]:
        """Return the keys over a column that becomes a TEXT or BLOB: MariaDB cuts them to prefixes."""
        if column.type.name not in (*CLOB_TYPES, *BLOB_TYPES):
            return []
        name = column.name.lower()
        return [key for key in self.shape.keys if any(p.column.lower() == name and not p.prefix for p in key.parts)]

    def _drop_column(self, name: str, if_exists: bool) -> None:
        """Drop a column, after the columns to be dropped that are computed from it.

        TiDB refuses to drop a column of a key over several columns, so such a key is dropped first. It is added again
        without any of the columns that the statement drops: over more of them it could be refused for the rows.
        """
        if name.lower() not in self.dropping:
            return  # dropped before a column that it is computed from
        for column in self.shape.columns:
            if column.name.lower() in self.dropping - {name.lower()} and name.lower() in names_in(column.generated):
                self._drop_column(column.name, False)
        covering = [key for key in self.shape.keys if name.lower() in key.columns]
        for key in covering:
            if len(key.parts) > 1 and key.kind is KeyKind.PRIMARY:
                raise NotInTidbError(f"column {name}: TiDB drops no column of a primary key")
            if len(key.parts) > 1:
                self._change(f"DROP INDEX {quote_name(key.name)}", columns=columns_of(key), keys={key.name})
        needed = needed_by(self.shape.column(name))
        self._change(f"DROP COLUMN {_maybe(if_exists)}{quote_name(name)}", columns={name}, needed=needed)
        columns = tuple(column for column in self.shape.columns if column.name.lower() != name.lower())
        self.shape = replace(self.shape, columns=columns)
        for key in covering:
            parts = tuple(part for part in key.parts if part.column.lower() not in self.dropping)
            self._forget_key(key.name)
            if parts:
                smaller = replace(key, parts=parts)
                self._add_key(smaller, False)
                self.shape = replace(self.shape, keys=(*self.shape.keys, smaller))
        self.dropping.discard(name.lower())

    def _set_default(self, operation: SetDefault) -> None:
        name = quote_name(operation.name)
        column = self.before.column(operation.name)
        if operation.default is None:
            self._change(f"ALTER COLUMN {name} DROP DEFAULT", columns={operation.name})
        elif column is not None:
            complete = self._completed(replace(column, default=operation.default))
            text = default_text(complete, Dialect.TIDB) or "NULL"
            self._change(f"ALTER COLUMN {name} SET DEFAULT {text}", columns={operation.name})

    def _add_key(self, key: KeyDefinition, if_not_exists: bool) -> None:
        if key.kind in LEFT_OUT_KEYS:
            self.left_out.append(f"{key.kind} {key.name}")
            return
        if if_not_exists and self.shape.key(key.name) is not None:
            return
        key = tidb_key(key, self.shape)
        name = f" {quote_name(key.name)}" if key.name and key.kind is not KeyKind.PRIMARY else ""
        own = key.name or f"key {len(self.changes)}"
        self._change(f"ADD {key.kind}{name} {key_body(key)}", keys={own}, needed=columns_of(key))

    def _rename_key(self, old: str, new: str) -> None:
        self._change(f"RENAME INDEX {quote_name(old)} TO {quote_name(new)}", keys={old, new})
        keys = (replace(key, name=new) if key.name.lower() == old.lower() else key for key in self.shape.keys)
        self.shape = replace(self.shape, keys=tuple(keys))

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

    def _rename_in_shape(self, old: str, new: str) -> None:
        columns = (replace(one, name=new) if one.name.lower() == old.lower() else one for one in self.shape.columns)
        keys = []
        for key in self.shape.keys:
            parts = (replace(part, column=new) if part.column.lower() == old.lower() else part for part in key.parts)
            keys.append(replace(key, parts=tuple(parts)))
        self.shape = replace(self.shape, columns=tuple(columns), keys=tuple(keys))

    def _drop_key(self, name: str, if_exists: bool) -> None:
        if name.upper() == "PRIMARY":
            self._alone("DROP PRIMARY KEY")
        elif self._has_key(name):
            key = self.shape.key(name)
            columns = columns_of(key) if key is not None else ()
            self._change(f"DROP INDEX {_maybe(if_exists)}{quote_name(name)}", columns=columns, keys={name})
        self._forget_key(name)

    def _forget_key(self, name: str) -> None:
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

    def _convert(self) -> None:
        """Convert the columns that the statement neither drops nor defines anew, and those that only the source cut."""
        for column in self.before.columns:
            behind = converted(column, *self.charsets.columns)
            one, other = tidb_column(column, self.words), tidb_column(behind, self.words)
            if (one != other or not converts_alike(column, behind)) and column.name.lower() not in self.replaced:
                self._change(f"MODIFY COLUMN {_line(other)}", columns={column.name})
        self._set_charset()

    def _set_options(self, operation: SetOptions) -> None:
        if operation.charset or operation.collation:
            self._set_charset()
        if operation.counter:
            self._alone(f"AUTO_INCREMENT = {operation.counter}")
        for name, value in operation.options:
            if name == "COMMENT":
                self._alone(f"COMMENT = {value}")
            else:
                self.left_out.append(f"{name} = {value}")

    def _set_charset(self) -> None:
        there = self.words.collation_for(self.after.collation)
        if there != self.collation:
            self._alone(f"DEFAULT CHARACTER SET = {charset_of(there)} COLLATE = {there}")
            self.collation = there


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
