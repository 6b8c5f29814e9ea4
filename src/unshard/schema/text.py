"""Writes definitions as text: SHOW CREATE TABLE in each product's spelling.

Also converts them to the `Table` that the rest of Unshard uses.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from unshard.model.table import Column, Index, Table, TableName, quote_name
from unshard.mysql.structure import with_hidden_columns
from unshard.schema.definition import (
    BLOB_TYPES,
    CLOB_TYPES,
    INTEGER_TYPES,
    ColumnDefinition,
    DataType,
    Default,
    DefaultKind,
    Dialect,
    KeyDefinition,
    KeyKind,
    KeyPart,
    TableDefinition,
)
from unshard.schema.implied import Surroundings, charset_of
from unshard.schema.lex import Token, TokenKind, tokens
from unshard.schema.statements import read_create
from unshard.schema.words import NotUnderstoodError

_WIDTHS = {"tinyint": (4, 3), "smallint": (6, 5), "mediumint": (9, 8), "int": (11, 10), "bigint": (20, 20)}
"""The display width of an integer for which none is given: signed, unsigned."""

_DIGITS = {"tinyint": (3, 3), "smallint": (5, 5), "mediumint": (7, 7), "int": (10, 10), "bigint": (19, 20)}
_LENGTHS = dict(zip((*CLOB_TYPES, *BLOB_TYPES), (255, 65535, 16777215, 4294967295) * 2, strict=True))
_NUMBERS = frozenset({*INTEGER_TYPES, "decimal", "float", "double", "year"})
_ESCAPES = str.maketrans({"'": "''", "\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r"})
_UNQUOTED = frozenset({"ENGINE", "COMMENT"})


def read_show_create(text: str, dialect: Dialect) -> TableDefinition:
    """Return the definition in the output of SHOW CREATE TABLE. Raises NotUnderstoodError.

    TiDB prints a backslash in a member of an ENUM or SET unescaped.
    """
    found = tokens(text, mariadb=dialect is Dialect.MARIADB, backslash_escapes=dialect is not Dialect.TIDB)
    if dialect is Dialect.TIDB:
        found = _with_escaped_members(found)
    body = next((place for place, token in enumerate(found) if token.is_symbol("(")), None)
    if body is None:
        raise NotUnderstoodError("a CREATE TABLE without columns")
    return read_create(found[body:], text)


def _with_escaped_members(found: Sequence[Token]) -> tuple[Token, ...]:
    """Return the tokens of TiDB's text with each backslash in a member doubled, as in statements and other texts."""
    made: list[Token] = []
    inside = False
    for place, token in enumerate(found):
        if token.is_symbol("("):
            inside = place > 0 and found[place - 1].word in ("ENUM", "SET")
        elif token.is_symbol(")"):
            inside = False
        elif inside and token.kind is TokenKind.STRING:
            token = replace(token, value=token.value.replace("\\", "\\\\"))
        made.append(token)
    return tuple(made)


def show_create(table: TableDefinition, name: str, dialect: Dialect) -> str:
    """Return the output of SHOW CREATE TABLE, without the AUTO_INCREMENT counter."""
    lines = [f"  {column_text(column, table, dialect)}" for column in table.columns if not _hidden(column)]
    lines += [f"  {key_text(key)}" for key in table.keys]
    if table.period:
        lines.append(f"  PERIOD FOR {table.period}")
    ends = [quote_name(column.name) for column in table.columns if column.period and not _hidden(column)]
    if len(ends) == 2:
        lines.append(f"  PERIOD FOR SYSTEM_TIME ({ends[0]}, {ends[1]})")
    for foreign_key in table.foreign_keys:
        columns = ", ".join(map(quote_name, foreign_key.columns))
        own = quote_name(foreign_key.name)
        lines.append(f"  CONSTRAINT {own} FOREIGN KEY ({columns}) {foreign_key.reference}")
    for check in table.checks:
        rest = " /*!80016 NOT ENFORCED */" if check.rest else ""
        lines.append(f"  CONSTRAINT {quote_name(check.name)} CHECK ({check.expression}){rest}")
    body = ",\n".join(lines)
    return f"CREATE TABLE {quote_name(name)} (\n{body}\n) {_options(table, dialect)}{_partitions(table)}"


def _hidden(column: ColumnDefinition) -> bool:
    """Return whether a column is one of the two that MariaDB itself adds to a versioned table."""
    return bool(column.period) and column.invisible and column.name in ("row_start", "row_end")


def _options(table: TableDefinition, dialect: Dialect) -> str:
    words = [f"ENGINE={table.option('ENGINE') or 'InnoDB'}", f"DEFAULT CHARSET={table.charset}"]
    if dialect is not Dialect.MYSQL_5 or not _is_default(table.charset, table.collation, dialect):
        words.append(f"COLLATE={table.collation}")
    for name, value in table.options:
        if name == "WITH SYSTEM VERSIONING":
            words.append(name)
        elif name not in _UNQUOTED:
            words.append(f"{name}={value}")
    if comment := table.option("COMMENT"):
        words.append(f"COMMENT={comment}")
    return " ".join(words)


def _is_default(charset: str, collation: str, dialect: Dialect) -> bool:
    return Surroundings(dialect).default_collation(charset) == collation


def _partitions(table: TableDefinition) -> str:
    return f"\n {table.partitions}" if table.partitions else ""


def column_text(column: ColumnDefinition, table: TableDefinition, dialect: Dialect, *, brackets: bool = False) -> str:
    """Return a column's line. Its character set is named only if it differs from the table's.

    `brackets`: as `default_text`.
    """
    words = [quote_name(column.name), type_text(column.type, dialect)]
    if column.type.is_text and (column.charset, column.collation) != (table.charset, table.collation):
        words.append(f"CHARACTER SET {column.charset} COLLATE {column.collation}")
    if column.generated is not None:
        expression = column.generated
        words.append(f"GENERATED ALWAYS AS ({expression}) {'STORED' if column.stored else 'VIRTUAL'}")
    if column.period:
        words.append(f"GENERATED ALWAYS AS ROW {column.period.upper()}")
    elif not column.nullable:
        words.append("NOT NULL")
    elif column.type.name == "timestamp" and column.generated is None:
        words.append("NULL")
    if column.auto_increment:
        words.append("AUTO_INCREMENT")
    if (default := default_text(column, dialect, brackets=brackets)) is not None:
        words.append(f"DEFAULT {default}")
    if column.renewed:
        words.append(f"ON UPDATE {_now(column.type, dialect)}")
    if column.comment is not None:
        words.append(f"COMMENT {column.comment}")
    if column.invisible:
        words.append("INVISIBLE" if dialect is Dialect.MARIADB else "/*!80023 INVISIBLE */")
    return " ".join([*words, *column.others])


def default_text(column: ColumnDefinition, dialect: Dialect, *, brackets: bool = False) -> str | None:
    """Return the text after DEFAULT in SHOW CREATE TABLE; None if the column has no DEFAULT clause.

    `brackets`: an expression is in brackets, as MySQL takes it; MariaDB, which takes it too, shows some without.
    """
    default = column.default
    if column.generated is not None or column.auto_increment or column.period:
        return None
    if default is None:
        bare = column.type.name in (*CLOB_TYPES, *BLOB_TYPES, "geometry") and dialect.of_mysql
        return "NULL" if column.nullable and not bare else None
    match default.kind:
        case DefaultKind.NULL:
            return "NULL"
        case DefaultKind.NOW:
            return _now(column.type, dialect)
        case DefaultKind.EXPRESSION:
            return f"({default.text})" if brackets else _expression(default, dialect)
    numeric = column.type.name in _NUMBERS and default.text[:1] not in "bBxX"
    if numeric and dialect is not Dialect.MARIADB and default.text[:1] not in "'\"":
        return f"'{default.text}'"
    return default.text


def _expression(default: Default, dialect: Dialect) -> str:
    """Return a default expression with its brackets. MariaDB writes a single function call without brackets."""
    if dialect is not Dialect.MARIADB:
        return f"({default.text})"
    alone = re.fullmatch(r"\w+\([^()]*\)", default.text)
    return default.text if alone else f"({default.text})"


def _now(kind: DataType, dialect: Dialect) -> str:
    digits = f"({kind.arguments[0]})" if kind.arguments else ""
    if dialect is Dialect.MARIADB:
        return f"current_timestamp{digits or '()'}"
    return f"CURRENT_TIMESTAMP{digits}"


def type_text(kind: DataType, dialect: Dialect) -> str:
    """Return a type as in `information_schema.columns.column_type`."""
    arguments = kind.arguments
    text = kind.name
    if kind.name in INTEGER_TYPES:
        arguments = arguments or (_WIDTHS[kind.name][kind.unsigned],)
        boolean = kind.name == "tinyint" and arguments == (1,) and not kind.unsigned
        if not (dialect.shows_widths or kind.zerofill or boolean):
            arguments = ()
    elif kind.name == "year" and dialect.shows_widths:
        arguments = (4,)
    if kind.members:
        text += "(" + ",".join(f"'{member.translate(_ESCAPES)}'" for member in kind.members) + ")"
    elif arguments:
        text += "(" + ",".join(map(str, arguments)) + ")"
    return text + " unsigned" * kind.unsigned + " zerofill" * kind.zerofill


def key_text(key: KeyDefinition) -> str:
    """Return a key's line."""
    name = "" if key.kind is KeyKind.PRIMARY else f" {quote_name(key.name)}"
    return f"{key.kind}{name} {key_body(key)}"


def key_body(key: KeyDefinition) -> str:
    """Return the text of a key's columns and options."""
    return " ".join([f"({','.join(_part(part) for part in key.parts)})", *key.options])


def _part(part: KeyPart) -> str:
    own = f"({part.expression})" if part.expression else quote_name(part.column)
    return own + (f"({part.prefix})" if part.prefix else "") + " DESC" * part.descending


def to_table(table: TableDefinition, name: TableName, dialect: Dialect) -> Table:
    """Return the `Table` that `mysql.structure.read_table` would read for this definition from such a server."""
    columns = tuple(to_column(column, dialect) for column in table.columns)
    create_sql = show_create(table, name.table, dialect)
    if dialect is Dialect.MARIADB:
        keys = ((key.name, "", 0, not key.kind.unique, _algorithm(key)) for key in table.keys)
        columns = with_hidden_columns(columns, keys, create_sql)
    ends = {column.name for column in columns if column.period}
    return Table(
        name,
        columns,
        tuple(sorted((_index(key, ends) for key in table.keys), key=lambda index: index.name.lower())),
        create_sql,
        bool(table.foreign_keys),
    )


def _algorithm(key: KeyDefinition) -> str:
    return "HASH" if "USING HASH" in key.options else "BTREE"


def _index(key: KeyDefinition, ends: Collection[str]) -> Index:
    parts = [part for part in key.parts if part.column not in ends]
    columns: Any = tuple(part.column or None for part in parts)  # a part over an expression has no column
    return Index(key.name, columns, tuple(part.prefix for part in parts), key.kind.unique)


def to_column(column: ColumnDefinition, dialect: Dialect) -> Column:
    """Return a column with the values that `information_schema.columns` of that product shows."""
    kind = column.type
    definition = type_text(kind, dialect)
    if any(other.upper().startswith("COMPRESSED") for other in column.others):
        definition += " /*M!100301 COMPRESSED*/"
    precision, scale = _precision(kind, dialect)
    return Column(
        name=column.name,
        type=kind.name,
        definition=definition,
        nullable=bool(column.nullable),
        charset=None if column.charset == "binary" else column.charset,
        collation=None if column.charset == "binary" else column.collation,
        length=_length(kind),
        precision=precision,
        scale=scale,
        fsp=kind.arguments[0] if kind.name in ("time", "datetime", "timestamp") and kind.arguments else 0,
        members=kind.members,
        generated=column.generated is not None or bool(column.period),
        auto_increment=column.auto_increment,
        invisible=column.invisible,
        has_default=column.default is not None or bool(column.nullable) or column.auto_increment,
        period=column.period,
    )


def _precision(kind: DataType, dialect: Dialect) -> tuple[int, int]:
    if kind.name in INTEGER_TYPES:
        if dialect is Dialect.TIDB:
            return (kind.arguments or (_WIDTHS[kind.name][kind.unsigned],))[0], 0
        return _DIGITS[kind.name][kind.unsigned], 0
    if kind.name in ("float", "double"):
        digits, scale = kind.arguments if len(kind.arguments) == 2 else (12 if kind.name == "float" else 22, 0)
        return digits, scale
    if kind.name == "decimal":
        return kind.arguments[0], kind.arguments[1]
    return (kind.arguments[0], 0) if kind.name == "bit" else (0, 0)


def _length(kind: DataType) -> int:
    if kind.name in _LENGTHS:
        return _LENGTHS[kind.name]
    if kind.name == "enum":
        return max((len(member) for member in kind.members), default=0)
    if kind.name == "set":
        return sum(map(len, kind.members)) + max(0, len(kind.members) - 1)
    if kind.name in ("char", "varchar", "binary", "varbinary"):
        return kind.arguments[0]
    return 4 * kind.arguments[0] if kind.name == "vector" and kind.arguments else 0


def schema_options(create_sql: str) -> tuple[str, str]:
    """Return the character set and collation in a SHOW CREATE DATABASE.

    The collation is empty if it is the character set's default.
    """
    charset = collation = ""
    found = [token for token in tokens(create_sql) if not token.is_symbol("=")]
    for place, token in enumerate(found[:-1]):
        value = found[place + 1].value if found[place + 1].kind is not TokenKind.SYMBOL else ""
        if token.word in ("SET", "CHARSET"):
            charset = value.lower()
        elif token.word == "COLLATE":
            collation = value.lower()
    return charset or (charset_of(collation) if collation else ""), collation
