"""Values in MySQL's JSON that JSON text has no words for, on their way from the log into any target."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from support.advice_walks import Walk
from unshard.testing.throwaway_server import ThrowawayServer

VALUES = {
    "a DECIMAL": "CAST(1.10 AS DECIMAL(5, 2))",
    "a date": "DATE'2024-02-29'",
    "a time": "CAST('12:34:56.5' AS TIME(1))",
    "binary data": "x'00FF'",
}
CONVERT = "json-values: convert"


def stopped(
    source: ThrowawayServer, target: ThrowawayServer, schema: str, spark: SparkSession, folder: Path
) -> tuple[Walk, str]:
    """A task that has stopped at rows of a table that came while it ran, and the table's name."""
    walk = Walk.begin(source, target, schema, spark, folder)
    walk.followed()
    rows = [f"({number}, JSON_OBJECT('v', {value}))" for number, value in enumerate(VALUES.values(), 10)]
    table = f"{schema}.docs"
    source.run(
        f"CREATE TABLE {table} (id INT PRIMARY KEY, doc JSON)",
        f"""INSERT INTO {table} VALUES (1, '{{"v": 1.10}}'), (2, NULL)""",
        "BEGIN",
        f"INSERT INTO {walk.name} VALUES (3, 'c')",
        f"INSERT INTO {table} VALUES {', '.join(rows)}",
        "COMMIT",
    )
    error = walk.failed()
    assert error.code == "SYNC-078", error
    assert (error.where.source, error.where.table) == ("s1", table)
    assert error.where.position == row_event(source, table)
    for words in ("column doc", "a DECIMAL, a date or time, or binary data", CONVERT, "MODIFY doc LONGTEXT"):
        assert words in str(error)
    assert target.query(f"SELECT COUNT(*) FROM {table} WHERE id > 9") == [(0,)]
    assert target.query(f"SELECT COUNT(*) FROM {walk.name} WHERE id = 3") == [(0,)]
    return walk, table


def row_event(server: ThrowawayServer, table: str) -> str:
    """The position of the row event that holds the last rows of the table."""
    ((file, *_),) = server.query(server.position_query)
    events = server.query(f"SHOW BINLOG EVENTS IN '{file}'")
    places = [position for _, position, kind, *_ in events if kind == "Write_rows"]
    return f"{file}:{places[-1]}"


def go_on_with_conversion(
    source: ThrowawayServer, target: ThrowawayServer, schema: str, spark: SparkSession, folder: Path
) -> None:
    """Follow the first part of the advice: the values are stored as DOUBLE and strings."""
    walk, table = stopped(source, target, schema, spark, folder)
    key, value = CONVERT.split(": ")
    walk.change(keys={key: value})
    walk.ends_equal()
    kinds = target.query(f"SELECT JSON_TYPE(JSON_EXTRACT(doc, '$.v')) FROM {table} WHERE id > 9 ORDER BY id")
    assert kinds == [("DOUBLE",), ("STRING",), ("STRING",), ("STRING",)]
    assert target.query(f"SELECT COUNT(*) FROM {table}") == [(2 + len(VALUES),)]


def go_on_with_text(
    source: ThrowawayServer, target: ThrowawayServer, schema: str, spark: SparkSession, folder: Path
) -> None:
    """Follow the second part of the advice: the target keeps the text that MySQL prints."""
    walk, table = stopped(source, target, schema, spark, folder)
    target.run(f"ALTER TABLE {table} MODIFY doc LONGTEXT")
    walk.ends_equal()
    query = f"SELECT id, CAST(doc AS CHAR) FROM {table} ORDER BY id"
    assert target.query(query) == source.query(query)
