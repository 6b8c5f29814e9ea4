"""Keys, constraints and options of a table, read as they are written."""

from __future__ import annotations

from dataclasses import replace

from unshard.schema.columns import charset_name, number, read_references
from unshard.schema.definition import Check, ForeignKey, KeyDefinition, KeyKind, KeyPart
from unshard.schema.operations import AddCheck, AddForeignKey, AddKey, SetOptions
from unshard.schema.words import NotUnderstoodError, StatementWords

_WORDS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "CONSTRAINT"})
_TWO_WORD_OPTIONS = frozenset({"DATA", "INDEX"})
_VALUED = frozenset(
    {"KEY_BLOCK_SIZE", "COMMENT", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "CLUSTERING", "M", "DISTANCE"}
)
"""Options of a key that take a value."""


def begins_key(at: StatementWords) -> bool:
    """Return whether a key or a constraint follows, and not a column."""
    return at.word() in _WORDS or (at.word() == "VECTOR" and at.word(1) in ("INDEX", "KEY"))


def read_key_or_constraint(at: StatementWords) -> AddKey | AddForeignKey | AddCheck:
    """Read a key, foreign key or check as in CREATE TABLE or after ADD. Raises NotUnderstoodError."""
    symbol = ""
    unless_there = False
    if at.take("CONSTRAINT"):
        unless_there = at.take("IF", "NOT", "EXISTS")
        if at.word() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            symbol = at.name()
    if at.take("CHECK"):
        expression = at.sql(at.brackets())
        start = at.place
        at.take("NOT", "ENFORCED") or at.take("ENFORCED")
        rest = at.since(start)
        return AddCheck(
            Check(symbol, expression, "NOT ENFORCED" if rest.upper().startswith("NOT") else ""), unless_there
        )
    if at.take("FOREIGN", "KEY"):
        unless_there = at.take("IF", "NOT", "EXISTS") or unless_there
        index = "" if at.symbol("(") else at.name()
        columns = tuple(token.value for token in at.brackets() if not token.is_symbol(","))
        return AddForeignKey(ForeignKey(symbol, columns, read_references(at), index), unless_there)
    return _key(at, symbol, unless_there)


def _key(at: StatementWords, symbol: str, unless_there: bool) -> AddKey:
    kind = KeyKind.PLAIN
    if at.take("PRIMARY"):
        kind = KeyKind.PRIMARY
    else:
        for word in (KeyKind.UNIQUE, KeyKind.FULLTEXT, KeyKind.SPATIAL, KeyKind.VECTOR):
            if at.take(word.name):
                kind = word
    if not (at.take("KEY") or at.take("INDEX")) and kind in (KeyKind.PRIMARY, KeyKind.PLAIN):
        raise at.fail("KEY")
    unless_there = at.take("IF", "NOT", "EXISTS") or unless_there
    name = symbol
    if not (at.symbol("(") or (at.word() in ("USING", "TYPE") and not at.symbol("(", 1))):
        name = at.name()
    if kind is KeyKind.PRIMARY:
        name = "PRIMARY"
    return AddKey(read_key_body(at, kind, name), unless_there)


def read_key_body(at: StatementWords, kind: KeyKind, name: str) -> KeyDefinition:
    """Read a key, from the USING before its columns on."""
    options: list[str] = []
    if at.take("USING") or at.take("TYPE"):
        options.append(f"USING {at.name().upper()}")
    parts: list[KeyPart] = []
    at.listed(lambda: parts.append(read_key_part(at)))
    while not (at.ended or at.symbol(",") or at.symbol(")")):
        options.append(read_key_option(at))
    return KeyDefinition(kind, name, tuple(parts), tuple(options))


def read_key_part(at: StatementWords) -> KeyPart:
    """Read a column or expression of a key, with its prefix length and its order. Raises NotUnderstoodError."""
    if at.symbol("("):
        part = KeyPart(expression=at.sql(at.brackets()))
    else:
        part = KeyPart(at.column_name())
        if at.symbol("("):
            (length,) = at.brackets()
            part = replace(part, prefix=number(length))
        if at.take("WITHOUT", "OVERLAPS"):
            raise NotUnderstoodError("a key WITHOUT OVERLAPS")
    descending = at.take("DESC")
    at.take("ASC")
    return replace(part, descending=descending)


def read_key_option(at: StatementWords) -> str:
    """Read one option of a key and return it in the words of SHOW CREATE TABLE. Raises NotUnderstoodError."""
    if at.take("USING") or at.take("TYPE"):
        return f"USING {at.name().upper()}"
    if at.take("VISIBLE") or at.take("NOT", "IGNORED"):
        return "VISIBLE"
    if at.take("INVISIBLE") or at.take("IGNORED"):
        return "INVISIBLE"
    start = at.place
    if at.take("WITH", "PARSER"):
        at.name()
    elif at.word() in (
        "KEY_BLOCK_SIZE",
        "COMMENT",
        "ENGINE_ATTRIBUTE",
        "SECONDARY_ENGINE_ATTRIBUTE",
        "CLUSTERING",
        "M",
        "DISTANCE",
    ):
        at.place += 1
        at.take_symbol("=")
        at.place += 1
    elif at.take("CLUSTERED") or at.take("NONCLUSTERED") or at.take("GLOBAL"):
        pass
    else:
        raise at.fail("an option of a key")
    return at.since(start)


def read_option(at: StatementWords, given: SetOptions) -> SetOptions:
    """Read one table option. Returns it added to `given`, the options read before."""
    default = at.take("DEFAULT")
    if at.take("CHARACTER", "SET") or at.take("CHAR", "SET") or at.take("CHARSET"):
        at.take_symbol("=")
        return replace(given, charset=charset_name(at))
    if at.take("COLLATE"):
        at.take_symbol("=")
        return replace(given, collation=charset_name(at))
    if default:
        raise at.fail("CHARACTER SET or COLLATE")
    if at.take("AUTO_INCREMENT"):
        at.take_symbol("=")
        return replace(given, counter=at.name())
    if at.take("WITH", "SYSTEM", "VERSIONING"):
        return replace(given, options=(*given.options, ("WITH SYSTEM VERSIONING", "1")))
    if at.take("START", "TRANSACTION"):
        return given
    name = at.name().upper()
    if name in _TWO_WORD_OPTIONS:
        name = f"{name} {at.name().upper()}"
    if name == "TYPE":
        name = "ENGINE"
    at.take_symbol("=")
    start = at.place
    if at.symbol("("):
        at.brackets()
    else:
        at.place += 1
    value = at.since(start)
    if not value:
        raise at.fail(f"a value for {name}")
    return replace(given, options=(*given.options, (name, value)))
