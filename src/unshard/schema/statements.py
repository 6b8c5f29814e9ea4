"""Reads whole statements from their tokens: CREATE TABLE, ALTER TABLE, CREATE INDEX and DROP INDEX.

Statements are read as they are written; `schema.implied` fills in what a statement leaves to the server. The grammar is
that of the reference manuals of MySQL 9 and MariaDB 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unshard.schema.columns import charset_name, read_column, read_default
from unshard.schema.definition import (
    Check,
    ColumnDefinition,
    ForeignKey,
    KeyDefinition,
    KeyKind,
    KeyPart,
    TableDefinition,
)
from unshard.schema.keys import begins_key, read_key_option, read_key_or_constraint, read_key_part, read_option
from unshard.schema.lex import Token, TokenKind
from unshard.schema.operations import (
    END,
    FRONT,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddKey,
    AlterCheck,
    AlterKey,
    ChangeColumn,
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
from unshard.schema.words import NotUnderstoodError, StatementWords

_PARTITIONING = frozenset(
    {
        "PARTITION", "REORGANIZE", "COALESCE", "EXCHANGE", "TRUNCATE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD",
        "REPAIR", "REMOVE", "DISCARD", "IMPORT",
    }
)  # fmt: skip
_MANNERS = frozenset({"FORCE", "ENABLE", "DISABLE", "ALGORITHM", "LOCK", "WITH", "WITHOUT"})


def read_create(tokens: Sequence[Token], text: str) -> TableDefinition:
    """Return the definition in a CREATE TABLE with columns. `tokens` begin at the bracket after the table's name.

    Raises NotUnderstoodError.
    """
    return _create(StatementWords(tokens, text))


def read_alter(tokens: Sequence[Token], text: str) -> tuple[Operation, ...]:
    """Return the operations of an ALTER TABLE in order.

    `tokens` begin with the first operation. Raises NotUnderstoodError.
    """
    return _alter_operations(StatementWords(tokens, text))


def read_index(tokens: Sequence[Token], text: str) -> tuple[Operation, ...]:
    """Return the ALTER TABLE operations of a CREATE INDEX or DROP INDEX. `tokens` are the whole statement.

    Raises NotUnderstoodError.
    """
    return _index_statement(StatementWords(tokens, text))


def _create(at: StatementWords) -> TableDefinition:
    columns: list[ColumnDefinition] = []
    keys: list[KeyDefinition] = []
    foreign_keys: list[ForeignKey] = []
    checks: list[Check] = []
    period = ""

    def entry() -> None:
        nonlocal period
        if at.word() == "PERIOD" and at.word(1) == "FOR":
            found = _period(at)
            if found.upper().startswith("SYSTEM_TIME"):
                return
            period = found
            return
        if begins_key(at):
            match read_key_or_constraint(at):
                case AddKey(key):
                    keys.append(key)
                case AddForeignKey(foreign_key):
                    foreign_keys.append(foreign_key)
                case AddCheck(check):
                    checks.append(check)
            return
        written = read_column(at)
        columns.append(written.column)
        keys.extend(written.keys)
        foreign_keys.extend(written.foreign_keys)

    at.listed(entry)
    table = TableDefinition(tuple(columns), tuple(keys), tuple(foreign_keys), tuple(checks), period=period)
    given = SetOptions()
    while not at.ended and at.word() != "PARTITION":
        given = read_option(at, given)
        at.take_symbol(",")
    if at.word() == "PARTITION":
        table = replace(table, partitions=at.rest())
    if not at.ended:
        raise at.fail("the end")
    table = replace(table, charset=given.charset, collation=given.collation, counter=given.counter)
    return table.with_options(dict(given.options))


def _period(at: StatementWords) -> str:
    at.need("PERIOD", "FOR")
    start = at.place
    at.name()
    at.brackets()
    return at.since(start)


def _alter_operations(at: StatementWords) -> tuple[Operation, ...]:
    found: list[Operation] = []
    while not at.ended:
        found += _operation(at)
        if not (at.take_symbol(",") or at.ended or _goes_on(at)):
            raise at.fail("a comma")
    return tuple(found)


def _goes_on(at: StatementWords) -> bool:
    """Return whether partitions or another table option follow without a comma."""
    return at.word() in ("PARTITION", "REMOVE") or at.tokens[at.place].kind is TokenKind.WORD


def _operation(at: StatementWords) -> Sequence[Operation]:
    match at.word():
        case "ADD":
            return _add(at)
        case "DROP":
            return (_drop(at),)
        case "CHANGE" | "MODIFY":
            return (_change(at),)
        case "RENAME":
            return (_rename(at),)
        case "ALTER":
            return (_alter(at),)
        case "CONVERT" if at.word(1) == "TO":
            return (_convert(at),)
        case word if word in _PARTITIONING:
            return (_partitioning(at),)
        case "CONVERT":
            raise NotUnderstoodError("CONVERT of a partition")
        case "ORDER":
            _order(at)
            return (NoChange(("ORDER",)),)
        case word if word in _MANNERS and at.word(1) != "SYSTEM":
            return (_manner(at),)
    return (read_option(at, SetOptions()),)


def _order(at: StatementWords) -> None:
    """Read ORDER BY a, b. Its commas separate columns, not operations."""
    at.need("ORDER", "BY")
    while True:
        at.column_name()
        at.take("ASC") or at.take("DESC")
        if not (at.symbol(",") and _is_column(at, at.place + 1)):
            return
        at.place += 1


def _is_column(at: StatementWords, place: int) -> bool:
    behind = at.tokens[place + 1] if place + 1 < len(at.tokens) else None
    return behind is None or behind.is_symbol(",") or behind.word in ("ASC", "DESC")


def _manner(at: StatementWords) -> NoChange:
    first = at.name().upper()
    if first in ("ALGORITHM", "LOCK"):
        at.take_symbol("=")
        at.place += 1
    elif first != "FORCE":  # ENABLE KEYS, WITH VALIDATION
        first = f"{first} {at.name().upper()}"
    return NoChange((first,))


def _partitioning(at: StatementWords) -> Partitioning:
    start = at.place
    words = (at.word(), at.word(1))
    at.rest()
    return Partitioning(words, at.since(start))


def _add(at: StatementWords) -> Sequence[Operation]:
    if at.word(1) == "PARTITION":
        return (_partitioning(at),)
    at.need("ADD")
    if at.take("SYSTEM", "VERSIONING"):
        return (SetVersioning(on=True),)
    if at.word() == "PERIOD" and at.word(1) == "FOR":
        raise NotUnderstoodError("ADD PERIOD")
    if begins_key(at):
        return (read_key_or_constraint(at),)
    at.take("COLUMN")
    unless_there = at.take("IF", "NOT", "EXISTS")
    if not at.symbol("("):
        return (AddColumn(read_column(at), _position(at), unless_there),)
    found: list[Operation] = []

    def entry() -> None:
        if begins_key(at):
            found.append(read_key_or_constraint(at))
        else:
            found.append(AddColumn(read_column(at), END, unless_there))

    at.listed(entry)
    return found


def _position(at: StatementWords) -> Position:
    if at.take("FIRST"):
        return FRONT
    return at.column_name() if at.take("AFTER") else END


def _drop(at: StatementWords) -> Operation:
    if at.word(1) == "PARTITION":
        return _partitioning(at)
    at.need("DROP")
    if at.take("SYSTEM", "VERSIONING"):
        return SetVersioning(on=False)
    if at.take("PERIOD"):
        raise NotUnderstoodError("DROP PERIOD")
    if at.take("PRIMARY", "KEY"):
        return DropKey("PRIMARY")
    for words, made in (
        (("FOREIGN", "KEY"), DropForeignKey),
        (("INDEX",), DropKey),
        (("KEY",), DropKey),
        (("CHECK",), DropConstraint),
        (("CONSTRAINT",), DropConstraint),
    ):
        if at.take(*words):
            maybe = at.take("IF", "EXISTS")
            return made(at.name(), maybe)
    at.take("COLUMN")
    maybe = at.take("IF", "EXISTS")
    name = at.column_name()
    at.take("RESTRICT") or at.take("CASCADE")
    return DropColumn(name, maybe)


def _change(at: StatementWords) -> Operation:
    change = at.name().upper() == "CHANGE"
    at.take("COLUMN")
    maybe = at.take("IF", "EXISTS")
    if change:
        old = at.column_name()
        written = read_column(at)
    else:
        written = read_column(at)
        old = written.column.name
    return ChangeColumn(old, written, _position(at), maybe)


def _rename(at: StatementWords) -> Operation:
    at.need("RENAME")
    if at.take("COLUMN"):
        maybe = at.take("IF", "EXISTS")
        old = at.column_name()
        at.need("TO")
        return RenameColumn(old, at.column_name(), maybe)
    if at.word() in ("INDEX", "KEY"):
        at.place += 1
        maybe = at.take("IF", "EXISTS")
        old = at.name()
        at.need("TO")
        return RenameKey(old, at.name(), maybe)
    at.take("TO") or at.take("AS") or at.take_symbol("=")
    at.column_name()
    return NoChange(("RENAME",))


def _alter(at: StatementWords) -> Operation:
    at.need("ALTER")
    if at.take("INDEX") or at.take("KEY"):
        maybe = at.take("IF", "EXISTS")
        name = at.name()
        if at.take("VISIBLE") or at.take("NOT", "IGNORED"):
            return AlterKey(name, invisible=False, if_exists=maybe)
        if at.take("INVISIBLE") or at.take("IGNORED"):
            return AlterKey(name, invisible=True, if_exists=maybe)
        raise at.fail("VISIBLE or INVISIBLE")
    if at.take("CHECK") or at.take("CONSTRAINT"):
        name = at.name()
        enforced = not at.take("NOT")
        at.need("ENFORCED")
        return AlterCheck(name, enforced)
    at.take("COLUMN")
    maybe = at.take("IF", "EXISTS")
    name = at.column_name()
    if at.take("SET", "DEFAULT"):
        return SetDefault(name, read_default(at), maybe)
    if at.take("DROP", "DEFAULT"):
        return SetDefault(name, None, maybe)
    if at.take("SET", "INVISIBLE") or at.take("SET", "VISIBLE"):
        return SetVisibility(name, at.tokens[at.place - 1].word == "INVISIBLE")
    raise at.fail("SET or DROP")


def _convert(at: StatementWords) -> Operation:
    at.need("CONVERT", "TO")
    if not (at.take("CHARACTER", "SET") or at.take("CHARSET") or at.take("CHAR", "SET")):
        raise at.fail("CHARACTER SET")
    at.take_symbol("=")
    charset = "" if at.take("DEFAULT") else charset_name(at)
    collation = ""
    if at.take("COLLATE"):
        at.take_symbol("=")
        collation = charset_name(at)
    return ConvertCharset(charset, collation)


def _index_statement(at: StatementWords) -> tuple[Operation, ...]:
    if at.take("DROP"):
        at.take("ONLINE") or at.take("OFFLINE")
        at.need("INDEX")
        maybe = at.take("IF", "EXISTS")
        return (DropKey(at.name(), maybe),)
    at.need("CREATE")
    replaces = at.take("OR", "REPLACE")
    at.take("ONLINE") or at.take("OFFLINE")
    kind = KeyKind.PLAIN
    for word in (KeyKind.UNIQUE, KeyKind.FULLTEXT, KeyKind.SPATIAL, KeyKind.VECTOR):
        if at.take(word.name):
            kind = word
    at.need("INDEX")
    unless_there = at.take("IF", "NOT", "EXISTS")
    name = at.name()
    using = [f"USING {at.name().upper()}"] if at.take("USING") or at.take("TYPE") else []
    at.need("ON")
    at.column_name()
    parts: list[KeyPart] = []
    at.listed(lambda: parts.append(read_key_part(at)))
    options: list[str] = using
    while not at.ended:
        if at.word() in ("ALGORITHM", "LOCK"):
            _manner(at)
        elif at.take("WAIT"):
            at.place += 1
        elif not at.take("NOWAIT"):
            options.append(read_key_option(at))
    made = AddKey(KeyDefinition(kind, name, tuple(parts), tuple(options)), unless_there)
    return (DropKey(name, if_exists=True), made) if replaces else (made,)
