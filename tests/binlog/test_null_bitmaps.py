"""NULL bitmaps and columns-present bitmaps at every width where they get a byte more, by bytes and on a server."""

from __future__ import annotations

import pyarrow as pa
import pytest
from made_events import File
from row_images import decode, map_table, packed, rows, table_of

from unshard.binlog.rows import decode_range
from unshard.errors import Where
from unshard.model.table import Column, TableName
from unshard.mysql.connection import session
from unshard.mysql.flavour import current_location, identify
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

WIDTHS = (1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65)
TINY = 1  # the type code


def bitmap(places: set[int], width: int) -> bytes:
    return sum(1 << place for place in places).to_bytes((width + 7) // 8, "little")


def patterns(width: int) -> list[set[int]]:
    """The columns that are NULL: none, each alone, all but each, all."""
    singles = [{place} for place in range(width)]
    every = set(range(width))
    return [set(), *singles, *(every - one for one in singles), every]


def tinies(width: int) -> list[int]:
    return [(7 * place) % 127 + 1 for place in range(width)]


def expected(width: int) -> list[list[int | None]]:
    """The values by column."""
    value = tinies(width)
    return [[None if place in nulls else value[place] for nulls in patterns(width)] for place in range(width)]


def columns_of(batch: pa.RecordBatch, width: int) -> list[list[int | None]]:
    return [batch.column(2 + place).to_pylist() for place in range(width)]


@pytest.mark.parametrize("width", WIDTHS)
def test_every_single_null_by_bytes(width: int) -> None:
    value = tinies(width)
    images = b"".join(
        bitmap(nulls, width) + bytes(value[place] for place in range(width) if place not in nulls)
        for nulls in patterns(width)
    )
    file = File()
    map_table(file, [TINY] * width)
    rows(file, images, columns=width)
    table = table_of(*(Column(f"c{place}", "tinyint", "tinyint(4)") for place in range(width)))
    ((_, batch),) = decode(file, lambda table_map, offset: table)
    assert columns_of(batch, width) == expected(width)


@pytest.mark.parametrize("width", WIDTHS)
def test_every_single_column_present_and_absent_by_bytes(width: int) -> None:
    """The NULL bitmap counts the columns that are present, not those of the table."""
    value = tinies(width)
    table = table_of(*(Column(f"c{place}", "tinyint", "tinyint(4)") for place in range(width)))
    for absent in (found for found in patterns(width) if len(found) < width):
        there = [place for place in range(width) if place not in absent]
        file = File()
        map_table(file, [TINY] * width)
        body = (1).to_bytes(6, "little") + b"\1\0" + packed(width) + bitmap(set(there), width)
        for null in [set[int](), {len(there) - 1}, {0}]:
            body += bitmap(null, len(there)) + bytes(value[place] for n, place in enumerate(there) if n not in null)
        file.event(23, body)
        found = decode(file, lambda table_map, offset: table)
        if absent:
            (images,) = found.partial
            assert images.present == (None, frozenset(there))
            batch = images.batch
        else:
            ((_, batch),) = found.batches
        values = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        for n, place in enumerate(there):
            nulls = [False, n == len(there) - 1, n == 0]
            wanted = [None if is_null else value[place] for is_null in nulls]
            assert values[f"c{place}"] == wanted


@pytest.mark.server
def test_every_single_null_of_a_server(source_server: MariadbServer, schema: str) -> None:
    with session(source_server.endpoint, "source") as connection:
        source_server.run(f"CREATE DATABASE {schema}", "FLUSH BINARY LOGS")
        begin = current_location(connection, identify(connection))
        for width in WIDTHS:
            value = tinies(width)
            listed = ", ".join(f"c{place} TINYINT" for place in range(width))
            made = ", ".join(
                "(" + ", ".join("NULL" if place in nulls else str(value[place]) for place in range(width)) + ")"
                for nulls in patterns(width)
            )
            source_server.run(
                f"CREATE TABLE {schema}.t{width} ({listed})", f"INSERT INTO {schema}.t{width} VALUES {made}"
            )
        end = current_location(connection, identify(connection))
        assert begin is not None
        assert end is not None
        known = {name: read_table(connection, name) for name in (TableName(schema, f"t{width}") for width in WIDTHS)}
    data = (source_server.data / begin.position.file).read_bytes()
    found = decode_range(
        memoryview(data),
        begin.position.offset,
        end.position.offset,
        checksum=True,
        wanted=lambda table_map, offset: known.get(table_map.name),
        where=Where(file="binlog"),
    )
    got = {table.name: batch for table, batch in found}
    for width in WIDTHS:
        assert columns_of(got[TableName(schema, f"t{width}")], width) == expected(width)
