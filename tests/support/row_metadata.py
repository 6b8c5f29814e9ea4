"""Columns of every type between text columns of several character sets, read by what `binlog_row_metadata` tells."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import pyarrow as pa

from support.both_paths import Made, by_dump, make
from unshard.binlog.described import describe_table, undescribed
from unshard.binlog.headers import read_format
from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap
from unshard.errors import Where
from unshard.model.change import IMAGE_FIELDS
from unshard.model.table import Column, Table, TableName
from unshard.mysql.charsets import to_text
from unshard.mysql.types import ADDRESSES, CHARACTERS
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.type_cases import Cases

TOLD = {"NO_LOG": {"names", "signs", "charsets", "members"}, "MINIMAL": {"names", "members"}, "FULL": set[str]()}
"""What each setting leaves open."""

_TEXTS = (
    ("varchar({}) character set latin1", "'é'"),
    ("char({}) character set utf8mb4", "'😀é'"),
    ("varchar({}) character set gbk", "'字'"),
    ("varchar({}) character set ucs2", "'é'"),
    ("enum('é','x{}') character set latin1", "'é'"),
    ("char({}) character set cp1251", "'ж'"),
    ("varchar({}) character set utf8mb4", "'é'"),
    ("set('ж','x{}') character set cp1251", "'ж'"),
)


def between_texts(cases: Cases) -> Cases:
    """A column of each type, with the short values of its first definition, and a text column behind each."""
    found: dict[str, tuple[str, ...]] = {}
    kinds: set[str] = set()
    texts = enumerate(cycle(_TEXTS), start=20)
    for definition, values in cases.items():
        kind = definition.split("(")[0].split(" ")[0] + ("compressed" if "compressed" in definition else "")
        if kind not in kinds:
            kinds.add(kind)
            found[definition] = tuple(value for value in values if "repeat" not in value)
            number, (text, value) = next(texts)
            found[text.format(number)] = (value, "NULL")
    return found


def read_by_metadata(server: ThrowawayServer, schema: str, cases: Cases, setting: str) -> None:
    """Hold every value that the log alone tells to the one that the known structure and the dump give."""
    server.run(f"SET GLOBAL binlog_row_metadata = {setting}")
    made = make(server, schema, cases)
    try:
        dumped, known, told = by_dump(server, made.tables), made.by_binlog(), dict(_by_the_log(server, made))
    finally:
        server.run(f"DROP DATABASE {schema}")
    assert set(told) == set(known) == {table.name for table in made.tables}
    for table in made.tables:
        table_map, rows = told[table.name]
        assert undescribed(table_map) <= TOLD[setting]
        for place, column in enumerate(table.columns):
            values = known[table.name].column(len(IMAGE_FIELDS) + place).to_pylist()
            assert values == dumped[table.name].column(place).to_pylist(), column.definition
            found = rows.column(len(IMAGE_FIELDS) + place).to_pylist()
            if column.type in CHARACTERS and column.charset is not None:
                assert _as_text(column, found) == values, column.definition
            elif setting == "FULL" and column.type not in ADDRESSES:
                assert found == values, column.definition


def _by_the_log(server: ThrowawayServer, made: Made) -> Iterator[tuple[TableName, tuple[TableMap, pa.RecordBatch]]]:
    maps: dict[TableName, tuple[TableMap, Table]] = {}

    def described(table_map: TableMap, offset: int) -> Table:
        if table_map.name not in maps:
            maps[table_map.name] = table_map, describe_table(table_map)
        return maps[table_map.name][1]

    mariadb = read_format(made.data).mariadb
    for table, batch in decode_range(
        made.data, made.start, made.end, checksum=True, wanted=described, mariadb=mariadb, where=Where(file="binlog")
    ):
        yield table.name, (maps[table.name][0], batch)


def _as_text(column: Column, values: list[str | bytes | None]) -> list[str | None]:
    """Bytes, which a column of no told character set has, as the text that they are in the column's own."""
    assert column.charset is not None
    return [to_text(value, column.charset) if isinstance(value, bytes) else value for value in values]
