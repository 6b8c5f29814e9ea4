"""Names of MODIFY by a table as MySQL tells of it: quoted defaults, integers without a width, character sets."""

from __future__ import annotations

from contextlib import closing

from unshard.ddl.context import Context
from unshard.ddl.events import event_of
from unshard.ddl.parse import classify_ddl
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.testing.mysql_server import MysqlServer

STATEMENTS = {
    "MODIFY n INT NOT NULL DEFAULT 5": "alter table",
    "MODIFY n INT NOT NULL DEFAULT 6": "modify default value",
    "MODIFY n BIGINT NOT NULL DEFAULT 5": "alter table",
    "MODIFY n INT UNSIGNED NOT NULL DEFAULT 5": "precision decrease",
    "MODIFY v VARCHAR(50) DEFAULT 'it''s'": "value range decrease",
    "MODIFY v VARCHAR(200) DEFAULT 'it''s'": "alter table",
    "MODIFY v VARCHAR(100) CHARACTER SET latin1 DEFAULT 'it''s'": "modify charset",
    "MODIFY v VARCHAR(100) COLLATE utf8mb4_bin DEFAULT 'it''s'": "modify collation",
    "MODIFY t TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP": "alter table",
    "MODIFY j JSON": "alter table",
    "MODIFY e ENUM('a','b','c')": "alter table",
    "MODIFY e ENUM('b','a')": "value range decrease",
    "MODIFY j LONGTEXT": "modify column",
    "DROP INDEX u": "drop index",
    "ALTER INDEX u INVISIBLE": "alter table",
}


def test_names_by_a_table_of_mysql(mysql_source: MysqlServer, schema: str) -> None:
    mysql_source.run(
        f"CREATE DATABASE {schema} CHARACTER SET utf8mb4",
        f"CREATE TABLE {schema}.t (n INT NOT NULL DEFAULT 5, v VARCHAR(100) DEFAULT 'it''s', "
        "t TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP, j JSON, e ENUM('a','b'), UNIQUE KEY u (n))",
    )
    with closing(mysql_source.connection()) as connection:
        table = read_table(connection, TableName(schema, "t"))
    context = Context(schema=schema, mariadb=False)
    found = {text: event_of(classify_ddl(f"ALTER TABLE t {text}", context), table).name for text in STATEMENTS}
    assert found == STATEMENTS
