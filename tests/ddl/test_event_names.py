"""Every event name of a filter, by a statement that has it."""

from __future__ import annotations

from contextlib import closing

import pytest

from unshard.config.event_names import INCOMPATIBLE, PLAIN_DDL, WITHOUT_STATEMENT
from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.context import Context
from unshard.ddl.events import event_of
from unshard.ddl.parse import classify_ddl
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

COLUMNS = """id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, n INT NOT NULL DEFAULT 5, big BIGINT, d DECIMAL(10,2),
e ENUM('a','b'), c CHAR(10), v VARCHAR(100) DEFAULT 'x', t TEXT, b BINARY(8), ts DATETIME(6), bits BIT(8), j LONGTEXT,
g VARCHAR(9) CHARACTER SET latin1, dt DATETIME DEFAULT CURRENT_TIMESTAMP, UNIQUE KEY u (n), KEY k (v)"""

STATEMENTS = [
    ("CREATE DATABASE d", "create database", ()),
    ("ALTER DATABASE d CHARACTER SET utf8mb4", "alter database", ("modify schema charset and collate",)),
    ("DROP DATABASE d", "drop database", ()),
    ("CREATE TABLE x (a INT)", "create table", ()),
    ("DROP TABLE t", "drop table", ()),
    ("TRUNCATE t", "truncate table", ()),
    ("RENAME TABLE t TO x", "rename table", ()),
    ("CREATE INDEX i ON t (n)", "create index", ()),
    ("DROP INDEX k ON t", "drop index", ()),
    ("DROP INDEX IF EXISTS u ON t", "drop index", ("drop unique key",)),
    ("DROP INDEX `PRIMARY` ON t", "drop index", ("drop primary key",)),
    ("ADD COLUMN x INT", "alter table", ("add column",)),
    ("ADD x INT COMMENT 'DROP COLUMN y'", "alter table", ("add column",)),
    ("ADD `check` INT", "alter table", ("add column",)),
    ("DROP COLUMN n", "drop column", ()),
    ("DROP n", "drop column", ()),
    ("RENAME COLUMN n TO m", "rename column", ()),
    ("RENAME KEY k TO l", "rename index", ()),
    ("RENAME x", "rename table", ()),
    ("ADD PRIMARY KEY (n)", "modify constraint", ("add primary key",)),
    ("ADD CONSTRAINT PRIMARY KEY (n)", "modify constraint", ("add primary key",)),
    ("ADD UNIQUE KEY (n)", "modify constraint", ()),
    ("ADD INDEX (n)", "modify constraint", ()),
    ("ADD CONSTRAINT f FOREIGN KEY (n) REFERENCES x (a)", "modify constraint", ("add foreign key",)),
    ("ADD FOREIGN KEY (n) REFERENCES x (a)", "modify constraint", ("add foreign key",)),
    ("ADD CHECK (n > 1)", "alter table", ()),
    ("DROP PRIMARY KEY", "drop primary key", ()),
    ("DROP KEY k", "drop index", ()),
    ("DROP KEY u", "drop index", ("drop unique key",)),
    ("DROP FOREIGN KEY f", "alter table", ("drop foreign key",)),
    ("DROP CONSTRAINT f", "alter table", ()),
    ("ALTER COLUMN n SET DEFAULT 7", "modify default value", ("set default value",)),
    ("ALTER n DROP DEFAULT", "modify default value", ()),
    ("ALTER INDEX k IGNORED", "alter table", ("alter index visibility",)),
    ("ADD PARTITION (PARTITION p VALUES LESS THAN (9))", "alter table", ("add table partition",)),
    ("DROP PARTITION p, q", "drop table partition", ()),
    ("TRUNCATE PARTITION p, q", "truncate table partition", ()),
    ("REBUILD PARTITION p", "rebuild table partition", ()),
    ("COALESCE PARTITION 2", "coalesce table partition", ()),
    ("EXCHANGE PARTITION p WITH TABLE x", "exchange table partition", ()),
    ("REORGANIZE PARTITION p, q INTO (PARTITION r VALUES LESS THAN (9))", "reorganize table partition", ()),
    (
        "REORGANIZE PARTITION p INTO (PARTITION q VALUES LESS THAN (5), PARTITION r VALUES LESS THAN (9))",
        "reorganize table partition",
        ("split table partition",),
    ),
    ("PARTITION BY HASH (id) PARTITIONS 4", "alter table", ("alter table partitioning",)),
    ("REMOVE PARTITIONING", "alter table", ("remove table partitioning",)),
    ("CONVERT TO CHARACTER SET latin1", "modify charset", ("modify table charset and collate",)),
    ("DEFAULT CHARSET latin1", "modify charset", ("modify table charset and collate",)),
    ("COLLATE utf8mb4_bin", "modify collation", ("modify table charset and collate",)),
    ("ENGINE = MyISAM COMMENT 'CHARSET'", "modify storage engine", ("modify table comment",)),
    ("COMMENT 'x'", "alter table", ("modify table comment",)),
    ("AUTO_INCREMENT = 100", "alter table", ("rebase auto id",)),
    ("TTL = `ts` + INTERVAL 1 DAY", "alter table", ("alter ttl info",)),
    ("REMOVE TTL", "alter table", ("alter ttl remove",)),
    ("FORCE", "alter table", ()),
    ("MODIFY d DECIMAL(12,2)", "precision decrease", ()),
    ("MODIFY n INT UNSIGNED NOT NULL DEFAULT 5", "precision decrease", ()),
    ("MODIFY b BINARY(9)", "precision decrease", ()),
    ("MODIFY e ENUM('a')", "value range decrease", ()),
    ("MODIFY e ENUM('b','a')", "value range decrease", ()),
    ("MODIFY e ENUM('a','b','it''s')", "alter table", ()),
    ("MODIFY v VARCHAR(50) DEFAULT 'x'", "value range decrease", ()),
    ("MODIFY v VARCHAR(200) DEFAULT 'x'", "alter table", ()),
    ("MODIFY big INT", "value range decrease", ()),
    ("MODIFY n BIGINT NOT NULL DEFAULT 5", "alter table", ()),
    ("MODIFY n INTEGER NOT NULL DEFAULT '5'", "alter table", ()),
    ("MODIFY ts DATETIME(3)", "value range decrease", ()),
    ("MODIFY bits BIT(4)", "value range decrease", ()),
    ("MODIFY c VARCHAR(10)", "modify column", ()),
    ("MODIFY c CHARACTER VARYING(10)", "modify column", ()),
    ("MODIFY t TINYTEXT", "modify column", ()),
    ("MODIFY t MEDIUMTEXT", "alter table", ()),
    ("MODIFY n VARCHAR(20)", "modify column", ()),
    ("MODIFY d DOUBLE PRECISION", "modify column", ()),
    ("MODIFY id INT UNSIGNED NOT NULL", "remove auto increment", ()),
    ("MODIFY id INT UNSIGNED NOT NULL AUTO_INCREMENT", "alter table", ()),
    ("MODIFY n INT NOT NULL DEFAULT 6", "modify default value", ()),
    ("MODIFY v VARCHAR(100)", "modify default value", ()),
    ("MODIFY dt DATETIME DEFAULT NOW()", "alter table", ()),
    ("MODIFY dt DATETIME", "modify default value", ()),
    ("MODIFY v VARCHAR(100) CHARACTER SET latin1 DEFAULT 'x'", "modify charset", ()),
    ("MODIFY g VARCHAR(9)", "modify charset", ()),
    ("MODIFY v VARCHAR(100) COLLATE utf8mb4_bin DEFAULT 'x'", "modify collation", ()),
    ("MODIFY n INT NOT NULL DEFAULT 5 FIRST", "modify columns order", ()),
    ("MODIFY COLUMN IF EXISTS n INT NOT NULL DEFAULT 5 COMMENT 'FIRST' AFTER v", "modify columns order", ()),
    ("CHANGE n m INT NOT NULL DEFAULT 5", "rename column", ()),
    ("CHANGE COLUMN n N INT NOT NULL DEFAULT 5", "alter table", ()),
    ("CHANGE n m SMALLINT", "value range decrease", ()),
    ("MODIFY nobody INT", "alter table", ()),
    ("MODIFY d DECIMAL(10,2) DEFAULT 1.50", "modify default value", ()),
    ("MODIFY n INT NOT NULL DEFAULT -5", "modify default value", ()),
    ("MODIFY v VARCHAR(100) NOT NULL DEFAULT 'x' COMMENT 'DEFAULT 7'", "alter table", ()),
    ("MODIFY dt DATETIME DEFAULT (NOW() + INTERVAL 1 DAY) COMMENT 'y'", "alter table", ()),
    ("MODIFY j JSON", "alter table", ()),
]


@pytest.fixture(scope="module")
def before(target_server: MariadbServer) -> Table:
    """The table that the statements are on, as a server tells of it."""
    target_server.run("CREATE OR REPLACE DATABASE events_of CHARACTER SET utf8mb4")
    target_server.run(f"CREATE TABLE events_of.t ({COLUMNS})")
    with closing(target_server.connection()) as connection:
        found = read_table(connection, TableName("events_of", "t"))
    target_server.run("DROP DATABASE events_of")
    assert found is not None
    return found


def whole(text: str) -> str:
    """The statement; most of those above are a part of an ALTER TABLE."""
    alone = ("CREATE ", "ALTER DATABASE", "DROP DATABASE", "DROP TABLE", "RENAME TABLE", "TRUNCATE t")
    return text if text.startswith(alone) or " ON t" in text else f"ALTER TABLE t {text}"


@pytest.mark.parametrize(("text", "name", "also"), STATEMENTS)
def test_names_of_a_statement(before: Table, text: str, name: str, also: tuple[str, ...]) -> None:
    ddl = classify_ddl(whole(text), Context(schema="events_of"))
    event = event_of(ddl, before)
    assert (event.name, sorted(event.also)) == (name, sorted(also))


def test_each_part_of_several_is_of_a_multi_schema_change(before: Table) -> None:
    ddl = classify_ddl("ALTER TABLE t ADD x INT, DROP KEY k, LOCK = NONE", Context(schema="events_of"))
    found = [event_of(part, before, several=True) for part in alter_parts(ddl)]
    assert [(event.name, sorted(event.also)) for event in found] == [
        ("alter table", ["add column", "multi schema change"]),
        ("drop index", ["multi schema change"]),
    ]


def test_every_name_that_a_rule_may_have_is_given() -> None:
    given = {name for _, name, also in STATEMENTS for name in (name, *also)} | {"multi schema change"}
    views = {"create view", "drop view"}  # passed over before any filter, as in DM
    assert (PLAIN_DDL | INCOMPATIBLE) - WITHOUT_STATEMENT - views == given
