"""A table without the columns that a source's names fill, held against a server that makes it so."""

from __future__ import annotations

import pytest

from unshard.ddl.renamed_table import renamed, without_columns
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

CASES = [
    ("id BIGINT, c VARCHAR(9) NOT NULL, PRIMARY KEY (id, c)", "id BIGINT, PRIMARY KEY (id)", ""),
    (
        "c INT, a INT COMMENT '`c`, (x), ', `d``,` INT, b TEXT, D INT, KEY k (a, c), UNIQUE u (`d``,`, c, b(10)),"
        " KEY (c, D)",
        "a INT COMMENT '`c`, (x), ', `d``,` INT, b TEXT, KEY k (a), UNIQUE u (`d``,`, b(10))",
        "",
    ),
    (
        "a INT, c INT NOT NULL, D INT, PRIMARY KEY (a, c, D)",
        "a INT, PRIMARY KEY (a)",
        " COMMENT='it ) ENGINE' PARTITION BY LIST (c) (PARTITION p VALUES IN (1, 2), PARTITION q DEFAULT)",
    ),
    ("a INT, D INT, CHECK (a > 0)", "a INT, CHECK (a > 0)", " PARTITION BY HASH (a) PARTITIONS 2"),
    ("a INT, b INT DEFAULT 3, KEY (a DESC, b)", "a INT, b INT DEFAULT 3, KEY (a DESC, b)", ""),
]


@pytest.mark.server
@pytest.mark.parametrize(("whole", "rest", "options"), CASES)
def test_it_is_as_if_they_had_never_been(
    whole: str, rest: str, options: str, target_server: MariadbServer, schema: str
) -> None:

    kept = options if "LIST" not in options else options[: options.index(" PARTITION")]
    target_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t ({whole}){options}",
        f"CREATE DATABASE {schema}_b",
        f"CREATE TABLE {schema}_b.t ({rest}){kept}",
    )
    connection = target_server.connection()
    try:
        given = read_table(connection, TableName(schema, "t"))
        expected = read_table(connection, TableName(f"{schema}_b", "t"))
    finally:
        connection.close()
    assert given is not None
    assert expected is not None
    found = without_columns(given, ["C", "d"])
    assert (found.columns, found.indexes) == (expected.columns, expected.indexes)
    assert found.create_sql == expected.create_sql
    moved = renamed(found, TableName("x", "y`z"))
    assert (moved.name, moved.columns) == (TableName("x", "y`z"), found.columns)
    assert moved.create_sql == found.create_sql.replace("CREATE TABLE `t`", "CREATE TABLE `y``z`", 1)
    assert renamed(moved, given.name) == found


def test_a_server_that_stores_names_in_lower_case(schema: str) -> None:
    """Its SHOW CREATE TABLE has another name than the one that was asked for."""
    with MariadbServer({"lower_case_table_names": "1"}) as folding:
        folding.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.Orders (id INT)")
        found = read_table(folding.connection(), TableName(schema, "Orders"))
    assert found is not None
    moved = renamed(found, TableName("x", "Sales"))
    assert moved.create_sql.startswith("CREATE TABLE `Sales` (")
