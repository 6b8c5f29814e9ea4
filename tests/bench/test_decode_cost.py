"""The processor time of the decoder beside that of CRC-32 over the same bytes, which does not depend on the machine's
load.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from bench.decode import batches

from bench import data
from unshard.model.table import Table, TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
TURNS = 15
MOST = {"bulk": 5.0, "wide": 9.0}
"""Times the CRC-32 of the file's bytes: twice what was measured."""


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def structure(server: MariadbServer, schema: str, name: str) -> Table:
    with session(server.endpoint, "source") as connection:
        table = read_table(connection, TableName(schema, name))
    assert table is not None
    return table


@pytest.mark.parametrize("shape", sorted(MOST))
def test_decoding_costs_a_bounded_number_of_checksums(shape: str, source_server: MariadbServer, schema: str) -> None:
    written = {"bulk": data.bulk, "wide": data.wide}[shape](source_server, schema, rows=40_000)
    table = structure(source_server, schema, shape)
    text = Path(written.file).read_bytes()

    def decoded() -> int:
        return sum(batches(written.file, table))

    assert decoded() == written.rows
    turns = [(seconds(decoded), seconds(lambda: zlib.crc32(text))) for _ in range(TURNS)]
    ours, checksum = (min(found) for found in zip(*turns, strict=True))
    assert ours / checksum <= MOST[shape]
