"""A column of a source that loses digits of a second: the old rows on the target get the source's values."""

from __future__ import annotations

from contextlib import closing

from support.followed_ddl import Followed
from unshard.mysql.connection import rows
from unshard.testing.throwaway_server import ThrowawayServer

COLUMNS = "id INT PRIMARY KEY, a DATETIME(6), b TIMESTAMP(6) NULL, c TIME(3), v VARCHAR(30)"
FILL = (
    "INSERT INTO {table} VALUES "
    "(1, '2024-01-01 12:00:00.4', '2024-01-01 12:00:00.4', '10:00:00.4', '2024-01-01 1:0:0.4'),"
    " (2, '2024-01-01 12:00:00.7', '2024-01-01 12:00:00.7', '10:00:00.7', '2024-01-01 1:0:0.7')"
)
PLAIN = "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
NARROWED = (
    "ALTER TABLE t MODIFY a DATETIME, CHANGE COLUMN b bb TIMESTAMP(0) NULL, MODIFY COLUMN c TIME, MODIFY v DATETIME"
)


def filled(followed: Followed, mode: str = "") -> Followed:
    """Table t on both ends, with rows; the source's session has the mode."""
    rows(followed.source, f"SET sql_mode = '{mode}'")
    followed.run(f"CREATE TABLE t ({COLUMNS})")
    for connection in (followed.source, followed.target):
        rows(connection, FILL.format(table=f"{followed.schema}.t"))
    return followed


def assert_narrowed(source: ThrowawayServer, target: ThrowawayServer, schema: str, mode: str, second: int) -> None:
    """`second` is that of the row with .7 of a second: 0 where the source cuts, 1 where it rounds."""
    with closing(filled(Followed(source, target, schema, PLAIN), mode)) as followed:
        followed.run(NARROWED)
        sql = f"SELECT * FROM {schema}.t ORDER BY id"
        there = rows(followed.target, sql)
        assert there == rows(followed.source, sql)
        assert there[1][1].second == second
