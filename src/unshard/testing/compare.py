"""Checks that the source tables together contain exactly the rows of the target table, and shows where they don't.

Rows are compared as text without any loss: FLOAT with all its digits, binary and JSON and geometry bytes as hex, text
in utf8mb4, NULL different from every value. TiDB writes FLOAT and DOUBLE in another form than MySQL and MariaDB, so
rows with such columns are fetched from TiDB, and the values are compared as Python writes them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from MySQLdb.cursors import SSCursor

from unshard.model.table import Column, Table, TableName
from unshard.mysql.structure import read_table, without_hashes
from unshard.mysql.types import GEOMETRIES
from unshard.testing.throwaway_server import ThrowawayServer

TextRow = tuple[str | None, ...]
Mapping = Callable[[dict[str, str | None]], dict[str, str | None]]
Place = tuple[ThrowawayServer, TableName]

_HEX = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit", "vector"})
_FLOATS = frozenset({"float", "double"})
_SHOWN = 10
_CHECKSUM_BITS = 60


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing source tables with their target table: row counts and order-independent checksums.

    `differences` shows the first differing rows.
    """

    source_rows: int
    target_rows: int
    source_checksum: int
    target_checksum: int
    differences: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """True if the tables have the same rows."""
        return (self.source_rows, self.source_checksum) == (self.target_rows, self.target_checksum)

    def __str__(self) -> str:
        verdict = "equal" if self.equal else "DIFFERENT"
        head = f"{verdict}: {self.source_rows} source rows, {self.target_rows} target rows"
        return "\n".join((head, *self.differences))


def compare(
    sources: Sequence[Place],
    target: Place,
    *,
    columns: Sequence[str] | None = None,
    mapping: Mapping | Sequence[Mapping] | None = None,
) -> Comparison:
    """Compare the union of the source tables with one target table, as multisets of rows.

    Without a mapping the servers compute the checksums and only differences are fetched; with one, all source rows are
    fetched.

    Args: sources: the tables of the source, with their connections. target: the table of the target.
        columns: names to compare; default: those of the target, which every source table must have too.
        mapping: what the migration does to a source row, as a function on its text values by column name; or one
            function for each source table.

    Raises LookupError if a table or a column does not exist.
    """
    names = list(columns or [column.name for column in without_hashes(_table(*target)).columns if not column.period])
    if mapping is None and not any(_has_floats(place, names) for place in (*sources, target)):
        sums = [_server_sum(place, names) for place in sources]
        ours, theirs = (
            (sum(rows for rows, _ in sums), sum(checksum for _, checksum in sums)),
            _server_sum(target, names),
        )
    else:
        source_rows = Counter(_source_rows(sources, names, mapping))
        target_rows = Counter(_rows(target, names))
        ours, theirs = _client_sum(source_rows), _client_sum(target_rows)
    if ours == theirs:
        return Comparison(ours[0], theirs[0], ours[1], theirs[1])
    return Comparison(ours[0], theirs[0], ours[1], theirs[1], differences(sources, target, names, mapping))


def assert_equal(sources: Sequence[Place], target: Place, **options: Any) -> Comparison:
    """Call `compare`; raise AssertionError that shows the differing rows."""
    comparison = compare(sources, target, **options)
    assert comparison.equal, f"{target[1]}: {comparison}"
    return comparison


def differences(
    sources: Sequence[Place],
    target: Place,
    names: Sequence[str],
    mapping: Mapping | Sequence[Mapping] | None = None,
) -> tuple[str, ...]:
    """Return the first rows that only one side has.

    If both sides have a row's key, the columns that differ are shown.
    """
    ours = Counter(_source_rows(sources, names, mapping))
    theirs = Counter(_rows(target, names))
    only_ours, only_theirs = list((ours - theirs).elements()), list((theirs - ours).elements())
    identity = [names.index(name) for name in _table(*target).identity if name in names]
    theirs_by_key = {tuple(row[place] for place in identity): row for row in only_theirs} if identity else {}
    shown: list[str] = []
    for row in sorted(only_ours, key=str):
        other = theirs_by_key.pop(tuple(row[place] for place in identity), None) if identity else None
        if other is None:
            shown.append(f"  missing in the target: {_show(names, row)}")
            continue
        only_theirs.remove(other)
        key = _show([names[place] for place in identity], [row[place] for place in identity])
        changed = [
            f"{name}: source {mine!r}, target {its!r}"
            for name, mine, its in zip(names, row, other, strict=True)
            if mine != its
        ]
        shown.append(f"  {key}: {'; '.join(changed)}")
    shown += [f"  only in the target: {_show(names, row)}" for row in sorted(only_theirs, key=str)]
    more = len(shown) - _SHOWN
    return tuple(shown[:_SHOWN] + ([f"  … and {more} more"] if more > 0 else []))


def _server_sum(place: Place, names: Sequence[str]) -> tuple[int, int]:
    server, name = place
    texts = ", ".join(f"QUOTE({_text(column)})" for column in _columns(place, names))
    digest = f"CAST(CONV(LEFT(SHA2(CONCAT_WS(',', {texts}), 256), {_CHECKSUM_BITS // 4}), 16, 10) AS UNSIGNED)"
    ((rows, checksum),) = server.query(f"SELECT COUNT(*), COALESCE(SUM({digest}), 0) FROM {name.quoted}")
    return int(rows), int(checksum)


def _client_sum(rows: Counter[TextRow]) -> tuple[int, int]:
    digests = (
        int(hashlib.md5(repr(row).encode()).hexdigest()[: _CHECKSUM_BITS // 4], 16) * n for row, n in rows.items()
    )
    return rows.total(), sum(digests)


def _source_rows(
    sources: Sequence[Place], names: Sequence[str], mapping: Mapping | Sequence[Mapping] | None
) -> Iterator[TextRow]:
    each = mapping if isinstance(mapping, Sequence) else [mapping] * len(sources)
    for place, its in zip(sources, each, strict=True):
        yield from _rows(place, names, its)


def _rows(place: Place, names: Sequence[str], mapping: Mapping | None = None) -> Iterator[TextRow]:
    """Yield the rows as text. A mapping gets the whole row, and the wanted columns are taken from its result."""
    server, name = place
    columns = _columns(place, names) if mapping is None else _table(server, name).columns
    connection = server.connection()
    try:
        with connection.cursor(SSCursor) as cursor:
            cursor.execute(f"SELECT {', '.join(_text(column) for column in columns)} FROM {name.quoted}")
            floats = [column.type in _FLOATS for column in columns]
            for found in cursor:
                row = tuple(
                    repr(float(value)) if is_float and value is not None else value
                    for is_float, value in zip(floats, found, strict=True)
                )
                if mapping is None:
                    yield row
                else:
                    mapped = mapping(dict(zip((column.name for column in columns), row, strict=True)))
                    yield tuple(mapped[wanted] for wanted in names)
    finally:
        connection.close()


def _has_floats(place: Place, names: Sequence[str]) -> bool:
    return place[0].product == "TiDB" and any(column.type in _FLOATS for column in _columns(place, names))


def _columns(place: Place, names: Sequence[str]) -> list[Column]:
    table = _table(*place)
    try:
        return [table.column(name) for name in names]
    except KeyError as missing:
        raise LookupError(f"{table.name} has no column {missing}") from missing


def _table(server: ThrowawayServer, name: TableName) -> Table:
    connection = server.connection()
    try:
        table = read_table(connection, name)
    finally:
        connection.close()
    if table is None:
        raise LookupError(f"there is no table {name} on port {server.port}")
    return table


def _text(column: Column) -> str:
    """Return SQL for the column's value as text in utf8mb4 that differs for any two different values."""
    quoted = "`" + column.name.replace("`", "``") + "`"
    if column.type in _HEX or column.type in GEOMETRIES:
        return f"HEX({quoted})"
    if column.type == "float":  # as text FLOAT has six digits, as DOUBLE all that it holds
        return f"CAST({quoted} * 1e0 AS CHAR)"
    return f"CONVERT(CAST({quoted} AS CHAR) USING utf8mb4)"


def _show(names: Sequence[str], row: Sequence[str | None]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, row, strict=True))
