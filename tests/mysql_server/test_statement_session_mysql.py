"""What MySQL takes from a session that no text says: defaults of utf8mb4, timestamps, keys that it makes up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.followed_ddl import Followed, unlike
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.testing.mysql_server import MysqlServer, OtherMariadbServer

pytestmark = pytest.mark.server

OTHER = {
    "explicit_defaults_for_timestamp": 1,
    "default_collation_for_utf8mb4": "utf8mb4_0900_ai_ci",
    "sql_generate_invisible_primary_key": 1,
}
CASES: dict[str, tuple[str, str | bytes]] = {
    "implicit timestamps": ("explicit_defaults_for_timestamp = 0", "CREATE TABLE t (a TIMESTAMP, b TIMESTAMP NULL)"),
    "older utf8mb4": (
        "default_collation_for_utf8mb4 = 'utf8mb4_general_ci'",
        "CREATE TABLE t (a TEXT CHARSET utf8mb4)",
    ),
    "no key": ("sql_generate_invisible_primary_key = 0", "CREATE TABLE t (a INT, b VECTOR(3))"),
    "key made up": ("sql_generate_invisible_primary_key = 1", "CREATE TABLE t (a INT)"),
    "key made up for rows": ("sql_generate_invisible_primary_key = 1", "CREATE TABLE t SELECT 1 AS a, 'x' AS b"),
    "ANSI_QUOTES": ("sql_mode = 'ANSI_QUOTES'", 'CREATE TABLE "t" ("a" INT DEFAULT 1, KEY (("a" + 1)))'),
    "NO_BACKSLASH_ESCAPES": ("sql_mode = 'NO_BACKSLASH_ESCAPES'", "CREATE TABLE t (a CHAR(9) DEFAULT '\\n\\')"),
    "time zone": ("time_zone = '+05:00'", "CREATE TABLE t (a TIMESTAMP DEFAULT '2020-01-01 03:00:00')"),
    "gbk literals": (
        "NAMES gbk",
        b"CREATE TABLE t (a CHAR(9) CHARACTER SET gbk DEFAULT '\x81\x5c' COMMENT '\xd6\xd0')",
    ),
}


@pytest.fixture
def followed(mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str) -> Iterator[Followed]:
    found = Followed(mysql_source, mysql_target, schema)
    unlike(found.target, OTHER)
    yield found
    found.close()


@pytest.mark.parametrize("case", CASES)
def test_the_session_of_the_event_decides(followed: Followed, case: str) -> None:
    setting, sql = CASES[case]
    rows(followed.source, f"SET {setting}")
    followed.run(sql)
    rows(followed.source, "SET sql_generate_invisible_primary_key = 0")
    followed.assert_equal()


FILLS: dict[str, tuple[str, str, bool]] = {
    "NOW(6)": ("id INT PRIMARY KEY", "ADD c DATETIME(6) DEFAULT NOW(6), ADD d TIMESTAMP(6) DEFAULT NOW(6)", False),
    "NOW(6), an expression": ("id INT PRIMARY KEY", "ADD c DATETIME(6) DEFAULT (NOW(6) + INTERVAL 1 DAY)", False),
    "CURDATE()": ("id INT PRIMARY KEY", "ADD c DATE DEFAULT (CURDATE())", False),
    "CONNECTION_ID()": ("id INT PRIMARY KEY", "ADD c INT DEFAULT (CONNECTION_ID())", True),
    "AUTO_INCREMENT by a key": ("id INT PRIMARY KEY", "ADD c INT NOT NULL AUTO_INCREMENT UNIQUE", False),
    "AUTO_INCREMENT without a key": ("id INT", "ADD c SERIAL", True),
}
UNSAFE = ("UUID()", "RAND()", "UUID_SHORT()", "RANDOM_BYTES(9)", "SYSDATE(6)", "USER()")
"""What MySQL itself refuses for a new column, for replicas would differ (1674)."""


@pytest.mark.parametrize("case", FILLS)
def test_what_old_rows_get_is_foretold(followed: Followed, case: str) -> None:
    columns, change, unlike = FILLS[case]
    rows(followed.source, "SET timestamp = 1799999999.1234574")
    followed.run(f"CREATE TABLE t ({columns})")
    rows(followed.source, "SET sql_log_bin = 0")
    for connection, order in ((followed.source, (3, 1, 2)), (followed.target, (2, 3, 1))):
        for number in order:
            rows(connection, f"INSERT INTO {followed.schema}.t (id) VALUES ({number})")
    rows(followed.source, "SET sql_log_bin = 1, pseudo_thread_id = 987654321")
    followed.run(f"ALTER TABLE t {change}")
    assert bool(followed.unlike) == unlike
    found = []
    for connection in (followed.source, followed.target):
        rows(connection, "SET time_zone = '+00:00'")
        found.append(sorted(map(str, rows(connection, f"SELECT * FROM {followed.schema}.t"))))
    assert (found[0] != found[1]) == unlike


def test_mysql_refuses_what_its_replicas_would_fill_with_other_values(followed: Followed) -> None:
    followed.run("CREATE TABLE t (id INT PRIMARY KEY)")
    for default in UNSAFE:
        assert not followed.taken(f"ALTER TABLE t ADD c VARBINARY(99) DEFAULT ({default})"), default


def test_default_collations_of_mariadb_are_taken_where_they_are_known(
    other_mariadb: OtherMariadbServer, mysql_target: MysqlServer, mysql_source: MysqlServer, schema: str
) -> None:
    """A table that says `utf8mb4` and no collation, over servers that each have another for it."""
    sql = "CREATE TABLE t (a CHAR(9) CHARACTER SET utf8mb4, b INT) CHARACTER SET latin1"
    general, newer = "utf8mb4_general_ci", "utf8mb4_0900_ai_ci"
    ways = (
        (other_mariadb, "character_set_collations = 'utf8mb4=utf8mb4_general_ci'", mysql_target, general),
        (other_mariadb, "character_set_collations = ''", mysql_target, general),
        (mysql_source, "default_collation_for_utf8mb4 = 'utf8mb4_0900_ai_ci'", other_mariadb, newer),
        (mysql_source, "default_collation_for_utf8mb4 = 'utf8mb4_general_ci'", other_mariadb, general),
    )
    for number, (source, setting, target, collation) in enumerate(ways):
        found = Followed(source, target, f"{schema}_{number}", "CHARACTER SET latin1")
        try:
            rows(found.source, f"SET {setting}")
            found.run(sql)
            table = found.tracker.get(TableName(found.schema, "t"))
            assert table is not None
            assert table.columns[0].collation == collation
        finally:
            found.close()
