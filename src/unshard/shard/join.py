"""The join of shards' structures: the smallest structure that takes the rows of all of them. Pure.

| part | the join |
|---|---|
| column | every column that a shard has |
| integers of one sign | the widest |
| CHAR(n), VARCHAR(n), VARBINARY(n), BIT(n) | the longest |
| TEXT and BLOB types | the largest |
| DECIMAL(p,s) of one s | the largest p |
| TIME(n), DATETIME(n), TIMESTAMP(n) | the largest n |
| ENUM, SET, where one list begins with the other | the longer list |
| NULL | NULL, if any shard has it |
| DEFAULT | the one that all shards have; the column's rule while a shard lacks the column; in a column that is \
changed, none where the server may show it with other letters (`shard.shown_text`) |
| plain key | every plain key that a shard has |

Other attributes of a column, and plain keys of one name, have to be equal; otherwise `IncompatibleError` says in what
the shards differ. Other keys, foreign keys, CHECK, partitions and options of the table are not joined
(`unjoined_parts`): the target has those of the shard that it knew first, until all shards have met a statement that
changes them.

The *rule* of a column is the value that rows of a shard without it get. It is the value that ADD COLUMN fills in: a
constant default, NULL, or the zero of the type for NOT NULL. Every shard must have a column that has no rule
(`fill_of`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from unshard.schema.definition import (
    BLOB_TYPES,
    CLOB_TYPES,
    INTEGER_TYPES,
    ColumnDefinition,
    DataType,
    Default,
    DefaultKind,
    KeyDefinition,
    KeyKind,
    TableDefinition,
)
from unshard.schema.words import unquoted
from unshard.shard.shown_text import has_certain_default, has_certain_members, uncertain_part

_LENGTHS = frozenset({"char", "varchar", "varbinary", "bit"})
_FRACTIONS = frozenset({"time", "datetime", "timestamp"})
_TEXTS = frozenset({"char", "varchar"})
_FLOATS = frozenset({"float", "double"})
_LADDERS = (INTEGER_TYPES, CLOB_TYPES, BLOB_TYPES)
_MOMENT = {
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "datetime": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?"),
    "time": re.compile(r"-?\d\d:\d\d:\d\d(\.\d+)?"),
}


class IncompatibleError(Exception):
    """Raised where no structure can hold the rows of two shards; the text has the reason."""


@dataclass(frozen=True, slots=True)
class Fill:
    """The value that rows get in a column that their shard lacks.

    `value` is its form in Arrow, `text` its form in SQL.
    """

    value: str | int | float | None
    text: str


def fill_of(column: ColumnDefinition) -> Fill | None:
    """Return the rule of a column; None where its value differs by row or by the moment, or can't be carried."""
    if column.generated is not None or column.auto_increment or column.period or column.renewed:
        return None
    if uncertain_part(column):
        return None
    default, kind = column.default, column.type
    if default is None or default.kind is DefaultKind.NULL:
        return Fill(None, "NULL") if column.nullable else _zero(kind)
    if default.kind is not DefaultKind.CONSTANT or default.text[:1] in "bBxX" or default.text[:2] == "0x":
        return None
    text = unquoted(default.text) if default.text[:1] in "'\"" else default.text
    if kind.name in INTEGER_TYPES or kind.name == "year":
        return Fill(int(text), default.text) if re.fullmatch(r"-?\d+", text) else None
    if kind.name == "decimal":
        return _decimal(text, kind)
    if kind.name in _FLOATS:
        return Fill(float(text), default.text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None
    if kind.name in _TEXTS or (kind.name in ("enum", "set") and _are_members(text, kind)):
        return Fill(text, default.text)
    moment = _MOMENT.get(kind.name)
    return _moment(text, default.text, kind) if moment is not None and moment.fullmatch(text) else None


def is_computed(column: ColumnDefinition) -> bool:
    """Return whether the server computes the column's values, or those that rows without it get."""
    computes = column.default is not None and column.default.kind in (DefaultKind.NOW, DefaultKind.EXPRESSION)
    return computes or column.generated is not None or column.auto_increment


def default_of(column: ColumnDefinition) -> Fill | None:
    """Return what a target fills into a column of a row that is written without it.

    None where that differs by row, or the target refuses such a row. An AUTO_INCREMENT column gets its next number for
    NULL.
    """
    if column.auto_increment:
        return Fill(None, "NULL")
    is_empty = column.default is None or column.default.kind is DefaultKind.NULL
    if is_empty and not column.nullable:
        return None
    return Fill(None, "NULL") if is_empty else fill_of(replace(column, renewed=False))


def _zero(kind: DataType) -> Fill | None:
    """Return the value that ADD COLUMN fills into a column that is NOT NULL and has no default."""
    if kind.name in INTEGER_TYPES:
        return Fill(0, "0")
    if kind.name == "decimal":
        return _decimal("0", kind)
    if kind.name in _FLOATS:
        return Fill(0.0, "0")
    if kind.name in _TEXTS or kind.name == "set":
        return Fill("", "''")
    if kind.name == "enum" and kind.members:
        return Fill(kind.members[0], "'" + kind.members[0].replace("\\", "\\\\").replace("'", "''") + "'")
    return None


def _moment(text: str, sql: str, kind: DataType) -> Fill | None:
    """Return the value of a DATE, TIME or DATETIME with as many digits of its second as the type has."""
    digits = kind.arguments[0] if kind.arguments else 0
    whole, _, fraction = text.partition(".")
    if fraction[digits:].strip("0"):
        return None
    return Fill(f"{whole}.{fraction[:digits]:0<{digits}}" if digits else whole, sql)


def _decimal(text: str, kind: DataType) -> Fill | None:
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    shown = format(value, f".{kind.arguments[1] if len(kind.arguments) > 1 else 0}f")
    return Fill(shown, shown) if Decimal(shown) == value else None


def _are_members(text: str, kind: DataType) -> bool:
    return text in kind.members or (kind.name == "set" and all(one in kind.members for one in text.split(",") if text))


def joined_type(one: DataType, other: DataType) -> DataType:
    """Return the smallest type that takes the values of both unchanged. Raises IncompatibleError."""
    one, other = _plain(one), _plain(other)
    if one == other:
        return one
    if (one.unsigned, one.zerofill) == (other.unsigned, other.zerofill) and not one.zerofill:
        ladder = next((names for names in _LADDERS if one.name in names and other.name in names), None)
        if ladder is not None:
            return max(one, other, key=lambda kind: ladder.index(kind.name))
        if one.name == other.name:
            found = _of_one_name(one, other)
            if found is not None:
                return found
    raise IncompatibleError(f"{_shown(one)} and {_shown(other)}")


def _of_one_name(one: DataType, other: DataType) -> DataType | None:
    pair = (one, other)
    if one.name in _LENGTHS or one.name in _FRACTIONS:
        return max(pair, key=lambda kind: kind.arguments or (0,))
    if one.name == "decimal" and one.arguments[1:] == other.arguments[1:]:
        return max(pair, key=lambda kind: kind.arguments)
    if one.name in ("enum", "set"):
        short, long = sorted(pair, key=lambda kind: len(kind.members))
        return long if long.members[: len(short.members)] == short.members else None
    return None


def _plain(kind: DataType) -> DataType:
    """Return the type without an integer's display width, which does not restrict its values."""
    if kind.name in INTEGER_TYPES and not kind.zerofill and kind.arguments:
        return replace(kind, arguments=())
    return kind


def _shown(kind: DataType) -> str:
    inside = ",".join(map(str, kind.arguments)) or ",".join(f"'{member}'" for member in kind.members)
    return f"{kind.name}{f'({inside})' if inside else ''}{' unsigned' if kind.unsigned else ''}"


def _others(column: ColumnDefinition) -> tuple[object, ...]:
    """Return the attributes that a column must have alike in all shards."""
    return (
        _same_name(column.charset),
        _same_name(column.collation),
        column.renewed,
        column.auto_increment,
        column.generated,
        column.stored,
        column.invisible,
        column.period,
        column.others,
    )


def _same_name(name: str | None) -> str | None:
    """Return the name of a character set or collation with `utf8` for `utf8mb3`, which mean the same."""
    return re.sub(r"^utf8mb3(?=_|$)", "utf8", name) if name is not None else None


def _default(column: ColumnDefinition) -> Default | None:
    return None if column.default is None or column.default.kind is DefaultKind.NULL else column.default


def takes_alike(one: ColumnDefinition, other: ColumnDefinition) -> bool:
    """Return whether two columns take the same values and have the same default, as far as the server shows it."""
    first, second = (
        (_plain(column.type), bool(column.nullable), _default(column), _others(column)) for column in (one, other)
    )
    return first == second


def joined_column(
    having: Sequence[ColumnDefinition], rule: str | None, there: ColumnDefinition | None = None
) -> ColumnDefinition:
    """Return the join of a column over the shards that have it; it is never narrower than `there`, the target's column.

    `rule`: the SQL text of the value that rows of shards without it get; None where no shard lacks it. Raises
    IncompatibleError.
    """
    first = having[0]
    kind, nullable = first.type, bool(first.nullable)
    for one in (*having[1:], *([there] if there is not None else [])):
        try:
            kind = joined_type(kind, one.type)
        except IncompatibleError as error:
            raise IncompatibleError(f"column {first.name} is {error}") from None
        nullable = nullable or bool(one.nullable)
    for one in having[1:]:
        if _others(one) != _others(first):
            raise IncompatibleError(f"column {first.name} has different attributes (character set, ON UPDATE …)")
    kind = next((one.type for one in (there, first) if one is not None and _plain(one.type) == _plain(kind)), kind)
    defaults = {_default(one) for one in having}
    default = next(iter(defaults)) if len(defaults) == 1 else None
    if rule is not None:
        default = None if rule == "NULL" else Default(DefaultKind.CONSTANT, rule)
        nullable = nullable or rule == "NULL"
    return _certain(replace(there or first, type=kind, nullable=nullable, default=default), there)


def _certain(column: ColumnDefinition, there: ColumnDefinition | None) -> ColumnDefinition:
    """Return the join without a default that no statement could be generated with; one that is `there` stays.

    Raises IncompatibleError where the members of its type are not certain, and the column is another one than `there`.
    """
    same = there is not None and replace(there, default=None) == replace(column, default=None)
    if not same and not has_certain_members(column):
        why = "has members that may hold letters which the server shows as ?, and it differs in the shards"
        raise IncompatibleError(f"column {column.name} {why}")
    if has_certain_default(column):
        return column
    return replace(column, default=there.default if there is not None and same else None)


def without_columns_and_keys(table: TableDefinition) -> TableDefinition:
    """Return the rest of a table: its options, constraints and partitions, without its counter."""
    return replace(table, columns=(), keys=(), counter="")


def plain_keys(table: TableDefinition) -> dict[str, KeyDefinition]:
    """Return the keys that refuse no row, by name in lower case."""
    return {key.name.lower(): replace(key, generated=False) for key in table.keys if key.kind is KeyKind.PLAIN}


def are_equal_keys(one: KeyDefinition, other: KeyDefinition) -> bool:
    """Return whether two plain keys of one name are over the same parts of columns, and have the same options."""
    first, second = (
        [(part.prefix, part.descending, part.expression.lower()) for part in key.parts] for key in (one, other)
    )
    return (one.columns, one.options, first) == (other.columns, other.options, second)


def joined_keys(tables: Sequence[TableDefinition]) -> dict[str, KeyDefinition]:
    """Return the plain keys of all tables, by name. Raises IncompatibleError where two of one name differ."""
    found: dict[str, KeyDefinition] = {}
    for table in tables:
        for name, key in plain_keys(table).items():
            there = found.setdefault(name, key)
            if not are_equal_keys(there, key):
                raise IncompatibleError(f"key {key.name} has other columns")
    return found


def unjoined_parts(tables: Sequence[TableDefinition]) -> list[str]:
    """Return the parts of the tables that are not joined and differ, in words. Names of constraints do not count."""
    parts: dict[str, list[object]] = {
        "unique keys": [
            {(key.kind, key.columns, key.parts) for key in table.keys if key.kind is not KeyKind.PLAIN}
            for table in tables
        ],
        "foreign keys": [{replace(key, name="") for key in table.foreign_keys} for table in tables],
        "CHECK constraints": [{check.expression for check in table.checks} for table in tables],
        "partitions": [table.partitions for table in tables],
        "table options": [dict(table.options) for table in tables],
    }
    return [name for name, found in parts.items() if any(one != found[0] for one in found)]


def joined_structure(
    tables: Sequence[TableDefinition], base: TableDefinition | None, rules: Mapping[str, str]
) -> tuple[TableDefinition, dict[str, str]]:
    """Return the smallest structure that takes the rows of all tables, and the rules of columns that a table lacks.

    `base` is the target's structure so far, whose columns are never narrowed and never left out; `rules` are the rules
    so far, which are kept. Raises IncompatibleError.
    """
    base = base or tables[0]
    found: dict[str, str] = {}
    columns: list[ColumnDefinition] = []
    order = [column.name for column in base.columns]
    order += [column.name for table in tables for column in table.columns]
    for name in dict.fromkeys(one.lower() for one in order):
        there = base.column(name)
        having = [column for table in tables if (column := table.column(name)) is not None]
        rule = None
        if not having and there is not None and fill_of(there) is None:
            columns.append(there)  # rows without it get what the target makes of its default
            continue
        if len(having) < len(tables):
            rule = rules.get(name) or _rule(there or having[0], tables)
            found[name] = rule
        columns.append(joined_column(having or [there], rule, there) if there else joined_column(having, rule))
    keys = joined_keys(tables)
    kept = [key for key in base.keys if key.kind is not KeyKind.PLAIN]
    return replace(base, columns=tuple(columns), keys=(*kept, *(keys[name] for name in sorted(keys)))), found


def _rule(column: ColumnDefinition, tables: Collection[TableDefinition]) -> str:
    """Return the rule of a column that a table lacks from now on. Raises IncompatibleError where it has none."""
    for table in tables:
        for key in table.keys:
            if key.kind.unique and column.name.lower() in key.columns:
                raise IncompatibleError(f"column {column.name} is part of {key.name}, and not every shard has it")
    fill = fill_of(column)
    if fill is None:
        raise IncompatibleError(f"column {column.name} has no constant value for rows of shards without it")
    return fill.text
