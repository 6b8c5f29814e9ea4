"""Texts that are longer than the source's max_allowed_packet, which limits what its functions may return."""

from __future__ import annotations

import pytest

from unshard.dump.read import read_rows
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.source.snapshot import open_reader
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

LENGTH = 3_000_000
TYPES = ("LONGTEXT CHARACTER SET latin1", "LONGTEXT CHARACTER SET utf16", "LONGTEXT CHARACTER SET utf8mb3", "LONGTEXT",
         "LONGBLOB")  # fmt: skip


def test_long_values_are_dumped_whole() -> None:
    with MariadbServer() as server:
        server.run("CREATE DATABASE d")
        for number, kind in enumerate(TYPES):
            server.run(
                f"CREATE TABLE d.t{number} (v {kind})", f"INSERT INTO d.t{number} VALUES (REPEAT('a', {LENGTH}))"
            )
        server.run("SET GLOBAL max_allowed_packet = 1048576")
        for number in range(len(TYPES)):
            with session(server.endpoint, "source") as connection:
                table = read_table(connection, TableName("d", f"t{number}"))
            assert table is not None
            reader = open_reader(server.endpoint, text=False)
            ((value,),) = [batch.column(0).to_pylist() for batch in read_rows(reader, table)]
            reader.close()
            assert value in ("a" * LENGTH, b"a" * LENGTH)
