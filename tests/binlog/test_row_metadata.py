"""Text columns keep their character sets beside columns of every type, as MariaDB tells them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.row_metadata import TOLD, between_texts, read_by_metadata
from unshard.binlog.table_metadata import MetadataReader, read_optional
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.type_cases import COMMON, MARIADB

SPATIAL = (3, 15, 255, 15, 15)
"""`id INT, w VARCHAR latin1, g GEOMETRY, j VARCHAR gbk, k VARCHAR utf8mb4`."""


@pytest.mark.parametrize(
    ("mariadb", "fields"),
    [
        (True, "03 04 08 3f 1c 2d"),
        (True, "02 07 08 01 3f 02 1c 03 2d"),
        (False, "03 03 08 1c 2d"),
        (False, "02 05 08 01 1c 02 2d"),
    ],
)
def test_mariadb_counts_a_geometry_among_the_text_columns(mariadb: bool, fields: str) -> None:
    found = read_optional(MetadataReader(bytes.fromhex(fields)), SPATIAL, mariadb=mariadb)
    assert found.collations == (None, 8, None, 28, 45)


@pytest.fixture
def as_it_was(source_server: MariadbServer) -> Iterator[None]:
    yield
    source_server.run("SET GLOBAL binlog_row_metadata = NO_LOG")


@pytest.mark.server
@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize("setting", TOLD)
def test_every_type_beside_text(source_server: MariadbServer, schema: str, setting: str) -> None:
    read_by_metadata(source_server, schema, between_texts({**COMMON, **MARIADB}), setting)
