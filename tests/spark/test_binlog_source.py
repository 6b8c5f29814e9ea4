"""The Spark data source on a real server's binlog files: typed rows, rows of all tables, streams, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from unshard.spark.binlog import BinlogDataSource
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

CREATE = (
    "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, price DECIMAL(10,2), name VARCHAR(20) CHARACTER SET latin1,"
    " at DATETIME, raw VARBINARY(9))"
)


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    with MariadbServer({"binlog_row_metadata": "FULL"}) as server:
        yield server


@pytest.fixture
def changed(server: MariadbServer, schema: str) -> tuple[MariadbServer, str, str]:
    """A schema with two tables and some changes; the file and position where they begin."""
    server.run("FLUSH BINARY LOGS", f"CREATE DATABASE {schema}")
    server.run(CREATE, "CREATE TABLE u (a INT, b INT)", database=schema)
    server.run(
        "INSERT INTO t VALUES (18446744073709551615, 1.5, 'é', '0000-00-00', x'00ff'), (2, NULL, NULL, NULL, '')",
        "INSERT INTO u VALUES (1, -2)",
        "UPDATE t SET price = 2.25 WHERE id = 2",
        "DELETE FROM t WHERE id = 18446744073709551615",
        database=schema,
    )
    return server, schema, server.binlog_files()[-1].name


@pytest.fixture
def binlog(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(BinlogDataSource)
    return spark


def ordered(frame: DataFrame) -> list[tuple[object, ...]]:
    return [tuple(row) for row in frame.orderBy("_file", "_offset", "_seq", "_change_type").collect()]


def test_one_table_with_its_columns(binlog: SparkSession, changed: tuple[MariadbServer, str, str]) -> None:
    server, schema, file = changed
    frame = binlog.read.format("binlog").option("path", str(server.data)).option("table", f"{schema}.t").load()
    assert frame.schema.simpleString() == (
        "struct<_change_type:string,_file:string,_offset:bigint,_seq:bigint,_timestamp:timestamp,"
        "_absent:array<string>,id:decimal(20,0),price:decimal(10,2),name:string,at:string,raw:binary>"
    )
    assert {row._file for row in frame.collect()} == {file}
    found = ordered(frame)
    assert [(row[0], *row[6:]) for row in found] == [
        ("insert", Decimal(2**64 - 1), Decimal("1.50"), "é", "0000-00-00 00:00:00", b"\x00\xff"),
        ("insert", Decimal(2), None, None, None, b""),
        ("update_postimage", Decimal(2), Decimal("2.25"), None, None, b""),
        ("update_preimage", Decimal(2), None, None, None, b""),
        ("delete", Decimal(2**64 - 1), Decimal("1.50"), "é", "0000-00-00 00:00:00", b"\x00\xff"),
    ]
    now = server.query("SELECT UNIX_TIMESTAMP()")[0][0]
    assert all(0 <= now - row[4].timestamp() < 600 for row in found)  # type: ignore[attr-defined]


@pytest.mark.scenarios
def test_all_tables_as_texts(binlog: SparkSession, changed: tuple[MariadbServer, str, str]) -> None:
    server, schema, file = changed
    frame = binlog.read.format("binlog").option("path", str(server.data / file)).load()
    rows = frame.where(f"_schema = '{schema}'").orderBy("_offset", "_seq").collect()
    assert [(row._table, row._change_type, row.row) for row in rows[:3]] == [
        (
            "t",
            "insert",
            {"id": "18446744073709551615", "price": "1.50", "name": "é", "at": "0000-00-00 00:00:00", "raw": "x'00ff'"},
        ),
        ("t", "insert", {"id": "2", "price": None, "name": None, "at": None, "raw": "x''"}),
        ("u", "insert", {"a": "1", "b": "-2"}),
    ]


@pytest.mark.scenarios
def test_columns_that_were_not_logged_are_named(binlog: SparkSession, server: MariadbServer, schema: str) -> None:
    server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, a INT, b INT)")
    server.run(
        "SET binlog_row_image = MINIMAL",
        "INSERT INTO t VALUES (1, NULL, 3)",
        "UPDATE t SET b = 4",
        "DELETE FROM t",
        database=schema,
    )
    frame = binlog.read.format("binlog").option("path", str(server.data)).option("table", f"{schema}.t").load()
    columns = ("_change_type", "_absent", "id", "a", "b")
    assert {(row[0], tuple(row[1] or ()), *row[2:]) for row in frame.select(*columns).collect()} == {
        ("insert", (), 1, None, 3),
        ("update_preimage", ("a", "b"), 1, None, None),
        ("update_postimage", ("id", "a"), None, None, 4),
        ("delete", ("a", "b"), 1, None, None),
    }
    texts = binlog.read.format("binlog").option("path", str(server.data)).load().where(f"_schema = '{schema}'")
    assert {"b": "4"} in [row.row for row in texts.collect()]


def test_structures_from_a_server(binlog: SparkSession, schema: str) -> None:
    with MariadbServer() as plain:
        plain.run(f"CREATE DATABASE {schema}")
        plain.run(CREATE, "INSERT INTO t VALUES (3, 1, 'a', NULL, NULL)", database=schema)
        reader = binlog.read.format("binlog").option("path", str(plain.data)).option("table", f"{schema}.t")
        with pytest.raises(Exception, match=r"(?s)BINLOG-057.*charsets and signs"):
            reader.load()
        reader = reader.option("host", "127.0.0.1").option("port", str(plain.port)).option("user", "root")
        assert [row.id for row in reader.load().collect()] == [Decimal(3)]


@pytest.mark.scenarios
def test_a_table_that_was_altered(binlog: SparkSession, server: MariadbServer, schema: str) -> None:
    server.run("FLUSH BINARY LOGS", f"CREATE DATABASE {schema}")
    server.run("CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)", "ALTER TABLE t ADD b INT FIRST", database=schema)
    server.run("INSERT INTO t VALUES (2, 3)", database=schema)
    file = server.binlog_files()[-1]
    reader = binlog.read.format("binlog").option("path", str(file)).option("table", f"{schema}.t")
    assert [(row.b, row.id) for row in reader.load().orderBy("_offset").collect()] == [(None, 1), (2, 3)]
    server.run("ALTER TABLE t DROP b", "INSERT INTO t VALUES (4)", database=schema)
    behind = server.query("SHOW MASTER STATUS")[0][1]
    server.run("INSERT INTO t VALUES (5)", database=schema)
    with pytest.raises(Exception, match="BINLOG-056"):
        reader.load().collect()
    assert [row.id for row in reader.option("startingPosition", f"{file.name}:{behind}").load().collect()] == [5]


@pytest.mark.scenarios
def test_many_ranges_give_each_row_once(binlog: SparkSession, server: MariadbServer, schema: str) -> None:
    server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    server.run(*(f"INSERT INTO t VALUES ({number})" for number in range(200)), "FLUSH BINARY LOGS", database=schema)
    server.run(*(f"INSERT INTO t VALUES ({number})" for number in range(200, 300)), database=schema)
    reader = binlog.read.format("binlog").option("path", str(server.data)).option("rangeBytes", "4096")
    frame = reader.option("table", f"{schema}.t").load()
    assert frame.rdd.getNumPartitions() > 5
    assert sorted(row.id for row in frame.collect()) == list(range(300))


def test_a_stream_goes_on_where_its_checkpoint_stands(
    binlog: SparkSession, changed: tuple[MariadbServer, str, str], tmp_path: Path
) -> None:
    server, schema, file = changed

    def run_once() -> list[str]:
        reader = binlog.readStream.format("binlog").option("path", str(server.data)).option("table", f"{schema}.t")
        writer = reader.load().writeStream.format("json").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "out"))
        query.awaitTermination()
        return sorted(row._change_type for row in binlog.read.json(str(tmp_path / "out")).collect())

    first = ["delete", "insert", "insert", "update_postimage", "update_preimage"]
    assert run_once() == first
    server.run("FLUSH BINARY LOGS", f"INSERT INTO {schema}.t VALUES (7, 7, 'x', NULL, NULL)")
    ((newest, inserted, *_),) = server.query("SHOW MASTER STATUS")
    assert run_once() == sorted([*first, "insert"])
    offsets = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    last = json.loads(offsets[-1].read_text().splitlines()[-1])
    assert last["file"] == newest > file
    assert inserted <= last["offset"] <= server.query("SHOW MASTER STATUS")[0][1], "the server may write more by itself"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "option path is missing"),
        ({"path": "/nowhere"}, "BINLOG-055.*no such file"),
        ({"path": "/", "tabel": "a.b"}, "unknown option tabel"),
        ({"path": "/", "table": "t"}, "write schema.table"),
        ({"path": "/", "startingPosition": "4"}, "write file:offset"),
        ({"path": "/", "rangeBytes": "many"}, "write a number of bytes"),
        ({"path": "/", "user": "root"}, "without host"),
    ],
)
def test_wrong_options_are_named(binlog: SparkSession, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=f"(?s){said}"):
        binlog.read.format("binlog").options(**options).load().collect()
