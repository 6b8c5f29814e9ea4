"""One round of random rows: made on the source by a seed, then carried to the target in several ways."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import MySQLdb

from support.log_to_target import Carrier, Way
from support.random_rows import COLLATIONS, RandomTable, random_statements, random_table
from unshard.errors import UnshardError, Where
from unshard.load.contents import SourceTable
from unshard.load.creation import creation_for
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.sync.batch.row_counts import Ledger
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

MODES = "STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO"
WAYS = (
    Way(),
    Way(multiple_rows=False),
    Way(range_digits=1),
    Way(compact=False, partitions=2),
    Way(compact=False, multiple_rows=False, partitions=1, shares=1),
    Way(exchange="shuffled", chunk_rows=3, range_digits=1, partitions=4),
    Way(exchange="sliced"),
    Way(exchange="sliced", compact=False, partitions=5),
    Way(exchange="sliced", range_digits=2, partitions=5),
    Way(budget=1 << 30, chunk_rows=100, partitions=8),
    Way(budget=1, partitions=1),
    Way(twice=True),
    Way(again=True),
    Way(exchange="here", budget=8000),
    Way(again=True, multiple_rows=False, compact=False, budget=1 << 30),
)


def carry_random_rows(
    source: ThrowawayServer, target: ThrowawayServer, seed: int, collations: Sequence[str] = COLLATIONS, ways: int = 4
) -> str:
    """Raises AssertionError, or what the pipeline raises, with the seed. Tells how much was done."""
    chosen = random.Random(seed)
    schema = f"rows_{seed}"
    image = chosen.choice(("FULL", "FULL", "FULL", "FULL", "MINIMAL", "NOBLOB"))
    tables = list(_made(source, target, schema, chosen, collations, alike=image != "FULL"))
    carrier = Carrier(source, target, schema)
    ledger: Ledger = {}
    try:
        done = _run(source, schema, tables, chosen, image)
        for way in chosen.sample(WAYS, ways):
            target.run(*(f"DELETE FROM {schema}.{table.name}" for table in tables))
            try:
                ledger = carrier.carry(way)
                for table in tables:
                    place = TableName(schema, table.name)
                    shows = partial(_shown_in_tidb, table) if isinstance(target, TidbServer) else table.shows
                    assert_equal([(source, place)], (target, place), mapping=shows)
            except Exception as error:
                if image != "FULL" and isinstance(error, UnshardError) and error.code in ("SYNC-030", "SYNC-031"):
                    continue  # the images lack what would be needed, and that is said
                error.add_note(f"seed {seed}, {way}")
                raise
        return f"{done} statements, {sum(entry.decoded for entry in ledger.values())} changes"
    finally:
        carrier.close()
        for server in (source, target):
            server.run(f"DROP DATABASE {schema}")


def _made(
    source: ThrowawayServer,
    target: ThrowawayServer,
    schema: str,
    chosen: random.Random,
    collations: Sequence[str],
    *,
    alike: bool,
) -> Iterator[RandomTable]:
    """Three tables that both servers take, as the target has them: not always `alike`."""
    for server in (source, target):
        server.run(f"CREATE DATABASE {schema}")
    made = 0
    while made < 3:
        table = random_table(chosen, f"t{made}", collations)
        try:
            source.run(f"SET sql_mode = '{MODES}'", table.create(schema))
        except MySQLdb.Error:
            continue
        there = table.wider(chosen) if not alike and chosen.random() < 0.4 else table
        if isinstance(target, TidbServer):
            _make_in_tidb(source, target, there, schema)
        else:
            target.run(f"SET sql_mode = '{MODES}'", there.create(schema))
        made += 1
        yield there


def _make_in_tidb(source: ThrowawayServer, target: TidbServer, table: RandomTable, schema: str) -> None:
    """Make the table in TiDB as a copy does, by its CREATE TABLE of the source's server."""
    shape = TableName(f"{schema}_shape", table.name)
    source.run(f"CREATE DATABASE {shape.schema}", f"SET sql_mode = '{MODES}'", table.create(shape.schema))
    with closing(source.connection()) as connection:
        structure = read_table(connection, shape)
    source.run(f"DROP DATABASE {shape.schema}")
    assert structure is not None
    with closing(target.connection()) as connection:
        creation = creation_for(connection, "", "s", {}, 1)
        dumped = SourceTable(shape, structure.create_sql, structure, None, ())
        statement = creation.table(dumped, TableName(schema, table.name), lambda name: name, None, Where("s"))
    target.run(statement)


def _shown_in_tidb(table: RandomTable, row: dict[str, str | None]) -> dict[str, str | None]:
    """Texts of a source's row as TiDB shows them, which adds no zeros for ZEROFILL."""
    shown = table.shows(row)
    filled = (name for name, kind in table.columns.items() if "ZEROFILL" in kind.definition)
    return shown | {name: None if (text := shown[name]) is None else str(int(text)) for name in filled}


def _run(source: ThrowawayServer, schema: str, tables: Sequence[RandomTable], chosen: random.Random, image: str) -> int:
    """Run random statements; how many the source took."""
    connection: Any = source.connection(schema)
    done = 0
    try:
        with connection.cursor() as cursor:
            cursor.execute(f"SET sql_mode = '{MODES}', binlog_row_image = '{image}'")
            for statement in random_statements(chosen, tables, schema, chosen.choice((30, 80, 200))):
                try:
                    cursor.execute(statement.replace("%", "%%"))
                    done += 1
                except MySQLdb.Error:
                    continue
    finally:
        connection.close()
    return done
