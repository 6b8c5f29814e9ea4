"""The effect of one shard's statement on a merged table. Pure.

Decides whether it may change the table by itself or needs a barrier of all shards.

| operation | kind |
|---|---|
| ADD COLUMN with a rule (`join.fill_of`), a wider type, NULL, SET DEFAULT, ADD plain KEY | grows |
| AUTO_INCREMENT = n, which gh-ost runs with the counter of the shard | neither |
| DROP COLUMN with a rule, DROP plain KEY | shrinks |
| RENAME or CHANGE of a name, any other MODIFY, UNIQUE, PRIMARY KEY, foreign keys, CHECK | barrier |
| partitions, options, columns without a rule, DROP and ADD of one name at once | barrier |
| a default or members that the server may show with other letters (`shard.shown_text`) | barrier |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unshard.schema.definition import ColumnDefinition, KeyKind, TableDefinition
from unshard.schema.operations import (
    AddColumn,
    AddKey,
    ChangeColumn,
    DropColumn,
    DropKey,
    NoChange,
    Operation,
    SetDefault,
    SetOptions,
)
from unshard.shard.join import (
    IncompatibleError,
    are_equal_keys,
    fill_of,
    joined_column,
    plain_keys,
    takes_alike,
    without_columns_and_keys,
)
from unshard.shard.shown_text import uncertain_part

_OF_WIDTH = frozenset({"bit", "datetime", "time", "timestamp"})
"""Types whose values are other ones in another type where the column is wider."""


def barrier_of(before: TableDefinition, after: TableDefinition, operations: Sequence[Operation]) -> str:
    """Return why the operations need a barrier; empty if they don't. `after` is the structure after them."""
    added = {one.written.column.name.lower() for one in operations if isinstance(one, AddColumn)}
    dropped = {one.name.lower() for one in operations if isinstance(one, DropColumn)}
    if both := sorted(added & dropped):
        return f"it drops column {both[0]} and adds another one of that name"
    for operation in operations:
        why = _barrier(before, after, operation)
        if why:
            return why
    return _rest(before, after)


def is_met_by(structure: TableDefinition, before: TableDefinition, after: TableDefinition) -> bool:
    """Return whether a shard of this structure need not meet a statement that leads from `before` to `after`.

    The statement changes columns only, and the structure has them already as they are after it. This is so where one
    shard takes back what it has widened.
    """
    pairs = [(before.column(column.name), column) for column in after.columns]
    if len(before.columns) != len(pairs) or plain_keys(before) != plain_keys(after) or _rest(before, after):
        return False
    if any(old is None or uncertain_part(old) or uncertain_part(new) for old, new in pairs):
        return False
    changed = [new for old, new in pairs if old is not None and not takes_alike(old, new)]
    own = [(structure.column(column.name), column) for column in changed]
    return bool(own) and all(there is not None and takes_alike(there, column) for there, column in own)


def converts_unlike(own: TableDefinition, after: TableDefinition, there: TableDefinition) -> ColumnDefinition | None:
    """Return the first column from which the target would make other values than a shard; None if there is none.

    `own` leads to `after` by the shard's statement. A moment has more digits as a text, and bits have more bytes, where
    the column that `there` is in the target is wider than the shard's.
    """
    lost, made = ([one for one in a.columns if b.column(one.name) is None] for a, b in ((own, after), (after, own)))
    new_name = {lost[0].name: made[0].name} if len(lost) == len(made) == 1 else {}
    for column in own.columns:
        becomes, wide = after.column(new_name.get(column.name, column.name)), there.column(column.name)
        if (
            becomes is None
            or wide is None
            or column.type.name not in _OF_WIDTH
            or becomes.type.name == column.type.name
        ):
            continue
        if (wide.type.name, wide.type.arguments) != (column.type.name, column.type.arguments):
            return column
    return None


def _barrier(before: TableDefinition, after: TableDefinition, operation: Operation) -> str:
    match operation:
        case NoChange():
            return ""
        case AddColumn(written):
            if written.keys or written.foreign_keys:
                return f"it makes a key over the new column {written.column.name}"
            made = after.column(written.column.name)
            return _without_rule(made) if before.column(written.column.name) is None else ""
        case DropColumn(name):
            return _drop(before, name)
        case ChangeColumn(old, written):
            name = written.column.name
            if old.lower() != name.lower():
                return f"it renames column {old} to {name}"
            if written.keys or written.foreign_keys:
                return f"it makes a key over column {name}"
            return _change(before.column(old), after.column(name))
        case SetDefault(name):
            return _change(before.column(name), after.column(name))
        case AddKey(key) if key.kind is KeyKind.PLAIN:
            return ""
        case SetOptions(charset="", collation="", options=()):
            return ""
        case DropKey(name):
            key_there = before.key(name)
            plain = key_there is None or key_there.kind is KeyKind.PLAIN
            return "" if plain else f"it drops {name}, which is not a plain key"
    return f"{type(operation).__name__} is for all shards at once"


def _without_rule(column: ColumnDefinition | None) -> str:
    if column is None or fill_of(column) is not None:
        return ""
    if part := uncertain_part(column):
        return _uncertain(column, part)
    return f"column {column.name} has no constant value that rows of shards without it could get"


def _drop(before: TableDefinition, name: str) -> str:
    for key in before.keys:
        if name.lower() in key.columns and (key.kind is not KeyKind.PLAIN or len(key.columns) > 1):
            return f"column {name} is part of key {key.name}"
    return _without_rule(before.column(name))


def _change(before: ColumnDefinition | None, after: ColumnDefinition | None) -> str:
    if before is None or after is None:
        return ""
    try:
        joined = joined_column((after, before), None, after)
    except IncompatibleError as error:
        return f"no type takes the values of before and behind it: {error}"
    if (joined.type, joined.nullable) != (after.type, bool(after.nullable)):
        return f"it narrows column {after.name}"
    part = uncertain_part(after)
    return _uncertain(after, part) if part else ""


def _uncertain(column: ColumnDefinition, part: str) -> str:
    return f"column {column.name} has {part} with a ? that may stand for a letter of four bytes, such as an emoji"


def _rest(before: TableDefinition, after: TableDefinition) -> str:
    """Return the other differences, apart from columns and added or dropped plain keys; empty if nothing."""

    def rest(table: TableDefinition) -> TableDefinition:
        kept = tuple(replace(key, generated=False) for key in table.keys if key.kind is not KeyKind.PLAIN)
        return replace(without_columns_and_keys(table), keys=tuple(sorted(kept, key=lambda key: key.name.lower())))

    if rest(before) != rest(after):
        return "it changes unique keys, constraints, partitions or options"
    for name, key in plain_keys(after).items():
        there = plain_keys(before).get(name)
        if there is not None and not are_equal_keys(there, key):
            return f"it changes key {key.name}"
    return ""
