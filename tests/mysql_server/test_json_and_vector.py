"""JSON and VECTOR: the binlog's bytes, the dump and the server's own answer say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unshard.binlog.headers import read_format
from unshard.binlog.json_diff import apply_diffs
from unshard.binlog.rows import decode_range
from unshard.dump.read import read_rows
from unshard.errors import Where
from unshard.model.change import Op
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.sync.batch.plan import BatchShape, TablePlan
from unshard.sync.changes.encode import encode
from unshard.sync.changes.merge import merge
from unshard.sync.planning.target_plan import plan_target
from unshard.testing.mysql_server import MysqlServer, OtherMariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server

VECTOR = "x'0000803F0000004000004040'"

# What no JSON text can say: values of SQL types, and what the server makes of its own functions.
MADE_BY_SQL = (
    "CAST(CAST(-1.50 AS DECIMAL(10,2)) AS JSON)",
    "JSON_ARRAY(CAST(0 AS DECIMAL(3,3)), CAST(-0.5 AS DECIMAL(5,1)), CAST(REPEAT('9', 65) AS DECIMAL(65,0)))",
    "JSON_ARRAY(CAST(12345678901234567890.123 AS DECIMAL(65,30)))",
    "JSON_ARRAY(DATE'2024-02-29', CAST('-838:59:59' AS TIME(6)), CAST('-00:00:00.000001' AS TIME(6)))",
    "JSON_ARRAY(TIMESTAMP'2024-02-29 12:34:56.5', CAST('9999-12-31 23:59:59.999999' AS DATETIME(6)), MAKETIME(9,2,3))",
    "JSON_ARRAY(CAST('2024' AS YEAR), CAST(18446744073709551615 AS UNSIGNED), 1.5e0, TRUE, NULL)",
    "CAST(x'00FF' AS JSON)",
    "CAST(b'101' AS JSON)",
    "JSON_OBJECT('point', ST_GeomFromText('POINT(1 2)'))",
    *(f"JSON_ARRAY(REPEAT(x'FE', {length}))" for length in (0, 1, 2, 3, 56, 57, 58, 114, 115, 20000)),
    "(SELECT JSON_OBJECT('bits', bits, 'bytes', bytes, 'kind', kind, 'flags', flags, 'f', f, 'fixed', fixed) FROM src)",
    "(SELECT JSON_ARRAY(moment, stamp, made, latin) FROM src)",
)
LARGE = (
    json.dumps([n / 7 for n in range(20_000)]),
    json.dumps({str(n): n for n in range(9_000)}),
    json.dumps(["z" * 70_000, 1, -70_000, 70_000, 2**31, 3_000_000_000, 2**64 - 1, {"k": None}]),
    json.dumps({"a" * 65_535: 1}),
    json.dumps({"k": ["q" * 65_500, {"w": [1, 2, {"e": 1.5}]}]}),
    "[" * 100 + "]" * 100,
    '{"a":' * 99 + "[]" + "}" * 99,
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["y" * 127, "y" * 128, "y" * 16384]
)
NUMBERS = (
    st.integers(-(2**63), 2**64 - 1) | st.integers(-70_000, 70_000) | st.floats(allow_nan=False, allow_infinity=False)
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def mysql(mysql_source: MysqlServer) -> Iterator[Any]:
    connection = mysql_source.connection()
    with connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE documents")
        cursor.execute("USE documents")
        cursor.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, doc JSON)")
        cursor.execute(
            "CREATE TABLE src (bits BIT(9), bytes BLOB, kind ENUM('a','b'), flags SET('x','y'), f FLOAT,"
            " fixed BINARY(3), moment DATETIME(1), stamp TIMESTAMP(2) NULL, made YEAR,"
            " latin VARCHAR(5) CHARACTER SET latin1)"
        )
        cursor.execute(
            "INSERT INTO src VALUES (257, x'00FF01', 'b', 'x,y', 1.1, x'0102', '2024-02-03 04:05:06.7',"
            " '2024-01-02 03:04:05.67', 2024, _utf8mb4'é')"
        )
    yield connection
    connection.close()


def place(server: ThrowawayServer) -> tuple[str, int]:
    ((file, position, *_),) = server.query(server.position_query)
    return str(file), int(position)


def images(server: ThrowawayServer, table: Table, begin: tuple[str, int]) -> pa.RecordBatch:
    """The rows of the table that were logged since."""
    file, start = begin
    data = (server.data / file).read_bytes()
    decoded = decode_range(
        data,
        start,
        place(server)[1],
        checksum=read_format(data).checksum,
        wanted=lambda table_map, offset: table if table_map.name == table.name else None,
        where=Where(file=file),
    )
    ((_, batch),) = decoded
    batch.validate(full=True)
    return batch


def structure(server: ThrowawayServer, schema: str, name: str = "t") -> Table:
    connection = server.connection()
    table = read_table(connection, TableName(schema, name))
    connection.close()
    assert table is not None
    return table


def logged_and_told(
    server: MysqlServer, mysql: Any, values: list[str], arguments: list[str]
) -> tuple[list[Any], list[Any]]:
    """What the binlog says of new documents, and what the server does."""
    begin = place(server)
    with mysql.cursor() as cursor:
        cursor.execute("DELETE FROM t")
        cursor.execute(f"INSERT INTO t (doc) VALUES {','.join(f'({value})' for value in values)}", arguments or None)
        cursor.execute("SELECT id, doc FROM t ORDER BY id")
        told = [doc for _, doc in cursor.fetchall()]
    batch = images(server, structure(server, "documents"), begin)
    inserted = batch.filter(pa.compute.equal(batch.column(0), int(Op.INSERT)))
    return inserted.column(3).to_pylist(), told


@settings(max_examples=40, deadline=None)
@given(st.lists(DOCUMENTS, min_size=1, max_size=30))
@example([0.1, -0.0, 1e15, 1e14, 123456789012345.6, 1e-15, 1.5e-16, 5e-324, 1.7976931348623157e308, 1e22, 2.0**63])
def test_drawn_documents(mysql_source: MysqlServer, mysql: Any, documents: list[Any]) -> None:
    texts = [json.dumps(document) for document in documents]
    logged, told = logged_and_told(mysql_source, mysql, ["%s"] * len(texts), texts)
    assert logged == told


def test_values_that_only_sql_makes(mysql_source: MysqlServer, mysql: Any) -> None:
    logged, told = logged_and_told(mysql_source, mysql, list(MADE_BY_SQL), [])
    assert logged == told
    assert len(told) == len(MADE_BY_SQL)


def test_large_and_deep_documents(mysql_source: MysqlServer, mysql: Any) -> None:
    logged, told = logged_and_told(mysql_source, mysql, ["%s"] * len(LARGE), list(LARGE))
    assert logged == told


def test_documents_changed_in_place(mysql_source: MysqlServer, mysql: Any) -> None:
    """The server leaves holes in a document that it changes in place."""
    logged_and_told(mysql_source, mysql, ["""'{"a": [1, "long text", 3], "b": {"c": 2.5}}'""", "'[1, [2, 3], 4]'"], [])
    begin = place(mysql_source)
    with mysql.cursor() as cursor:
        cursor.execute("UPDATE t SET doc = JSON_REPLACE(doc, '$.a[1]', 'x', '$[1]', 'y')")
        cursor.execute("UPDATE t SET doc = JSON_REMOVE(doc, '$.a[0]', '$[2]')")
        cursor.execute("SELECT doc FROM t ORDER BY id")
        told = [doc for (doc,) in cursor.fetchall()]
    batch = images(mysql_source, structure(mysql_source, "documents"), begin)
    after = batch.filter(pa.compute.equal(batch.column(0), int(Op.UPDATE_AFTER)))
    assert after.column(3).to_pylist()[-2:] == told


def test_a_refused_null_is_an_empty_document(mysql_source: MysqlServer, schema: str) -> None:
    mysql_source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (doc JSON NOT NULL)")
    begin = place(mysql_source)
    mysql_source.run(f"INSERT IGNORE INTO {schema}.t VALUES (NULL), ('1')")
    batch = images(mysql_source, structure(mysql_source, schema), begin)
    assert batch.column(2).to_pylist() == ["null", "1"]
    assert mysql_source.query(f"SELECT doc FROM {schema}.t") == [("null",), ("1",)]


@pytest.mark.parametrize("server", ["mysql_source", "other_mariadb"])
def test_vectors(server: str, schema: str, request: pytest.FixtureRequest) -> None:
    found: MysqlServer | OtherMariadbServer = request.getfixturevalue(server)
    found.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (v VECTOR(3), w VECTOR(100))")
    begin = place(found)
    found.run(f"INSERT INTO {schema}.t VALUES ({VECTOR}, NULL), (NULL, REPEAT(x'0000803F', 100))")
    table = structure(found, schema)
    expected = [bytes.fromhex(VECTOR[2:-1]), None], [None, bytes.fromhex("0000803F") * 100]
    batch = images(found, table, begin)
    assert batch.schema.field("v").type == pa.binary()
    assert tuple(column.to_pylist() for column in batch.columns[2:]) == expected
    connection = found.connection()
    (dumped,) = read_rows(connection, table)
    connection.close()
    assert dumped == batch.select([2, 3])


@pytest.mark.parametrize("server", ["mysql_source", "other_mariadb"])
def test_rows_without_a_key_are_found(server: str, schema: str, request: pytest.FixtureRequest) -> None:
    """Every change is carried out a second time, on a copy of the table that has what was there before it."""
    found: MysqlServer | OtherMariadbServer = request.getfixturevalue(server)
    found.run(
        f"CREATE DATABASE {schema}",
        f"USE {schema}",
        "CREATE TABLE t (doc JSON, v VECTOR(3))",
        """INSERT INTO t VALUES ('{"b": 1.50, "a": "é"}', """ + VECTOR + """), ('[1]', NULL), ('[1.0]', NULL)""",
        f"INSERT INTO t VALUES (NULL, {VECTOR}), ('[1]', {VECTOR})",
        "CREATE TABLE copy LIKE t",
        "INSERT INTO copy SELECT * FROM t",
    )
    begin = place(found)
    found.run(f"UPDATE {schema}.t SET doc = '[2]' WHERE doc LIKE '%%1.0%%' OR doc IS NULL", f"USE {schema}")
    found.run(f"DELETE FROM {schema}.t WHERE doc NOT LIKE '%%2%%'")
    upstream, target = structure(found, schema), structure(found, schema, "copy")
    plan = TablePlan(upstream, plan_target(upstream, target, Where()))
    changes, _ = encode(plan, images(found, upstream, begin), 1, None)
    for chunk in merge(pa.Table.from_batches([changes]), {0: plan.target}, BatchShape(1, 100)):
        for statement in chunk.statements:
            connection = found.connection(schema)
            with connection.cursor() as cursor:
                assert cursor.execute(statement.sql) == statement.rows
            connection.close()
    rows = "SELECT CAST(doc AS CHAR), HEX(v) FROM {}.{} ORDER BY 1, 2"
    assert found.query(rows.format(schema, "copy")) == found.query(rows.format(schema, "t"))


def test_diffs_make_the_document_that_the_server_made(mysql_source: MysqlServer, schema: str) -> None:
    before = '{"a": [1, 2.50, "x\\n"], "é": 0, "b c": {"k": 1}}'
    changes = (
        "JSON_SET(doc, '$.a[last]', 'y', '$.zz', CAST(1.50 AS DECIMAL(5,2)), '$.\"b c\".k', NULL)",
        "JSON_SET(doc, '$.\"\\\\u00e9\"', 5, '$.\"new é key\"', DATE'2024-01-01', '$.z', JSON_ARRAY(1, x'FF'))",
        "JSON_REMOVE(doc, '$.a[last-1]')",
        "JSON_REPLACE(JSON_REMOVE(doc, '$.zz'), '$.a[0]', 'text')",
    )
    connection = mysql_source.connection()
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {schema}")
        cursor.execute(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, doc JSON, padding JSON)")
        cursor.execute("SET binlog_row_value_options = PARTIAL_JSON, binlog_row_image = MINIMAL")
        cursor.execute(f"INSERT INTO {schema}.t VALUES (1, %s, NULL)", (before,))
        for change in changes:
            cursor.execute(f"SELECT doc FROM {schema}.t")
            binary = stored(mysql_source, schema)
            begin = place(mysql_source)
            cursor.execute(f"UPDATE {schema}.t SET doc = {change}")
            cursor.execute(f"SELECT doc FROM {schema}.t")
            ((told,),) = cursor.fetchall()
            assert apply_diffs(binary, logged_diffs(mysql_source, begin)) == told
    connection.close()


def stored(server: MysqlServer, schema: str) -> bytes:
    """The binary document of the table's one row, out of a full image of it."""
    begin = place(server)
    server.run(f"CREATE TABLE {schema}.copy (doc JSON)", f"INSERT INTO {schema}.copy SELECT doc FROM {schema}.t")
    body = event(server, begin, 30)
    server.run(f"DROP TABLE {schema}.copy")
    # table id 6, flags 2, extra 2, count 1, present 1, NULLs 1, length 4
    return body[17:]


def logged_diffs(server: MysqlServer, begin: tuple[str, int]) -> bytes:
    """The diffs of a PARTIAL_UPDATE_ROWS event of one row: after the key, value options 1, partial bits 1, NULLs 1."""
    body = event(server, begin, 39)
    at = 13 + 1 + 4 + 1 + 1 + 1
    assert int.from_bytes(body[at : at + 4], "little") == len(body) - at - 4
    return body[at + 4 :]


def event(server: MysqlServer, begin: tuple[str, int], code: int) -> bytes:
    """The body of the first event of that code behind a place."""
    file, at = begin
    data = (server.data / file).read_bytes()
    while data[at + 4] != code:
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    return data[at + 19 : at + int.from_bytes(data[at + 9 : at + 13], "little") - 4]
