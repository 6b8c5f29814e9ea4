"""DM's names for statements, as its reference lists them."""

from __future__ import annotations

import pytest

from unshard.ddl.context import Context
from unshard.ddl.events import BY_COLUMN, dm_events
from unshard.ddl.parse import classify_ddl


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("CREATE DATABASE d", ("create database",)),
        ("ALTER SCHEMA d CHARACTER SET utf8mb4", ("alter database",)),
        ("DROP DATABASE d", ("drop database",)),
        ("CREATE TABLE t (a INT)", ("create table",)),
        ("DROP TABLE t, u", ("drop table",)),
        ("TRUNCATE t", ("truncate table",)),
        ("RENAME TABLE t TO u", ("rename table",)),
        ("CREATE UNIQUE INDEX i ON t (a)", ("create index",)),
        ("DROP INDEX i ON t", ("drop index",)),
        ("ALTER TABLE t ADD COLUMN b INT", ("alter table",)),
        ("ALTER TABLE t ADD b INT, DROP COLUMN c", ("alter table", "drop column")),
        ("ALTER TABLE t DROP b", ("drop column",)),
        ("ALTER TABLE t MODIFY b BIGINT", (BY_COLUMN,)),
        ("ALTER TABLE t CHANGE b c INT", (BY_COLUMN,)),
        ("ALTER TABLE t RENAME COLUMN b TO c", ("rename column",)),
        ("ALTER TABLE t RENAME KEY b TO c", ("rename index",)),
        ("ALTER TABLE t RENAME u", ("rename table",)),
        ("ALTER TABLE t DROP INDEX i", ("drop index",)),
        ("ALTER TABLE t DROP PRIMARY KEY", ("drop primary key",)),
        ("ALTER TABLE t DROP FOREIGN KEY f", ("alter table",)),
        ("ALTER TABLE t DROP PARTITION p", ("drop table partition",)),
        ("ALTER TABLE t TRUNCATE PARTITION p", ("truncate table partition",)),
        ("ALTER TABLE t REORGANIZE PARTITION", ("reorganize table partition",)),
        ("ALTER TABLE t REBUILD PARTITION p", ("rebuild table partition",)),
        ("ALTER TABLE t COALESCE PARTITION 2", ("coalesce table partition",)),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", ("exchange table partition",)),
        ("ALTER TABLE t ADD PARTITION (PARTITION p VALUES LESS THAN (3))", ("alter table",)),
        ("ALTER TABLE t ADD UNIQUE (b)", ("modify constraint",)),
        ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES u (a)", ("modify constraint",)),
        ("ALTER TABLE t ALTER COLUMN b SET DEFAULT 3", ("modify default value",)),
        ("ALTER TABLE t ALTER b DROP DEFAULT", ("modify default value",)),
        ("ALTER TABLE t ALTER INDEX i INVISIBLE", ("alter table",)),
        ("ALTER TABLE t DEFAULT CHARSET = utf8mb4", ("modify charset",)),
        ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", ("modify charset",)),
        ("ALTER TABLE t COLLATE utf8mb4_bin", ("modify collation",)),
        ("ALTER TABLE t ENGINE = InnoDB", ("modify storage engine",)),
        ("ALTER TABLE t COMMENT 'x'", ("alter table",)),
    ],
)
def test_statements_have_dms_names(sql: str, names: tuple[str, ...]) -> None:
    assert dm_events(classify_ddl(sql, Context(schema="d"))) == names
