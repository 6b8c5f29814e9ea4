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


KEYED, BARE = "id INT PRIMARY KEY, v INT, at TIMESTAMP(6) NULL", "id INT, v INT, at TIMESTAMP(6) NULL"
FILLS: dict[str, tuple[str, str, bool]] = {
    "a constant": (KEYED, "ADD c INT NOT NULL DEFAULT 7", False),
    "another column": (KEYED, "ADD c INT DEFAULT (id + 1)", False),
    "NOW(6)": (KEYED, "ADD c DATETIME(6) DEFAULT NOW(6), ADD d TIMESTAMP(6) NOT NULL DEFAULT NOW(6)", False),
    "NOW()": (BARE, "ADD c DATETIME NOT NULL DEFAULT NOW()", False),
    "UNIX_TIMESTAMP()": (KEYED, "ADD c DECIMAL(20,6) DEFAULT (UNIX_TIMESTAMP(NOW(6)))", False),
    "CURDATE(), UTC_TIME()": (KEYED, "ADD c DATE DEFAULT (CURDATE()), ADD d TIME(6) DEFAULT (UTC_TIME(6))", False),
    "SYSDATE()": (KEYED, "ADD c DATETIME(6) DEFAULT (SYSDATE(6))", True),
    "UUID()": (KEYED, "ADD c CHAR(36) DEFAULT (UUID())", True),
    "UUID(), IF NOT EXISTS": (KEYED, "ADD COLUMN IF NOT EXISTS (c CHAR(36) DEFAULT (UUID()))", True),
    "UUID(), there already": (KEYED, "ADD COLUMN IF NOT EXISTS v CHAR(36) DEFAULT (UUID()), ADD e INT", False),
    "UUID(), in place of another": (KEYED, "DROP COLUMN v, ADD v CHAR(36) DEFAULT (UUID())", True),
    "UUID(), by SET DEFAULT": (KEYED, "ALTER COLUMN v SET DEFAULT (UUID_SHORT())", False),
    "UUID_SHORT()": (KEYED, "ADD c BIGINT UNSIGNED DEFAULT (UUID_SHORT())", True),
    "RAND()": (KEYED, "ADD c DOUBLE DEFAULT (RAND())", True),
    "CONNECTION_ID()": (KEYED, "ADD c BIGINT DEFAULT (CONNECTION_ID())", True),
    "DATABASE()": (KEYED, "ADD c VARCHAR(64) DEFAULT (DATABASE())", True),
    "NEXT VALUE FOR": (KEYED, "ADD c BIGINT DEFAULT (NEXT VALUE FOR s)", True),
    "NULL to a time": (KEYED, "MODIFY at TIMESTAMP(6) NOT NULL", False),
    "NULL to a default": (KEYED, "MODIFY v INT NOT NULL DEFAULT 5", False),
    "STORED": (KEYED, "ADD c INT AS (id * 2) STORED", False),
    "AUTO_INCREMENT by a key": (KEYED, "ADD c INT NOT NULL AUTO_INCREMENT, ADD KEY (c)", False),
    "AUTO_INCREMENT, another key": (KEYED, "DROP PRIMARY KEY, ADD c INT AUTO_INCREMENT PRIMARY KEY", False),
    "AUTO_INCREMENT without a key": (BARE, "ADD c INT AUTO_INCREMENT PRIMARY KEY FIRST", True),
    "AUTO_INCREMENT without a key, in place of another": (BARE, "DROP id, ADD id INT AUTO_INCREMENT PRIMARY KEY", True),
    "AUTO_INCREMENT of a column": (KEYED, "MODIFY id INT AUTO_INCREMENT", False),
    "AUTO_INCREMENT of NULL": (BARE, "MODIFY v INT NOT NULL AUTO_INCREMENT, ADD KEY (v)", True),
    "AUTO_INCREMENT of NULL, renamed": (BARE, "CHANGE v w INT NOT NULL AUTO_INCREMENT, ADD KEY (w)", True),
    "AUTO_INCREMENT of numbers": (BARE, "CHANGE id n INT NOT NULL AUTO_INCREMENT, ADD KEY (n)", False),
}


@pytest.mark.parametrize("case", FILLS)
def test_what_old_rows_get_is_foretold(followed: Followed, case: str) -> None:
    columns, change, unlike = FILLS[case]
    followed.run(f"CREATE TABLE t ({columns})")
    rows(followed.source, "SET sql_log_bin = 0")
    for connection, order, start in ((followed.source, (3, 1, 2), 1), (followed.target, (2, 3, 1), 100)):
        rows(connection, f"CREATE SEQUENCE {followed.schema}.s START {start}")
        for number in order:
            rows(connection, f"INSERT INTO {followed.schema}.t (id) VALUES ({number})")
    rows(followed.source, "SET sql_log_bin = 1, sql_mode = ''")
    followed.run(f"ALTER TABLE t {change}")
    assert bool(followed.unlike) == unlike
    ours, theirs = (rows(one, f"SELECT * FROM {followed.schema}.t") for one in (followed.source, followed.target))
    assert (sorted(map(str, ours)) != sorted(map(str, theirs))) == unlike


def test_numbers_in_other_steps_are_foretold(followed: Followed) -> None:
    followed.run(f"CREATE TABLE t ({KEYED})")
    for connection in (followed.source, followed.target):
        rows(connection, f"INSERT INTO {followed.schema}.t (id) VALUES (1), (2)")
    rows(followed.source, "SET auto_increment_increment = 3, auto_increment_offset = 2")
    followed.run("ALTER TABLE t ADD c INT AUTO_INCREMENT, ADD KEY (c)")
    assert followed.unlike == ("c",)
    assert rows(followed.source, f"SELECT c FROM {followed.schema}.t ORDER BY id") == ((2,), (5,))


def test_tables_without_rows_are_filled_with_nothing(followed: Followed) -> None:
    followed.run(f"CREATE TABLE t ({BARE})", "ALTER TABLE t ADD c CHAR(36) DEFAULT (UUID())")
    followed.run("ALTER TABLE t ADD n INT AUTO_INCREMENT PRIMARY KEY")
    assert followed.unlike == ()


def test_each_microsecond_of_now_arrives(followed: Followed) -> None:
    followed.run(f"CREATE TABLE t ({KEYED})")
    for connection in (followed.source, followed.target):
        rows(connection, f"INSERT INTO {followed.schema}.t (id) VALUES (1)")
    for number, fraction in enumerate(("000001", "123457", "219999", "333333", "500000", "777781", "999999")):
        rows(followed.source, f"SET timestamp = 1799999999.{fraction}4")
        followed.run(f"ALTER TABLE t ADD c{number} DATETIME(6) DEFAULT NOW(6)")
    ours, theirs = (rows(one, f"SELECT * FROM {followed.schema}.t") for one in (followed.source, followed.target))
    assert str(ours) == str(theirs)


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
