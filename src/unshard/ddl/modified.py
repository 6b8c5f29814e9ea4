"""DM's name of a MODIFY or CHANGE, which depends on the column as it was. Rules are tried in DM's order.

| the new definition | name |
|---|---|
| DECIMAL with other digits or sign; an integer or BINARY(n) with another sign or length | `precision decrease` |
| ENUM, SET that lose or move members; a shorter type; a smaller integer | `value range decrease` |
| CHAR for VARCHAR or the other way round; a shorter text of another type; any other type | `modify column` |
| else: without its AUTO_INCREMENT | `remove auto increment` |
| else: another DEFAULT, none included | `modify default value` |
| else: another character set; another collation | `modify charset`; `modify collation` |
| else: FIRST or AFTER | `modify columns order` |
| else: another name | `rename column` |
| none of these, or the column isn't known | `alter table` |

DM also asks whether the change drops a key. No MODIFY does, so DM's name for that never occurs here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unshard.ddl.prepare import default_charset
from unshard.model.table import Column, Table
from unshard.mysql.defaults import constant_defaults
from unshard.schema.lex import Token, tokens

ALTER = "alter table"
BY_COLUMN = "modify column*"
"""Stands for MODIFY and CHANGE where the column's old definition, on which DM's name depends, isn't known."""

_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = {
    "tinytext": 255, "text": 65535, "mediumtext": 16777215, "longtext": 4294967295,
    "tinyblob": 255, "blob": 65535, "mediumblob": 16777215, "longblob": 4294967295,
}  # fmt: skip
_STRINGS = frozenset({"char", "binary", "varchar", "varbinary", *_TEXTS})
_BYTES = {"binary": "char", "varbinary": "varchar", "tinyblob": "tinytext", "blob": "text", "mediumblob": "mediumtext",
          "longblob": "longtext"}  # fmt: skip
_SYNONYMS = {
    "integer": "int", "bool": "tinyint", "boolean": "tinyint", "middleint": "mediumint", "serial": "bigint",
    "int1": "tinyint", "int2": "smallint", "int3": "mediumint", "int4": "int", "int8": "bigint", "dec": "decimal",
    "numeric": "decimal", "fixed": "decimal", "real": "double", "float4": "float", "float8": "double",
    "character": "char", "nchar": "char", "nvarchar": "varchar", "varcharacter": "varchar", "long": "mediumtext",
    "geomcollection": "geometrycollection",
}  # fmt: skip
_TWO_WORDS = frozenset(
    {
        ("double", "PRECISION"), ("character", "VARYING"), ("char", "VARYING"), ("long", "VARCHAR"),
        ("long", "VARBINARY"),
    }
)  # fmt: skip
_TIMES = frozenset({"datetime", "timestamp", "time"})


@dataclass(frozen=True, slots=True)
class NewColumn:
    """The column definition in a MODIFY or CHANGE.

    Args:
        type: the type's name as `information_schema` has it; `arguments` are those in its brackets.
        charset, collation: None where the definition names none.
        default: the text of the DEFAULT; None without one.
        moved: whether it has FIRST or AFTER.
    """

    name: str
    type: str
    arguments: tuple[str, ...]
    unsigned: bool
    charset: str | None
    collation: str | None
    default: str | None
    auto_increment: bool
    moved: bool


def named_column(part: Sequence[Token]) -> str | None:
    """Return the column that a MODIFY or CHANGE is on; None for another part."""
    at = _after_verb(part)
    return part[at].value if at is not None and at < len(part) else None


def new_column(part: Sequence[Token], *, mariadb: bool) -> NewColumn | None:
    """Return the new definition in a MODIFY or CHANGE; None where it can't be read."""
    at = _after_verb(part)
    if at is None:
        return None
    at += part[0].word == "CHANGE"
    if at + 1 >= len(part):
        return None
    name, rest = part[at].value, part[at + 1 :]
    kind, behind = _type(rest, mariadb)
    closed = -1
    arguments: tuple[str, ...] = ()
    if behind < len(rest) and rest[behind].is_symbol("("):
        closed = next((place for place in range(behind, len(rest)) if rest[place].is_symbol(")")), len(rest))
        arguments = tuple(token.value for token in rest[behind + 1 : closed] if not token.is_symbol(","))
    options = _outside_brackets(rest[max(behind, closed + 1) :])
    words = [token.word for token in options]
    return NewColumn(
        name,
        kind,
        arguments,
        unsigned="UNSIGNED" in words or "ZEROFILL" in words or rest[0].word == "SERIAL",
        charset=_behind(options, "CHARSET") or _behind(options, "CHARACTER", "SET"),
        collation=_behind(options, "COLLATE"),
        default=_default(options),
        auto_increment="AUTO_INCREMENT" in words or "SERIAL" in (rest[0].word, *words),
        moved="FIRST" in words or "AFTER" in words,
    )


def modified(before: Table | None, old_name: str, new: NewColumn | None) -> str:
    """Return the name of the change. Pure."""
    old = _column(before, old_name)
    if before is None or old is None or new is None:
        return ALTER
    found = _data_change(old, new)
    if found is not None:
        return found
    if old.auto_increment and not new.auto_increment:
        return "remove auto increment"
    if _plain(_old_default(before, old)) != _plain(new.default):
        return "modify default value"
    charset, collation = _charset(before, new)
    if old.charset is not None and new.type in _STRINGS and new.type not in _BYTES:
        if charset is not None and charset.lower() != old.charset.lower():
            return "modify charset"
        if collation is not None and collation.lower() != (old.collation or "").lower():
            return "modify collation"
    if new.moved:
        return "modify columns order"
    return "rename column" if old.name.lower() != new.name.lower() else ALTER


def _data_change(old: Column, new: NewColumn) -> str | None:
    """Return the name of a change after which the values may have to change; None for another."""
    toggled = old.unsigned != new.unsigned
    old_size, new_size = _size_of(old), _size(new.type, new.arguments)
    shrunk = any(now is not None and was is not None and now < was for was, now in zip(old_size, new_size, strict=True))
    if _family(old.type) == _family(new.type):
        if old.type == "decimal":
            return "precision decrease" if toggled or old_size != new_size else None
        if old.members or old.type in ("enum", "set"):
            kept = tuple(_unquoted(text) for text in new.arguments)[: len(old.members)] == old.members
            return None if kept else "value range decrease"
        if old.type in _INTEGERS:
            return "precision decrease" if toggled else None
        if old.type == "binary":
            return "precision decrease" if old_size != new_size else None
        if old.type == "char":
            return None
        return "value range decrease" if shrunk or toggled else None
    if {_family(old.type), _family(new.type)} == {"char", "varchar"}:
        return "modify column"
    if old.type in _STRINGS and new.type in _STRINGS:
        return "modify column" if shrunk else None
    if old.type in _INTEGERS and new.type in _INTEGERS:
        smaller = _INTEGERS.index(new.type) < _INTEGERS.index(old.type)
        return "value range decrease" if smaller or toggled else None
    return "modify column"


def _family(kind: str) -> str:
    """Return the character type of a byte type: DM treats the two as one. Other types are returned unchanged."""
    return _BYTES.get(kind, kind)


def _size(kind: str, arguments: Sequence[str]) -> tuple[int | None, int | None]:
    """Return length or digits, and digits after the decimal point or of a second; None where the type has none."""
    numbers = [int(text) for text in arguments if text.isdigit()]
    first = numbers[0] if numbers else None
    if kind == "decimal":
        return first if first is not None else 10, numbers[1] if len(numbers) > 1 else 0
    if kind in _TIMES:
        return None, first or 0
    if kind in ("float", "double"):
        return (first, numbers[1]) if len(numbers) > 1 else (None, None)
    if kind in _TEXTS:
        return _TEXTS[kind], None
    if kind in ("char", "binary", "varchar", "varbinary", "bit"):
        return first if first is not None else 1, None
    return None, None


def _size_of(column: Column) -> tuple[int | None, int | None]:
    inside = column.definition.partition("(")[2].partition(")")[0] if not column.members else ""
    return _size(column.type, [text.strip() for text in inside.split(",")])


def _charset(table: Table, new: NewColumn) -> tuple[str | None, str | None]:
    """Return character set and collation of the new definition; the collation is None where it isn't written."""
    if new.charset is not None or new.collation is not None:
        return new.charset or (new.collation or "").partition("_")[0], new.collation
    found = default_charset(tokens(table.create_sql[table.create_sql.rfind("\n)") :]))
    return found if found is not None else (None, None)


def _column(table: Table | None, name: str) -> Column | None:
    columns = table.columns if table is not None else ()
    return next((column for column in columns if column.name.lower() == name.lower()), None)


def _after_verb(part: Sequence[Token]) -> int | None:
    """Return the index of the column's name after MODIFY or CHANGE; None for another part."""
    if not part or part[0].word not in ("MODIFY", "CHANGE"):
        return None
    at = 1
    at += at < len(part) and part[at].word == "COLUMN"
    if [token.word for token in part[at : at + 2]] == ["IF", "EXISTS"]:
        at += 2
    return at


def _type(rest: Sequence[Token], mariadb: bool) -> tuple[str, int]:
    """Return the type as `information_schema` calls it, and the index after its words."""
    at = 0
    if rest[0].word == "NATIONAL":
        at = 1
    word = rest[at].value.lower() if at < len(rest) else ""
    at += 1
    following = rest[at].word if at < len(rest) else ""
    if following in ("PRECISION", "VARYING", "VARCHAR", "VARBINARY") and word in (
        "double",
        "character",
        "char",
        "long",
    ):
        at += 1
        if following == "VARYING":
            return "varchar", at
        if following == "VARBINARY":
            return "mediumblob", at
    if word == "json" and mariadb:
        return "longtext", at
    return _SYNONYMS.get(word, word), at


def _outside_brackets(part: Sequence[Token]) -> list[Token]:
    kept: list[Token] = []
    depth = 0
    for token in part:
        depth += token.is_symbol("(")
        if depth == 0:
            kept.append(token)
        depth -= token.is_symbol(")")
    return kept


def _behind(options: Sequence[Token], *words: str) -> str | None:
    """Return the name or word after these words, with or without `=`; None where they don't occur."""
    for place in range(len(options)):
        if tuple(token.word for token in options[place : place + len(words)]) == words:
            rest = [token for token in options[place + len(words) :] if not token.is_symbol("=")]
            return rest[0].value.strip("'\"") if rest else None
    return None


def _default(options: Sequence[Token]) -> str | None:
    """Return the text after DEFAULT up to a blank; an expression in brackets is not among the options."""
    at = next((place for place, token in enumerate(options) if token.word == "DEFAULT"), None)
    if at is None:
        return None
    text, end = "", options[at + 1].start if at + 1 < len(options) else 0
    for token in options[at + 1 :]:
        if token.start != end:
            break
        text, end = text + token.value, token.end
    return text or "()"


def _old_default(table: Table, column: Column) -> str | None:
    constant = constant_defaults(table).get(column.name)
    if constant is not None:
        return constant
    return "()" if column.has_default and not column.auto_increment else None


def _plain(default: str | None) -> str | None:
    """Return a default in the form that is compared: NULL is none, quotes don't count, all expressions are equal."""
    if default is None or default.upper() == "NULL":
        return None
    default = {"TRUE": "1", "FALSE": "0"}.get(default.upper(), default)
    inside = _unquoted(default)
    return inside if inside != default or inside[:1].isdigit() or inside[:1] in "-.+" else "()"


def _unquoted(text: str) -> str:
    if text[:1] in ("'", '"') and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1].replace(text[0] * 2, text[0])
    return text
