"""Fills in what a statement leaves to the server: character sets, widths, nullability, TIMESTAMP defaults, key names.

The rules are those of the servers' own code for CREATE TABLE (`mysql_prepare_create_table`), which an ALTER TABLE runs
through too. Tests compare the results with real servers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

from unshard.mysql.collations import default_collation
from unshard.schema.arranged_keys import arranged_keys
from unshard.schema.definition import (
    BLOB_TYPES,
    CLOB_TYPES,
    INTEGER_TYPES,
    Check,
    ColumnDefinition,
    DataType,
    Default,
    DefaultKind,
    Dialect,
    ForeignKey,
    KeyKind,
    TableDefinition,
    bytes_a_character,
    is_check,
    json_check,
)
from unshard.schema.utc_defaults import in_utc
from unshard.schema.words import unquoted

_CLOB_BYTES = (255, 65535, 16777215, 4294967295)
OF_BINARY = {"char": "binary", "varchar": "varbinary", **dict(zip(CLOB_TYPES, BLOB_TYPES, strict=True))}
"""The type that each text type becomes in the character set `binary`."""

_WITHOUT_ARGUMENTS = frozenset({"year", *CLOB_TYPES, *BLOB_TYPES})
_ONE_BY_DEFAULT = frozenset({"char", "binary", "bit"})
_ZERO_TIMESTAMP = Default(DefaultKind.CONSTANT, "'0000-00-00 00:00:00'")
_NUMERIC = frozenset({*INTEGER_TYPES, "decimal", "float", "double", "year"})
_EVERY_DIGIT = Context(prec=200, rounding=ROUND_HALF_UP)
"""Arithmetic with all digits of any DECIMAL: the type has at most 65."""

_YEAR_DIGITS = 4
_CENTURY, _SHORT_1970, _OF_1900, _OF_2000 = 100, 70, 1900, 2000
_NUMBERED = re.compile(r"_ibfk_(\d+)$")
_CHECK_NUMBER = re.compile(r"_chk_(\d+)$")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The server and the session that ran a statement.

    Args:
        dialect: the product whose rules apply.
        collation: the default collation of the table's schema.
        default_collations: by character set, the session's default collation, for sets where it is not the server's
            built-in default.
        explicit_timestamps: the session's explicit_defaults_for_timestamp.
        shown: whether the statement is a server's SHOW CREATE TABLE. MariaDB shows its JSON as a LONGTEXT, so a `json`
            there is that of MySQL, whose texts are read by MariaDB's rules too (`load.creation`).
        time_zone: the session's, for constants of TIMESTAMP columns, which are brought to UTC; empty to leave them.
    """

    dialect: Dialect
    collation: str = ""
    default_collations: Mapping[str, str] = field(default_factory=dict)
    explicit_timestamps: bool = True
    shown: bool = False
    time_zone: str = ""

    def default_collation(self, charset: str) -> str:
        """Return the collation that a character set implies if none is named."""
        plain = "utf8mb3" if charset == "utf8" else charset
        return self.default_collations.get(plain) or default_collation(charset)


def charset_of(collation: str) -> str:
    """Return the character set that a collation's name begins with."""
    return collation.partition("_")[0]


def complete_table(table: TableDefinition, name: str, around: Surroundings) -> TableDefinition:
    """Return the definition that the server has after a CREATE TABLE. `name` is the table's name."""
    charset, collation = resolved(table.charset, table.collation, charset_of(around.collation), around)
    if not (table.charset or table.collation):
        collation = _named(around.collation, around)
    table = replace(table, charset=charset, collation=collation)
    columns = [complete_column(column, charset, collation, around) for column in table.columns]
    return arranged(replace(table, columns=tuple(columns)), name, around)


def arranged(table: TableDefinition, name: str, around: Surroundings) -> TableDefinition:
    """Return the table with the properties that the server ensures between its parts.

    They are: keys with names and in order, NOT NULL in the primary key, names for checks. Called for a new table and
    after each change of a definition.
    """
    table = _promoted_timestamp(table, around)
    primary = {column for key in table.keys if key.kind is KeyKind.PRIMARY for column in key.columns}
    columns = tuple(
        replace(column, nullable=False) if column.name.lower() in primary else column for column in table.columns
    )
    columns, checks = _checks(columns, table.checks, name, around)
    table = replace(table, columns=columns, checks=checks)
    keys = arranged_keys(table, around.dialect)
    kept = table.foreign_keys if table.option("ENGINE").upper() in ("", "INNODB") else ()
    return replace(table, foreign_keys=named_foreign_keys(kept, name), keys=keys)


def resolved(charset: str | None, collation: str | None, default: str, around: Surroundings) -> tuple[str, str]:
    """Return the character set and collation that a clause means.

    `default` is the character set of a collation that names none.
    """
    charset = _named(charset or "", around)
    collation = _named(collation or "", around)
    if collation == "_bin":
        charset = charset or default
        return charset, "binary" if charset == "binary" else f"{charset}_bin"
    if collation.startswith("uca1400_"):  # MariaDB's, for any character set
        charset = charset or default
        return charset, f"{charset}_{collation}"
    if collation:
        return charset_of(collation), collation
    charset = charset or default
    return charset, _named(around.default_collation(charset), around)


def complete_column(column: ColumnDefinition, charset: str, collation: str, around: Surroundings) -> ColumnDefinition:
    """Return the column as the server has it in a table with that default character set and collation."""
    column = _of_type(column, charset, collation, around)
    if column.period:
        return replace(column, nullable=False, default=None)
    if column.generated is not None:
        return replace(column, nullable=column.nullable is not False, default=None)
    if column.auto_increment:
        return replace(column, nullable=False, default=None)
    if column.type.name == "timestamp" and not around.explicit_timestamps:
        if column.nullable is None:
            column = replace(column, nullable=False)
    elif column.nullable is None:
        column = replace(column, nullable=True)
    default = column.default
    if default is not None and default.kind is DefaultKind.NULL:
        default = None
    elif default is not None and default.kind is DefaultKind.CONSTANT and column.type.name == "timestamp":
        zone = around.time_zone
        default = in_utc(default.text, zone, sum(column.type.arguments)) if zone else default
    elif default is not None and default.kind is DefaultKind.CONSTANT:
        default = Default(DefaultKind.CONSTANT, _constant(default.text, column.type))
    return replace(column, default=default)


def _of_type(column: ColumnDefinition, charset: str, collation: str, around: Surroundings) -> ColumnDefinition:
    kind = column.type
    if kind.name == "json" and around.dialect is Dialect.MARIADB and not around.shown:
        check = json_check(column.name)
        return replace(
            column,
            type=DataType("longtext"),
            charset="utf8mb4",
            collation="utf8mb4_bin",
            others=(*column.others, check),
        )
    if kind.is_text:
        if column.charset or column.collation:
            own = resolved(column.charset, column.collation, charset, around)
        else:
            own = charset, collation
        if own[0] == "binary" and kind.name in OF_BINARY:
            column = replace(column, charset=None, collation=None)
            kind = replace(kind, name=OF_BINARY[kind.name])
        else:
            column = replace(column, charset=own[0], collation=own[1])
    else:
        column = replace(column, charset=None, collation=None)
    return replace(column, type=_complete_type(kind, column.charset))


def _complete_type(kind: DataType, charset: str | None) -> DataType:
    name, arguments = kind.name, kind.arguments
    if name in _ONE_BY_DEFAULT and not arguments:
        arguments = (1,)
    elif name == "decimal":
        arguments = (*arguments, *(10, 0)[len(arguments) :])
        arguments = (arguments[0] or 10, arguments[1])
    elif name in ("text", "blob") and arguments:
        size = arguments[0] * (bytes_a_character(charset) if name == "text" else 1)
        names = CLOB_TYPES if name == "text" else BLOB_TYPES
        name = next(one for one, limit in zip(names, _CLOB_BYTES, strict=True) if size <= limit)
        arguments = ()
    elif name in _WITHOUT_ARGUMENTS or (name in ("time", "datetime", "timestamp") and arguments == (0,)):
        arguments = ()
    members = tuple(member.rstrip(" ") for member in kind.members) if charset != "binary" else kind.members
    return replace(kind, name=name, arguments=arguments, members=members)


def widened(kind: DataType, before: str | None, charset: str) -> DataType:
    """Return a TEXT type that holds as many characters in `charset` as `kind` holds in the character set `before`."""
    limit = _CLOB_BYTES[CLOB_TYPES.index(kind.name)]
    need = limit // bytes_a_character(before) * bytes_a_character(charset)
    wide = next((place for place, size in enumerate(_CLOB_BYTES) if need <= size), len(_CLOB_BYTES) - 1)
    return replace(kind, name=CLOB_TYPES[max(wide, CLOB_TYPES.index(kind.name))])


def converted(column: ColumnDefinition, charset: str, collation: str) -> ColumnDefinition:
    """Return a complete column after CONVERT TO CHARACTER SET: a TEXT type gets as wide as its characters may need."""
    kind = column.type
    if not kind.is_text or column.charset == "binary":
        return column
    if charset == "binary" and kind.name in OF_BINARY:
        return replace(column, type=replace(kind, name=OF_BINARY[kind.name]), charset=None, collation=None)
    if kind.name in CLOB_TYPES:
        kind = widened(kind, column.charset, charset)
    return replace(column, type=kind, charset=charset, collation=collation)


def _named(name: str, around: Surroundings) -> str:
    """Return the name of a character set or collation with the dialect's spelling of utf8."""
    short, _, rest = name.partition("_")
    if around.dialect in (Dialect.MYSQL_5, Dialect.TIDB):
        short = "utf8" if short == "utf8mb3" else short
    elif short == "utf8":
        short = "utf8mb3"
    return f"{short}_{rest}" if rest else short


def _constant(text: str, kind: DataType) -> str:
    """Return a literal as the server stores it: a number gets the digits of its type."""
    if kind.name not in _NUMERIC or text[:1] in "bBxX":
        return text
    quoted = text[:1] in "'\""
    plain = unquoted(text) if quoted else text
    try:
        value = Decimal(plain)
    except InvalidOperation:
        return text
    if kind.name == "year":
        return _year(_rounded(value, 0), zero=not quoted or len(plain) == _YEAR_DIGITS)
    if kind.name == "decimal":
        value = _rounded(value, kind.arguments[1])
    elif kind.name in INTEGER_TYPES:
        value = _rounded(value, 0)
    return format(value, "f")


def _year(value: Decimal, *, zero: bool) -> str:
    """Return the four digits of the year that a number means.

    A year of two digits is one of 1970 to 2069. `zero` tells whether 0 means the year 0000: the number 0 and the text
    '0000' do, and every other text means 2000.
    """
    if 0 < value < _CENTURY or (value == 0 and not zero):
        value += _OF_2000 if value < _SHORT_1970 else _OF_1900
    return format(value, "04f")


def _rounded(value: Decimal, digits: int) -> Decimal:
    """Return the value with this many digits after the point; a half is rounded away from zero, as a server does."""
    return value.quantize(Decimal(1).scaleb(-digits), context=_EVERY_DIGIT) if value.is_finite() else value


def _promoted_timestamp(table: TableDefinition, around: Surroundings) -> TableDefinition:
    """Make the first TIMESTAMP renew itself and the others default to zero.

    A server does so without explicit_defaults_for_timestamp.
    """
    if around.explicit_timestamps:
        return table
    columns = list(table.columns)
    first = True
    for place, column in enumerate(columns):
        if column.type.name != "timestamp" or column.generated is not None or column.period:
            continue
        bare = column.default is None and not column.renewed and column.nullable is False
        if bare and first:
            columns[place] = replace(column, default=Default(DefaultKind.NOW), renewed=True)
        elif bare or (column.default is None and column.nullable is False):
            columns[place] = replace(column, default=_ZERO_TIMESTAMP)
        first = False
    return replace(table, columns=tuple(columns))


def _checks(
    columns: Sequence[ColumnDefinition], checks: Sequence[Check], name: str, around: Surroundings
) -> tuple[tuple[ColumnDefinition, ...], tuple[Check, ...]]:
    """Return the columns and the table's checks, all with names.

    MySQL turns a column's CHECK into one of the table. Both MySQL and MariaDB give a name to a CHECK without one.
    """
    found = list(checks)
    kept = []
    for column in columns:
        own = [other for other in column.others if is_check(other)]
        if own and around.dialect is not Dialect.MARIADB:
            found[:0] = [_check_of(text) for text in own]
            column = replace(column, others=tuple(other for other in column.others if other not in own))
        kept.append(column)
    taken = {check.name.lower() for check in found}
    named = []
    for check in found:
        if not check.name:
            check = replace(check, name=_check_name(name, taken, around))
            taken.add(check.name.lower())
        named.append(check)
    return tuple(kept), tuple(named)


def _check_of(text: str) -> Check:
    head, _, rest = text.partition("(")
    expression, _, behind = rest.rpartition(")")
    words = head.split()
    symbol = words[1] if words[0].upper() == "CONSTRAINT" and len(words) > 2 else ""
    return Check(symbol.strip("`"), expression, "NOT ENFORCED" if "NOT" in behind.upper() else "")


def _check_name(table: str, taken: set[str], around: Surroundings) -> str:
    if around.dialect is Dialect.MARIADB:
        numbers = (f"CONSTRAINT_{number}" for number in range(1, 1000))
        return next(one for one in numbers if one.lower() not in taken)
    used = [int(found[1]) for name in taken if (found := _CHECK_NUMBER.search(name))]
    return f"{table}_chk_{max(used, default=0) + 1}"


def named_foreign_keys(foreign_keys: Sequence[ForeignKey], name: str) -> tuple[ForeignKey, ...]:
    """Return the foreign keys of the table `name`.

    Those without a name get the one that MySQL and MariaDB give them.
    """
    numbers = [int(found[1]) for key in foreign_keys if (found := _NUMBERED.search(key.name))]
    last = max(numbers, default=0)
    named = []
    for key in foreign_keys:
        if not key.name:
            last += 1
            key = replace(key, name=f"{name}_ibfk_{last}")
        named.append(key)
    return tuple(named)
