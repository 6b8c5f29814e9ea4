"""Which tables foreign keys connect on TiDB, whose catalog takes each parent to be in the schema of its child."""

from __future__ import annotations

from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import families
from unshard.testing.tidb_server import TidbServer


def test_a_parent_in_another_schema(tidb: TidbServer, schema: str) -> None:
    odd = TableName(schema, "a `parent`")
    parent, child, own = (TableName(f"{schema}_2", "parent"), TableName(schema, "child"), TableName(schema, "own"))
    tidb.run(f"CREATE DATABASE {schema}", f"CREATE DATABASE {schema}_2")
    tidb.run(
        *(f"CREATE TABLE {name.quoted} (id BIGINT PRIMARY KEY)" for name in (parent, odd)),
        f"CREATE TABLE {child} (id BIGINT PRIMARY KEY COMMENT 'REFERENCES `{schema}`.`no` (`id`)',"
        f" p BIGINT, q BIGINT, FOREIGN KEY (p) REFERENCES {parent} (id), FOREIGN KEY (q) REFERENCES {odd.quoted} (id))",
        f"CREATE TABLE {own} (id BIGINT PRIMARY KEY, up BIGINT, FOREIGN KEY (up) REFERENCES {own} (id))",
    )
    with session(tidb.endpoint, "target") as connection:
        found = {name: first for name, first in families(connection).items() if name.schema.startswith(schema)}
    assert found == {**dict.fromkeys((odd, child, parent), odd), own: own}
