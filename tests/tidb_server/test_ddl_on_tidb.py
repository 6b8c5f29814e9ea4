"""Statements of a real source carried out on a real TiDB, in the words that it takes."""

from __future__ import annotations

from collections.abc import Iterator

import MySQLdb
import pytest

from support.followed_on_tidb import OnTidb
from support.parsed_statements import statements
from support.random_ddl import MARIADB, RandomDdl
from support.refusals import refusal
from unshard.ddl.context import Context
from unshard.ddl.for_tidb import for_tidb
from unshard.ddl.parse import classify_ddl
from unshard.ddl.rewrite import routed, split
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server


@pytest.fixture
def followed(source_server: MariadbServer, tidb: TidbServer, schema: str) -> Iterator[OnTidb]:
    found = OnTidb(source_server, tidb, schema, "CHARACTER SET latin1 COLLATE latin1_swedish_ci")
    yield found
    found.close()


CASES: dict[str, tuple[str, ...]] = {
    "collations that TiDB lacks": (
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b CHAR(3) CHARACTER SET sjis, c TEXT COLLATE utf8mb4_bin)",
        "ALTER TABLE t ADD d VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_ai_ci",
        "ALTER TABLE t ADD e VARCHAR(9), ADD KEY (e)",
    ),
    "several changes of one column": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT)",
        "ALTER TABLE t ADD b INT, ADD KEY kb (b), ADD c INT AFTER b, MODIFY a BIGINT, ADD UNIQUE ka (a)",
        "ALTER TABLE t RENAME COLUMN b TO bb, ADD KEY kbb (bb, c)",
        "ALTER TABLE t ADD KEY kc (c, a, id)",
        "ALTER TABLE t DROP COLUMN a, DROP KEY kb",
        "ALTER TABLE t DROP KEY kbb, DROP COLUMN bb, DROP COLUMN c",
    ),
    "names that change hands": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), c DATE, KEY ka (a), KEY kb (b))",
        "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a, RENAME KEY ka TO kb, RENAME KEY kb TO ka",
        "ALTER TABLE t CHANGE a b VARCHAR(12), CHANGE b c BIGINT, CHANGE c a DATE",
        "ALTER TABLE t CHANGE a d DATE, ADD a INT, CHANGE b e VARCHAR(12)",
        "ALTER TABLE t RENAME COLUMN d TO c, DROP COLUMN c, RENAME KEY ka TO kc, ADD KEY ka (e)",
        "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT, RENAME COLUMN a TO f, ADD KEY IF NOT EXISTS ka (a)",
    ),
    "keys in the definition of a column": (
        "CREATE TABLE t (id INT)",
        "ALTER TABLE t ADD a INT UNIQUE, ADD b INT NOT NULL PRIMARY KEY FIRST",
    ),
    "options of storage, and how to do it": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT) ENGINE=Aria PAGE_CHECKSUM=1 COMMENT='old'",
        "ALTER TABLE t ENGINE=InnoDB, ADD b INT, ALGORITHM=COPY, LOCK=SHARED",
        "ALTER TABLE t FORCE",
        "ALTER TABLE t COMMENT 'new', ROW_FORMAT=DYNAMIC",
        "ALTER TABLE t ORDER BY a",
    ),
    "attributes that TiDB lacks": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT INVISIBLE DEFAULT 3, b VARCHAR(90) COMPRESSED, c JSON)",
        "ALTER TABLE t ADD d INT INVISIBLE, ADD e INT CHECK (e > 1)",
    ),
    "keys that TiDB lacks": (
        "CREATE TABLE t (id INT PRIMARY KEY, a TEXT, FULLTEXT KEY ft (a))",
        "ALTER TABLE t ADD FULLTEXT KEY fu (a), ADD b INT",
        "CREATE FULLTEXT INDEX fv ON t (a)",
        "ALTER TABLE t DROP KEY ft, DROP KEY fu, ADD c INT",
        "DROP INDEX fv ON t",
    ),
    "checks": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, CONSTRAINT positive CHECK (a > 0))",
        "ALTER TABLE t ADD CONSTRAINT small CHECK (a < 9)",
        "ALTER TABLE t DROP CONSTRAINT positive, DROP CONSTRAINT small",
    ),
    "versioned tables": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
        "CREATE TABLE u (a INT, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
        " e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
        "SET STATEMENT system_versioning_alter_history = KEEP FOR ALTER TABLE t ADD b INT",
        "ALTER TABLE t DROP SYSTEM VERSIONING",
    ),
    "generated columns": (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT AS (a + 1) STORED, c INT AS (a * 2) VIRTUAL)",
        "ALTER TABLE t ADD d INT AS (a + 2) STORED",
    ),
    "long keys and texts": (
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(1000), b TEXT, c VARCHAR(20000), KEY ka (a),"
        " KEY kb (a(700), b(80)))",
        "ALTER TABLE t ADD d TINYTEXT, ADD KEY kd (d(200))",
    ),
    "conversion of a table": (
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b TEXT)",
        "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "ALTER TABLE t DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, ADD c VARCHAR(9)",
    ),
    "times without explicit defaults": (
        "SET STATEMENT explicit_defaults_for_timestamp = 0 FOR"
        " CREATE TABLE t (id INT PRIMARY KEY, a TIMESTAMP, b TIMESTAMP, c TIMESTAMP NULL)",
        "SET STATEMENT explicit_defaults_for_timestamp = 0 FOR ALTER TABLE t ADD d TIMESTAMP",
    ),
    "counters": (
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 70",
        "ALTER TABLE t AUTO_INCREMENT = 900",
        "ALTER TABLE t MODIFY id BIGINT NOT NULL AUTO_INCREMENT",
        "ALTER TABLE t MODIFY id BIGINT NOT NULL",
    ),
    "forms of MariaDB": (
        "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY)",
        "ALTER TABLE IF EXISTS t WAIT 3 ADD COLUMN IF NOT EXISTS a INT, DROP COLUMN IF EXISTS nothing",
        "CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, b INT)",
        "CREATE OR REPLACE INDEX kb ON t (b)",
        "CREATE OR REPLACE INDEX kb ON t (b, id)",
        "ALTER TABLE t ALTER INDEX kb IGNORED",
        "RENAME TABLE IF EXISTS t WAIT 3 TO u",
        "DROP TABLE IF EXISTS u, nothing WAIT 3",
    ),
    "partitions": (
        "CREATE TABLE t (a INT, b INT) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (5) ENGINE = InnoDB)",
        "ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN MAXVALUE)",
        "ALTER TABLE t TRUNCATE PARTITION p0",
        "ALTER TABLE t DROP PARTITION p0",
        "ALTER TABLE t REMOVE PARTITIONING",
        "ALTER TABLE t PARTITION BY HASH (b) PARTITIONS 3",
    ),
    "names": (
        "CREATE TABLE a (id INT PRIMARY KEY, `q``s` INT)",
        "CREATE TABLE b LIKE a",
        "RENAME TABLE a TO x, b TO a, x TO b",
        "ALTER TABLE b RENAME TO c, ADD d INT",
        "ALTER TABLE c CHANGE `q``s` `é` BIGINT COMMENT 'it''s'",
        "TRUNCATE TABLE c",
        "DROP TABLE a, c",
    ),
    "foreign keys": (
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "ALTER TABLE c ADD q INT, ADD CONSTRAINT cq FOREIGN KEY (q) REFERENCES p (id)",
        "ALTER TABLE c DROP FOREIGN KEY c_ibfk_1, DROP FOREIGN KEY cq",
    ),
    "defaults": (
        "CREATE TABLE t (id INT PRIMARY KEY, a DATETIME(3) DEFAULT NOW(3) ON UPDATE NOW(3),"
        " b VARCHAR(36) DEFAULT UUID(), c BIT(3) DEFAULT b'101', d DECIMAL(9,3) DEFAULT -1.5, e BOOL DEFAULT TRUE,"
        " f DATE DEFAULT '2000-01-01')",
        "ALTER TABLE t ALTER d SET DEFAULT 2, ALTER e DROP DEFAULT",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_of_translation(followed: OnTidb, name: str) -> None:
    for sql in CASES[name]:
        followed.run(sql)
        followed.assert_equal()


@pytest.mark.parametrize("seed", range(4))
def test_random_statements(followed: OnTidb, seed: int) -> None:
    """What TiDB has nothing for stops with a code that says so, and nothing else does."""
    statements = RandomDdl(seed, MARIADB)
    taken = 0
    for _ in range(60):
        tables = [table for name in followed.names() if (table := followed.tracker.get(name))]
        refused = None
        try:
            taken += followed.taken(statements.statement(tables))
            followed.assert_equal()
        except DdlError as error:
            refused = error
        if refused is not None:
            assert refused.code in ("DDL-037", "DDL-038"), (refused.code, refused.cause, followed.ran[-1])
            followed.begin_anew()
    assert taken > 10


def test_what_tidb_made_is_told(followed: OnTidb) -> None:
    followed.run(
        "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(1000), b TEXT, c VARCHAR(20000),"
        " u VARCHAR(9) COLLATE latin1_bin, KEY ka (a), KEY kb (a(700), b(80)), FULLTEXT KEY ft (b)) COMMENT 'x'"
    )
    assert followed.column("t", "a")[:2] == ("varchar(1000)", "utf8mb4_general_ci")
    assert followed.column("t", "b")[:2] == ("mediumtext", "utf8mb4_general_ci")
    assert followed.column("t", "c")[:2] == ("text", "utf8mb4_general_ci")
    assert followed.column("t", "u")[1] == "latin1_bin"
    assert followed.keys("t") == {"PRIMARY": (("id", 0),), "ka": (("a", 768),), "kb": (("a", 384), ("b", 80))}


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CREATE TABLE t (id INT PRIMARY KEY, p POINT)", "no type POINT"),
        ("ALTER TABLE plain ADD p POINT", "no type POINT"),
        ("ALTER TABLE plain ADD n INT AUTO_INCREMENT UNIQUE", "AUTO_INCREMENT"),
        ("ALTER TABLE plain ADD v VARCHAR(1000), ADD UNIQUE KEY ku (v)", "3072 bytes"),
        ("ALTER TABLE plain DROP PRIMARY KEY", "clustered index"),
        ("ALTER TABLE plain ADD t TEXT DEFAULT 'x'", "can't have a default"),
    ],
)
def test_what_tidb_has_nothing_for_stops_with_its_limit(followed: OnTidb, sql: str, words: str) -> None:
    followed.run("CREATE TABLE plain (id INT PRIMARY KEY)")
    with pytest.raises(DdlError, match=words) as failure:
        followed.run(sql)
    assert failure.value.code == "DDL-038"


UNREADABLE = frozenset(
    {
        # MariaDB's periods of an application, and partitions that become tables
        "create table t (s date, e date, u int, period for app (s, e), unique (u, app without overlaps))",
        "alter table t add period if not exists for app (s, e)",
        "alter table t add system versioning, drop period for system_time",
        "alter table t convert partition p to table u",
        "alter table t convert table u to partition p values less than (9)",
        # words that no released server has, and columns that are not there
        "create table t (a int default (select_1), b int generated always as (t.select) stored)",
        "create table t (a varchar(9) compressed, b int masked with (function = 'x')) page_compressed=1 `x`=2",
        # MySQL's engine for analysis, and TiDB's own words, which no source logs
        "alter table t secondary_engine = null, secondary_load",
        "alter table t cache",
        "create table t (id bigint auto_random(5, 54) primary key clustered, j json) ttl = j + interval 1 year"
        " ttl_enable = 'ON' placement policy = p",
    }
)


@pytest.mark.parametrize("sql", statements())
def test_tidb_reads_every_statement_of_the_parsers_tests(tidb: TidbServer, schema: str, sql: str) -> None:
    """Tables that the statement names may be missing, or other than it needs; its words are TiDB's."""
    connection = tidb.connection()

    def run_parts() -> None:
        for one in split(classify_ddl(sql, Context(schema, mariadb=True))):
            there = routed(one, lambda name: TableName(schema, name.table), lambda name: schema)
            for part in for_tidb(connection, there, None, None, {}):
                failure = refusal(MySQLdb.Error, rows, connection, part.text)
                assert failure is None or failure.args[0] not in (1064, 8200) or sql in UNREADABLE, part.text

    rows(connection, f"CREATE DATABASE {schema}")
    try:
        rows(connection, f"USE {schema}")
        refused = refusal(DdlError, run_parts)
    finally:
        rows(connection, f"DROP DATABASE {schema}")
        connection.close()
    if refused is not None:
        cause = refused.cause
        assert refused.code in ("DDL-037", "DDL-038")
        assert cause.startswith("TiDB has no") or "no type" in cause or sql in UNREADABLE, (cause, sql)
