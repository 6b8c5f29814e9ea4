"""Keys of rows as SQL: the conditions for either side, and the keys that the target takes for one.

A key is a tuple of SQL literals, one for each column of the target's key, spelled as the side spells them that it was
read from. Keys that are spelled differently are one key where the target's collation takes them for equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import MySQLdb
import pyarrow as pa

from unshard.compare.executor.rows import SideConnections, asked_again, key_literals, shard_batches
from unshard.compare.ranges import bits_of, is_text_mapped, key_expression
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.errors import UnshardError
from unshard.kernels.literals import render
from unshard.model.table import Column, quote_name
from unshard.mysql.connection import rows, server_error
from unshard.mysql.tidb_collations import same_collation
from unshard.transform.column_mapping import ID_LIMIT

Key = tuple[str, ...]
_WEIGHED_AT_ONCE = 500
_NO_COLLATION = frozenset({1115, 1253, 1273})


def is_spelled(table: ComparedTable) -> bool:
    """Return whether one key of the target may be spelled in several ways."""
    return any(column.text_with_collation for column in _columns(table))


def one_for_all(connections: SideConnections, table: ComparedTable, keys: Iterable[Key]) -> dict[Key, Key]:
    """Return, by key, the first of the keys that the target takes for equal. Raises TargetError."""
    found = list(dict.fromkeys(keys))
    if not is_spelled(table):
        return dict(zip(found, found, strict=True))
    columns = _columns(table)
    named = [f"k{place}" for place in range(len(columns))]
    listed = " UNION ALL ".join(
        f"SELECT {number} n, "
        + ", ".join(f"{text} {name}" for text, name in zip(_collated(columns, key), named, strict=True))
        for number, key in enumerate(found)
    )
    equal = " AND ".join(f"one.{name} <=> other.{name}" for name in named)
    statement = f"SELECT other.n, MIN(one.n) FROM ({listed}) one JOIN ({listed}) other ON {equal} GROUP BY other.n"
    answers = _ask_target(connections, table, statement)
    firsts = {int(number): int(first) for number, first in answers}
    return {key: found[firsts[number]] for number, key in enumerate(found)}


def weights_of(table: ComparedTable, keys: Sequence[Key]) -> dict[Key, Key]:
    """Return, by key, texts that are equal for keys that the target takes for one; few other keys have equal ones.

    Raises TargetError.
    """
    return asked_again(partial(_weights, table, keys))


def _weights(table: ComparedTable, keys: Sequence[Key]) -> dict[Key, Key]:
    columns = _columns(table)
    found: dict[Key, Key] = {}
    with SideConnections(snapshot=False) as connections:
        for start in range(0, len(keys), _WEIGHED_AT_ONCE):
            some = keys[start : start + _WEIGHED_AT_ONCE]
            listed = " UNION ALL ".join(
                f"SELECT {number}, " + ", ".join(map(_weight, columns, key)) for number, key in enumerate(some)
            )
            for number, *weights in _ask_target(connections, table, listed):
                found[some[int(number)]] = tuple(map(str, weights))
    return found


def weights_of_values(
    connections: SideConnections, table: ComparedTable, values: Sequence[tuple[tuple[Column, int], str]]
) -> dict[tuple[tuple[Column, int], str], str]:
    """Return the weight of each value, a literal, in a column of the target or the prefix of that length; 0: all of it.

    Weights are equal for values that the target takes for one, and few others. Raises TargetError.
    """
    found = {}
    for start in range(0, len(values), _WEIGHED_AT_ONCE):
        some = values[start : start + _WEIGHED_AT_ONCE]
        texts = [(column, f"LEFT({text}, {size})" if size else text) for (column, size), text in some]
        listed = " UNION ALL ".join(f"SELECT {number}, {_weight(*one)}" for number, one in enumerate(texts))
        found.update({some[int(number)]: str(weight) for number, weight in _ask_target(connections, table, listed)})
    return found


def _weight(column: Column, text: str) -> str:
    """Return the expression for a value's weight. Blanks at the end count for some collations only, so not here."""
    if not column.text_with_collation:
        return text if text == "NULL" else f"HEX({text})"
    charset = str(column.collation).partition("_")[0]
    return f"HEX(WEIGHT_STRING(RTRIM(CONVERT({text} USING {charset})) COLLATE {column.collation}))"


def _ask_target(connections: SideConnections, table: ComparedTable, statement: str) -> list[tuple[Any, ...]]:
    connection = connections.get(table.endpoint, "target")
    try:
        return rows(connection, statement)
    except MySQLdb.Error as error:
        raise server_error(error, table.endpoint, "target", statement).at(table=str(table.name)) from error


def _columns(table: ComparedTable) -> list[Column]:
    return [table.read.column(name) for name in table.key]


def _collated(columns: Sequence[Column], key: Key) -> Iterator[str]:
    """Yield the key's literals, each with its column's collation."""
    for column, text in zip(columns, key, strict=True):
        yield _under(column, text) if column.text_with_collation else text


def _under(column: Column, expression: str) -> str:
    """Return the expression with the collation of the target's column."""
    return f"CONVERT({expression} USING {str(column.collation).partition('_')[0]}) COLLATE {column.collation}"


def source_spellings(connections: SideConnections, table: ComparedTable, keys: Sequence[Key]) -> list[Key] | None:
    """Return the keys of all source rows that the target takes for one of these keys.

    A source whose columns have other collations than the target's reads its whole table for that. None: a source does
    not know the target's collation. Raises SourceError.
    """
    found: dict[Key, None] = {}
    for shard in table.shards:
        condition = _folded_condition(table, shard, keys)
        try:
            for batch in shard_batches(connections, table, shard, (condition,)) if condition else ():
                found.update(dict.fromkeys(key_literals(batch, table)))
        except UnshardError as error:
            if isinstance(error.__cause__, MySQLdb.Error) and error.__cause__.args[:1] in {(n,) for n in _NO_COLLATION}:
                return None
            raise
    return list(found)


def _folded_condition(table: ComparedTable, shard: ComparedShard, keys: Sequence[Key]) -> str:
    """Return the condition for these keys in a source table under the target's collations.

    Empty where the source's own are the same.
    """
    columns = _columns(table)
    own = {column.name.lower(): column.collation or "" for column in shard.table.columns}
    texts = [column for column in columns if column.text_with_collation]
    if all(
        same_collation(own.get(key_expression(shard, column.name)[1:-1].lower(), ""), column.collation or "")
        for column in texts
    ):
        return ""
    conditions = []
    for key in keys:
        spelled = _key_in(table, shard, key)
        parts = []
        for place, column in enumerate(columns):
            expression = key_expression(shard, column.name)
            if column.text_with_collation:
                if (mapping := shard.mapping) is not None and is_text_mapped(shard, column.name):
                    expression = f"CONCAT('{_quoted(mapping.prefix)}', {expression}, '{_quoted(mapping.suffix)}')"
                parts.append(f"{_under(column, expression)} = {_under(column, key[place])}")
            elif spelled is not None:
                parts.append(_equal(expression, spelled[place]))
        conditions.append("(" + " AND ".join(parts) + ")")
    return " OR ".join(conditions)


def target_condition(table: ComparedTable, keys: Sequence[Key]) -> str:
    """Return the condition for these keys in the target. Keys are tuples of SQL literals."""
    return _any_of([quote_name(name) for name in table.key], keys)


def shard_condition(table: ComparedTable, shard: ComparedShard, keys: Sequence[Key]) -> str:
    """Return the condition for these target keys in a source table; empty where none of them can be in it."""
    wanted = [own for key in keys if (own := _key_in(table, shard, key)) is not None]
    return _any_of([key_expression(shard, name) for name in table.key], wanted) if wanted else ""


def _key_in(table: ComparedTable, shard: ComparedShard, key: Key) -> Key | None:
    """Return the key before the column mapping; None where no row of the source table gets it."""
    found = []
    for name, text in zip(table.key, key, strict=True):
        bits = bits_of(shard, name)
        if bits is not None:
            number = int(text) - bits
            if not 0 <= number <= ID_LIMIT:
                return None
            text = str(number)
        elif shard.mapping is not None and is_text_mapped(shard, name):
            before, after = _quoted(shard.mapping.prefix), _quoted(shard.mapping.suffix)
            if not (text[1:-1].startswith(before) and text[1:-1].endswith(after)):
                return None
            text = f"'{text[1 + len(before) : len(text) - 1 - len(after)]}'"
        found.append(text)
    return tuple(found)


def _quoted(text: str) -> str:
    """Return the text as it is between the quotes of a literal."""
    return bytes(render([pa.array([text], pa.string())], [b""], b"")[0].as_py()).decode()[1:-1]


def _any_of(expressions: Sequence[str], keys: Sequence[Key]) -> str:
    if len(expressions) == 1 and "NULL" not in {key[0] for key in keys}:
        return f"{expressions[0]} IN ({', '.join(key[0] for key in keys)})"
    return " OR ".join("(" + " AND ".join(map(_equal, expressions, key)) + ")" for key in keys)


def _equal(expression: str, literal: str) -> str:
    """Return the condition for equality; a source may have NULL where the target's key has none."""
    return f"{expression} IS NULL" if literal == "NULL" else f"{expression} = {literal}"
