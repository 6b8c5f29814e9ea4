"""What a statement means in the session that it had upstream: each a statement that means another thing elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ddl_followed import Followed, unlike
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.testing.servers import MariadbServer

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


def test_the_default_schema_and_its_character_set(followed: Followed) -> None:
    other = f"{followed.schema}_2"
    try:
        rows(followed.source, "SET collation_server = latin1_german1_ci")
        followed.run(f"CREATE DATABASE {other}", f"USE {other}", "CREATE TABLE t (a CHAR(3))")
        followed.run(f"CREATE TABLE {followed.schema}.u LIKE t", f"USE {followed.schema}")
        followed.run("ALTER DATABASE COLLATE latin2_bin", "CREATE TABLE v (a CHAR(3))")
        table = followed.tracker.get(TableName(other, "t"))
        assert table is not None and table.columns[0].collation == "latin1_german1_ci"
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
