"""Keys, constraints and options of a table: read as they are written, and arranged as a server keeps them.

A server names keys, puts them in order, gives them prefixes that fit, and adds keys for foreign keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from unshard.schema.columns import charset_name, number, read_references
from unshard.schema.definition import (
    BLOB_TYPES,
    CLOB_TYPES,
    GEOMETRY_TYPES,
    Check,
    ColumnDefinition,
    Dialect,
    ForeignKey,
    KeyDefinition,
    KeyKind,
    KeyPart,
    TableDefinition,
    bytes_a_character,
)
from unshard.schema.lex import NotUnderstoodError, StatementWords
from unshard.schema.operations import AddCheck, AddForeignKey, AddKey, SetOptions

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


_LONGEST_KEY = 3072
_LONGEST_KEY_OF = {"ARIA": 2300, "MYISAM": 1000}
_POINT_BYTES = 25


def arranged_keys(table: TableDefinition, dialect: Dialect) -> tuple[KeyDefinition, ...]:
    """Return the keys that the table has after a statement.

    The table's foreign keys must still have the names that the statement gave them, if any: a key that is made for a
    foreign key takes that name.
    """
    keys = [_with_prefixes(key, table, dialect) for key in table.keys]
    for foreign_key in table.foreign_keys:
        columns = tuple(column.lower() for column in foreign_key.columns)
        if not any(
            key.columns[: len(columns)] == columns for key in keys if key.kind.unique or key.kind is KeyKind.PLAIN
        ):
            own = foreign_key.name or foreign_key.index
            parts = tuple(KeyPart(column) for column in foreign_key.columns)
            keys.append(KeyDefinition(KeyKind.PLAIN, own, parts, generated=True))
    keys = [key for key in keys if not (key.generated and _replaced(key, keys))]
    named = _with_names(keys)
    nullable = {column.name.lower() for column in table.columns if column.nullable}
    return tuple(sorted(named, key=lambda key: _rank(key, nullable)))


def _with_prefixes(key: KeyDefinition, table: TableDefinition, dialect: Dialect) -> KeyDefinition:
    """Return the key with the prefixes that the server stores: a prefix as long as the column becomes none.

    MariaDB cuts a plain key over a TEXT to the length that fits, and turns a unique key that is too long into a hash.
    """
    parts = []
    for part in key.parts:
        column = table.column(part.column) if part.column else None
        if column is not None:
            prefix = _prefix(part.prefix, column, key, table, dialect)
            part = replace(part, column=column.name, prefix=prefix)
        parts.append(part)
    made = replace(key, parts=tuple(parts))
    if dialect is Dialect.MARIADB and key.kind is KeyKind.UNIQUE and _is_too_long(made, table):
        made = replace(made, options=(*(o for o in key.options if not o.startswith("USING")), "USING HASH"))
    return made


def _prefix(given: int, column: ColumnDefinition, key: KeyDefinition, table: TableDefinition, dialect: Dialect) -> int:
    lengths = column.type.arguments if column.type.name in ("char", "varchar", "binary", "varbinary") else ()
    if lengths and given >= lengths[0]:
        return 0
    if column.type.name in GEOMETRY_TYPES and dialect is Dialect.MARIADB and key.kind is not KeyKind.SPATIAL:
        return _POINT_BYTES
    large = column.type.name in (*CLOB_TYPES, *BLOB_TYPES)
    if not (large or lengths):
        return 0
    if key.kind is KeyKind.PLAIN and dialect is Dialect.MARIADB and (large or given):
        most = _LONGEST_KEY_OF.get(table.option("ENGINE").upper(), _LONGEST_KEY) // bytes_a_character(column.charset)
        return min(given or most, most)
    return given


def _is_too_long(key: KeyDefinition, table: TableDefinition) -> bool:
    """Return whether the key's values may be longer than an index of InnoDB allows."""
    total = 0
    for part in key.parts:
        column = table.column(part.column) if part.column else None
        if column is None:
            return False
        if column.type.name in (*CLOB_TYPES, *BLOB_TYPES) and not part.prefix:
            return True
        if column.type.name in ("char", "varchar", "binary", "varbinary"):
            total += (part.prefix or column.type.arguments[0]) * bytes_a_character(column.charset)
    return total > _LONGEST_KEY


def _replaced(generated: KeyDefinition, keys: Iterable[KeyDefinition]) -> bool:
    """Return whether another key begins with a generated key's columns, so that the generated key is not needed."""
    wanted = generated.columns
    return any(
        key is not generated and not key.generated and key.columns[: len(wanted)] == wanted
        for key in keys
        if key.kind.unique or key.kind is KeyKind.PLAIN
    )


def _with_names(keys: Sequence[KeyDefinition]) -> list[KeyDefinition]:
    """Return the keys in order, each with a name.

    An unnamed key takes the name of its first column, with a number if that name is taken.
    """
    taken = {key.name.lower() for key in keys if key.name}
    named = []
    for key in keys:
        if not key.name:
            stem = key.parts[0].column or "functional_index"
            free = [stem] if stem.upper() != "PRIMARY" else []
            candidates = [*free, *(f"{stem}_{number}" for number in range(2, 1000))]
            key = replace(key, name=next(one for one in candidates if one.lower() not in taken))
            taken.add(key.name.lower())
        named.append(key)
    return named


def _rank(key: KeyDefinition, nullable: set[str]) -> tuple[int, ...]:
    """Return the sort key for the order in which servers keep keys.

    The order is: primary, unique without NULL, other unique ones, the rest, FULLTEXT.
    """
    if key.kind is KeyKind.PRIMARY:
        return (0,)
    if key.kind is KeyKind.UNIQUE:
        partial = any(part.prefix for part in key.parts)
        may_be_null = not nullable.isdisjoint(key.columns) or "" in key.columns
        return (1, int(may_be_null), int(partial))
    return (2, int(key.kind is KeyKind.FULLTEXT))
