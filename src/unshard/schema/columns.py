"""Reads columns as CREATE TABLE and ALTER TABLE define them, without adding anything that the server would fill in."""

from __future__ import annotations

from dataclasses import replace

from unshard.schema.definition import (
    ColumnDefinition,
    DataType,
    Default,
    DefaultKind,
    ForeignKey,
    KeyDefinition,
    KeyKind,
    KeyPart,
)
from unshard.schema.lex import Token, TokenKind
from unshard.schema.operations import ColumnClause
from unshard.schema.words import NotUnderstoodError, StatementWords, unquoted

_SYNONYMS = {
    "integer": "int", "middleint": "mediumint", "int1": "tinyint", "int2": "smallint", "int3": "mediumint",
    "int4": "int", "int8": "bigint", "dec": "decimal", "numeric": "decimal", "fixed": "decimal", "real": "double",
    "float4": "float", "float8": "double", "character": "char", "varcharacter": "varchar",
    "geomcollection": "geometrycollection",
}  # fmt: skip
_NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_POSITIONS = frozenset({"FIRST", "AFTER"})
_WITHOUT_VALUE = frozenset({"COMPRESSED", "VISIBLE", "PERSISTENT"})
_LARGEST_FLOAT = 24
"""The largest precision in bits that stays a FLOAT: FLOAT(p) with a larger p is a DOUBLE."""


def read_column(at: StatementWords) -> ColumnClause:
    """Read a column's definition, from its name up to FIRST, AFTER, a comma or a bracket, with the keys in it."""
    name = at.column_name()
    column = replace(_type(at), name=name)
    keys: list[KeyDefinition] = []
    foreign_keys: list[ForeignKey] = []
    if column.auto_increment:  # SERIAL
        keys.append(KeyDefinition(KeyKind.UNIQUE, "", (KeyPart(name),)))
    while not (at.ended or at.symbol(",") or at.symbol(")") or at.word() in _POSITIONS):
        if at.take("UNIQUE"):
            at.take("KEY")
            keys.append(KeyDefinition(KeyKind.UNIQUE, "", (KeyPart(name),)))
        elif at.take("PRIMARY", "KEY") or at.take("KEY"):
            # TiDB's options of a key stand in comments, which other servers ignore
            keys.append(KeyDefinition(KeyKind.PRIMARY, "PRIMARY", (KeyPart(name),)))
        elif at.word() == "REFERENCES":
            foreign_keys.append(ForeignKey("", (name,), read_references(at)))
        elif at.take("SERIAL", "DEFAULT", "VALUE"):
            column = replace(column, nullable=False, auto_increment=True)
            keys.append(KeyDefinition(KeyKind.UNIQUE, "", (KeyPart(name),)))
        else:
            column = _attribute(at, column)
    return ColumnClause(column, tuple(keys), tuple(foreign_keys))


def _type(at: StatementWords) -> ColumnDefinition:
    """Read a type with the character set in it. Returns a column without a name."""
    first = at.name().lower()
    if first == "serial":
        serial = DataType("bigint", unsigned=True)
        return ColumnDefinition("", serial, nullable=False, auto_increment=True)
    charset = None
    if first in ("national", "nchar", "nvarchar"):
        charset = "utf8mb3"
        if first == "national":
            first = at.name().lower()
        varying = at.take("VARCHAR") or at.take("VARYING") or first in ("nvarchar", "varchar")
        first = "varchar" if varying else "char"
    elif first in ("char", "character") and at.take("VARYING"):
        first = "varchar"
    elif first == "double":
        at.take("PRECISION")
    elif first == "long":
        first = "mediumblob" if at.take("VARBINARY") else "mediumtext"
        if first == "mediumtext":
            at.take("VARCHAR") or at.take("CHAR", "VARYING") or at.take("CHARACTER", "VARYING")
    if first in ("bool", "boolean"):
        return ColumnDefinition("", DataType("tinyint", (1,)))
    kind = _SYNONYMS.get(first, first)
    arguments: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    if at.symbol("("):
        inside = at.brackets()
        if kind in ("enum", "set"):
            members = tuple(_member(token) for token in inside if not token.is_symbol(","))
        else:
            arguments = tuple(number(token) for token in inside if not token.is_symbol(","))
    if kind == "float" and len(arguments) == 1:
        kind, arguments = ("double" if arguments[0] > _LARGEST_FLOAT else "float"), ()
    unsigned = zerofill = False
    while True:
        if at.take("UNSIGNED"):
            unsigned = True
        elif at.take("ZEROFILL"):
            unsigned = zerofill = True
        elif not at.take("SIGNED"):
            break
    found = ColumnDefinition("", DataType(kind, arguments, members, unsigned, zerofill), charset=charset)
    return _charset(at, found)


def _charset(at: StatementWords, column: ColumnDefinition) -> ColumnDefinition:
    """Read the character set and the collation that follow a type."""
    binary = False
    while True:
        if at.take("CHARACTER", "SET") or at.take("CHAR", "SET") or at.take("CHARSET"):
            at.take_symbol("=")
            column = replace(column, charset=charset_name(at))
        elif at.take("COLLATE"):
            at.take_symbol("=")
            column = replace(column, collation=charset_name(at))
        elif at.take("ASCII"):
            column = replace(column, charset="latin1")
        elif at.take("UNICODE"):
            column = replace(column, charset="ucs2")
        elif at.take("BYTE"):
            column = replace(column, charset="binary")
        elif at.word() == "BINARY" and column.type.is_text:
            at.place += 1
            binary = True
        else:
            break
    # BINARY stands for the character set's _bin collation, whichever set that turns out to be
    return replace(column, collation="_bin") if binary and column.collation is None else column


def charset_name(at: StatementWords) -> str:
    """Read the name of a character set or collation, bare or quoted; return it in lower case."""
    token = at.tokens[at.place] if at.place < len(at.tokens) else None
    if token is not None and token.kind is TokenKind.STRING:
        return unquoted(at.string()).lower()
    return at.name().lower()


def _attribute(at: StatementWords, column: ColumnDefinition) -> ColumnDefinition:
    if at.take("NOT", "NULL"):
        return replace(column, nullable=False)
    if at.take("NULL"):
        return replace(column, nullable=True)
    if at.take("DEFAULT"):
        return replace(column, default=read_default(at))
    if at.take("ON", "UPDATE"):
        at.name()
        if at.symbol("("):
            at.brackets()
        return replace(column, renewed=True)
    if at.take("AUTO_INCREMENT"):
        return replace(column, auto_increment=True)
    if at.take("COMMENT"):
        at.take_symbol("=")
        return replace(column, comment=at.string())
    if at.take("INVISIBLE") or at.take("VISIBLE"):
        return replace(column, invisible=at.tokens[at.place - 1].word == "INVISIBLE")
    if at.word() == "COLLATE" or at.word() in ("CHARACTER", "CHARSET"):
        return _charset(at, column)
    if at.take("GENERATED", "ALWAYS") or at.word() == "AS":
        return _generated(at, column)
    if at.take("VIRTUAL") or at.take("STORED") or at.take("PERSISTENT"):
        return replace(column, stored=at.tokens[at.place - 1].word != "VIRTUAL")
    return replace(column, others=(*column.others, _other(at)))


def _generated(at: StatementWords, column: ColumnDefinition) -> ColumnDefinition:
    at.need("AS")
    if at.take("ROW"):
        ends = not at.take("START") and at.take("END")
        return replace(column, period="end" if ends else "start")
    return replace(column, generated=at.sql(at.brackets()))


def read_default(at: StatementWords) -> Default:
    """Read the value after DEFAULT."""
    if at.symbol("("):
        return Default(DefaultKind.EXPRESSION, at.sql(at.brackets()))
    if at.take("NULL"):
        return Default(DefaultKind.NULL)
    if at.word() in _NOW:
        at.place += 1
        if at.symbol("("):
            at.brackets()
        return Default(DefaultKind.NOW)
    start = at.place
    token = at.tokens[at.place] if at.place < len(at.tokens) else None
    if token is None:
        raise at.fail("a default")
    if token.kind is TokenKind.WORD and not token.value[:1].isdigit():
        return _word_as_default(at, token)
    at.place += 1
    if token.kind is TokenKind.STRING:
        return Default(DefaultKind.CONSTANT, at.since(start))
    while not at.ended and at.tokens[at.place].start == at.tokens[at.place - 1].end:  # -1.5e-3
        if at.symbol(",") or at.symbol(")"):
            break
        at.place += 1
    return Default(DefaultKind.CONSTANT, at.since(start))


def _word_as_default(at: StatementWords, token: Token) -> Default:
    start = at.place
    at.place += 1
    if token.word in ("TRUE", "FALSE"):
        return Default(DefaultKind.CONSTANT, "1" if token.word == "TRUE" else "0")
    if not at.ended and at.tokens[at.place].kind is TokenKind.STRING:  # b'1', x'41', n'a', _latin1'a'
        at.place += 1
        return Default(DefaultKind.CONSTANT, at.since(start))
    if token.word in ("NEXT", "PREVIOUS") and at.take("VALUE", "FOR"):
        at.column_name()
    while at.symbol("(") or at.symbol("."):
        if not at.take_symbol("."):
            at.brackets()
        else:
            at.name()
    return Default(DefaultKind.EXPRESSION, at.since(start))


def _other(at: StatementWords) -> str:
    """Read an attribute that is kept as text, as it was written."""
    start = at.place
    if at.take("CONSTRAINT"):
        if at.word() != "CHECK":
            at.name()
        if at.word() != "CHECK":
            raise at.fail("CHECK")
    if at.take("CHECK"):
        at.brackets()
        at.take("NOT", "ENFORCED") or at.take("ENFORCED")
    elif at.take("WITH", "SYSTEM", "VERSIONING") or at.take("WITHOUT", "SYSTEM", "VERSIONING"):
        pass
    elif at.word() in _WITHOUT_VALUE:
        at.place += 1
        if at.take_symbol("="):
            at.place += 1
    else:
        # NAME value, or NAME = value: SRID 4326, STORAGE DISK, COLUMN_FORMAT FIXED, ENGINE_ATTRIBUTE 'x'
        if at.tokens[at.place].kind is not TokenKind.WORD:
            raise at.fail("an attribute of a column")
        at.place += 1
        at.take_symbol("=")
        if at.symbol("("):
            at.brackets()
        elif not (at.ended or at.symbol(",") or at.symbol(")")):
            at.place += 1
    return at.since(start)


def read_references(at: StatementWords) -> str:
    """Read a REFERENCES clause; return it as it is written."""
    start = at.place
    at.need("REFERENCES")
    at.column_name()
    if at.symbol("("):
        at.brackets()
    while at.take("MATCH") or at.take("ON", "DELETE") or at.take("ON", "UPDATE"):
        if at.take("SET") or at.take("NO"):
            pass
        at.place += 1
    return at.since(start)


def number(token: Token) -> int:
    """Return the value of a token of digits. Raises NotUnderstoodError for another one."""
    if not token.value.isdigit():
        raise NotUnderstoodError(f"a number is expected at: {token.value}")
    return int(token.value)


def _member(token: Token) -> str:
    if token.kind is not TokenKind.STRING:
        raise NotUnderstoodError(f"a quoted text is expected at: {token.value}")
    return unquoted(token.value)
