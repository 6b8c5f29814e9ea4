"""What a statement means in the session that it had upstream: each a statement that means another thing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.followed_ddl import Followed, unlike
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

OTHER = {
    "sql_mode": "'STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
    "time_zone": "'-03:30'",
    "explicit_defaults_for_timestamp": 1,
    "collation_connection": "utf8mb4_bin",
    "collation_server": "latin2_bin",
}


@pytest.fixture
def followed(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> Iterator[Followed]:
    found = Followed(source_server, target_server, schema)
    unlike(found.target, OTHER)
    yield found
    found.close()


CASES: dict[str, tuple[list[str], str | bytes]] = {
    "ANSI_QUOTES": (["sql_mode = 'ANSI_QUOTES'"], 'CREATE TABLE "t" ("a" INT DEFAULT 1)'),
    "NO_BACKSLASH_ESCAPES": (["sql_mode = 'NO_BACKSLASH_ESCAPES'"], "CREATE TABLE t (a CHAR(9) DEFAULT '\\n\\')"),
    "REAL_AS_FLOAT": (["sql_mode = 'REAL_AS_FLOAT'"], "CREATE TABLE t (a REAL)"),
    "PIPES_AS_CONCAT": (["sql_mode = 'PIPES_AS_CONCAT'"], "CREATE TABLE t (b CHAR(3), a CHAR(9) AS (b || 'x'))"),
    "HIGH_NOT_PRECEDENCE": (["sql_mode = 'HIGH_NOT_PRECEDENCE'"], "CREATE TABLE t (b INT, a INT AS (NOT b = 1))"),
    "IGNORE_SPACE": (["sql_mode = 'IGNORE_SPACE'"], "CREATE TABLE t (b INT, a INT AS (abs (b)))"),
    "no IGNORE_SPACE": (["sql_mode = ''"], "CREATE TABLE t (count INT, a INT)"),
    "ORACLE": (["sql_mode = 'ORACLE'"], 'CREATE TABLE "t" (a VARCHAR2(10), b NUMBER(5), c CLOB, d DATE)'),
    "zero dates": (
        ["sql_mode = ''"],
        "CREATE TABLE t (a DATE NOT NULL DEFAULT '0000-00-00', b DATE DEFAULT '2020-02-00')",
    ),
    "impossible dates": (["sql_mode = 'ALLOW_INVALID_DATES'"], "CREATE TABLE t (a DATE DEFAULT '2020-02-31')"),
    "time zone": (["time_zone = '+05:00'"], "CREATE TABLE t (a TIMESTAMP NOT NULL DEFAULT '2020-01-01 03:00:00')"),
    "time zone in partitions": (
        ["time_zone = '+05:00'"],
        "CREATE TABLE t (a TIMESTAMP NOT NULL) PARTITION BY RANGE (UNIX_TIMESTAMP(a))"
        " (PARTITION p VALUES LESS THAN (UNIX_TIMESTAMP('2020-01-01 00:00:00')))",
    ),
    "implicit timestamps": (["explicit_defaults_for_timestamp = 0"], "CREATE TABLE t (a TIMESTAMP, b TIMESTAMP)"),
    "explicit timestamps": (["explicit_defaults_for_timestamp = 1"], "CREATE TABLE t (a TIMESTAMP, b TIMESTAMP)"),
    "literals": (
        ["NAMES latin1"],
        b"CREATE TABLE t (a CHAR(9) CHARACTER SET latin1 DEFAULT 'gr\xf6\xdfe', b ENUM('\xe9'))",
    ),
    "gbk literals": (
        ["NAMES gbk"],
        b"CREATE TABLE t (a CHAR(9) CHARACTER SET gbk DEFAULT '\x81\x5c' COMMENT '\x81\x5c\\'', b ENUM('\xd6\xd0'))",
    ),
    "collation of a literal": (
        ["NAMES latin1 COLLATE latin1_german2_ci"],
        "CREATE TABLE t (b INT, a VARCHAR(9) AS (CONCAT('x', b)) STORED)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_session_of_the_event_decides(followed: Followed, case: str) -> None:
    settings, sql = CASES[case]
    for setting in settings:
        rows(followed.source, f"SET {setting}")
    followed.run(sql)
    followed.assert_equal()


def test_now_is_the_time_of_the_event(followed: Followed) -> None:
    followed.run("CREATE TABLE t (id INT)")
    for connection in (followed.source, followed.target):
        rows(connection, f"INSERT INTO {followed.schema}.t VALUES (1)")
    rows(followed.source, "SET timestamp = 1000000000.25, time_zone = '+02:00'")
    followed.run("ALTER TABLE t ADD at DATETIME(2) NOT NULL DEFAULT NOW(2)")
    for connection in (followed.source, followed.target):
        ((at,),) = rows(connection, f"SELECT CAST(at AS CHAR) FROM {followed.schema}.t")
        assert at == "2001-09-09 03:46:40.25"


KEYED, BARE = "id INT PRIMARY KEY, v INT, at TIMESTAMP(6) NULL", "id INT, v INT, at TIMESTAMP(6) NULL"
FILLS: dict[str, tuple[str, str, str]] = {
    "of the event": (
        KEYED,
        "ADD (a INT NOT NULL DEFAULT 7, b INT DEFAULT (id + 1), c DATETIME(6) DEFAULT NOW(6)),"
        " ADD d DATETIME DEFAULT NOW(), ADD e TIMESTAMP(6) NOT NULL DEFAULT NOW(6),"
        " ADD f DECIMAL(20,6) DEFAULT (UNIX_TIMESTAMP(NOW(6))),"
        " ADD g DATE DEFAULT (CURDATE()), ADD h TIME(6) DEFAULT (UTC_TIME(6)), ADD i INT AS (id * 2) STORED",
        "",
    ),
    "of the run": (
        KEYED,
        "ADD a DATETIME(6) DEFAULT (SYSDATE(6)), ADD (b CHAR(36) DEFAULT (UUID()),"
        " c BIGINT UNSIGNED DEFAULT (UUID_SHORT())), ADD d DOUBLE DEFAULT (RAND()),"
        " ADD e BIGINT DEFAULT (CONNECTION_ID()), ADD f CHAR(64) DEFAULT (DATABASE()),"
        " ADD g VARBINARY(9) DEFAULT (RANDOM_BYTES(9)), ADD h BIGINT DEFAULT (NEXT VALUE FOR {schema}.s),"
        " ADD i BIGINT DEFAULT (@@pseudo_thread_id), ADD j CHAR(9) DEFAULT (@x)",
        "abcdefghij",
    ),
    "names": (
        KEYED,
        "DROP v, ADD v CHAR(36) DEFAULT (UUID()), ADD COLUMN IF NOT EXISTS (C CHAR(36) DEFAULT (UUID())),"
        " ADD COLUMN IF NOT EXISTS at CHAR(36) DEFAULT (UUID()), ADD b CHAR(9) DEFAULT 'UUID()' COMMENT 'x'",
        "vC",
    ),
    "NULL": (KEYED, "MODIFY at TIMESTAMP(6) NOT NULL, MODIFY v INT NOT NULL DEFAULT 5", ""),
    "a default alone": (KEYED, "ALTER v SET DEFAULT (UUID_SHORT())", ""),
    "numbers by a key": (KEYED, "ADD c INT NOT NULL AUTO_INCREMENT, ADD KEY (c)", ""),
    "numbers by the key before": (KEYED, "DROP PRIMARY KEY, ADD c INT AUTO_INCREMENT PRIMARY KEY", ""),
    "numbers without a key": (BARE, "ADD c INT AUTO_INCREMENT PRIMARY KEY", "c"),
    "numbers in place of others": (BARE, "DROP v, ADD v INT AUTO_INCREMENT PRIMARY KEY", "v"),
    "numbers for NULL": (BARE, "CHANGE v w INT NOT NULL AUTO_INCREMENT, ADD KEY (w)", "w"),
    "numbers that are there": (BARE, "MODIFY id INT NOT NULL AUTO_INCREMENT, ADD KEY (id)", ""),
}


@pytest.mark.parametrize("case", FILLS)
def test_what_old_rows_get_is_foretold(followed: Followed, case: str) -> None:
    columns, change, unlike = FILLS[case]
    followed.run(f"CREATE TABLE t ({columns})")
    rows(followed.source, "SET sql_log_bin = 0")
    for connection, values, start in ((followed.source, "(3), (1), (2)", 1), (followed.target, "(2), (3), (1)", 100)):
        rows(connection, f"CREATE SEQUENCE {followed.schema}.s START {start}")
        rows(connection, f"INSERT INTO {followed.schema}.t (id) VALUES {values}")
    rows(followed.source, "SET sql_log_bin = 1, sql_mode = '', @x = 'x', pseudo_thread_id = 987654321")
    followed.run(f"ALTER TABLE t {change.format(schema=followed.schema)}")
    assert unlike_columns(followed) == list(unlike)
    assert [name.replace("w", "v") for name in unlike] == list(followed.unlike)


def test_numbers_in_other_steps_are_foretold(followed: Followed) -> None:
    followed.run(f"CREATE TABLE t ({KEYED})")
    for connection in (followed.source, followed.target):
        rows(connection, f"INSERT INTO {followed.schema}.t (id) VALUES (1), (2)")
    rows(followed.source, "SET auto_increment_increment = 3, auto_increment_offset = 2")
    followed.run("ALTER TABLE t ADD c INT AUTO_INCREMENT, ADD KEY (c)")
    assert unlike_columns(followed) == ["c"] == list(followed.unlike)


def unlike_columns(followed: Followed) -> list[str]:
    """Those of `t` that have other values at both ends, beside those of the first column."""
    ours, theirs = (_by_column(connection, followed.schema) for connection in (followed.source, followed.target))
    assert ours.keys() == theirs.keys()
    return [name for name, values in ours.items() if values != theirs[name]]


def _by_column(connection: Any, schema: str) -> dict[str, list[tuple[str, str]]]:
    rows(connection, "SET time_zone = '+00:00'")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {schema}.t")
        names, found = [column[0] for column in cursor.description], cursor.fetchall()
    return {name: sorted((str(row[0]), str(row[at])) for row in found) for at, name in enumerate(names)}


def test_tables_without_rows_are_filled_with_nothing(followed: Followed) -> None:
    followed.run(f"CREATE TABLE t ({BARE})", "ALTER TABLE t ADD c CHAR(36) DEFAULT (UUID())")
    followed.run("ALTER TABLE t ADD n INT AUTO_INCREMENT PRIMARY KEY")
    assert followed.unlike == ()


def test_each_microsecond_of_now_arrives(followed: Followed) -> None:
    followed.run(f"CREATE TABLE t ({KEYED})")
    for connection in (followed.source, followed.target):
        rows(connection, f"INSERT INTO {followed.schema}.t (id) VALUES (1)")
    for number, fraction in enumerate(("000001", "123457", "219999", "999999")):
        rows(followed.source, f"SET timestamp = 1799999999.{fraction}4")
        followed.run(f"ALTER TABLE t ADD c{number} DATETIME(6) DEFAULT NOW(6)")
    assert unlike_columns(followed) == []


def test_the_default_schema_and_its_character_set(followed: Followed) -> None:
    other = f"{followed.schema}_2"
    try:
        rows(followed.source, "SET collation_server = latin1_german1_ci")
        followed.run(f"CREATE DATABASE {other}", f"USE {other}", "CREATE TABLE t (a CHAR(3))")
        followed.run(f"CREATE TABLE {followed.schema}.u LIKE t", f"USE {followed.schema}")
        followed.run("ALTER DATABASE COLLATE latin2_bin", "CREATE TABLE v (a CHAR(3))")
        table = followed.tracker.get(TableName(other, "t"))
        assert table is not None
        assert table.columns[0].collation == "latin1_german1_ci"
        followed.run(f"DROP DATABASE {other}")
        followed.assert_equal()
    finally:
        rows(followed.source, f"DROP DATABASE IF EXISTS {other}")


def test_if_exists_of_the_session(followed: Followed) -> None:
    followed.run("CREATE TABLE t (a INT)")
    rows(followed.source, "SET sql_if_exists = 1")
    followed.run("ALTER TABLE nothing ADD b INT", "CREATE TABLE u (a INT)", "DROP TABLE t, nothing")
    followed.assert_equal()


def test_variables_of_one_statement(followed: Followed) -> None:
    followed.run("CREATE TABLE t (a INT)")
    followed.run("SET STATEMENT max_statement_time = 100 FOR ALTER TABLE t ADD b INT")
    followed.run("SET STATEMENT time_zone = '+05:00' FOR ALTER TABLE t ADD c TIMESTAMP DEFAULT '2020-01-01 03:00:00'")
    followed.assert_equal()
