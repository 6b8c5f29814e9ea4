"""System-versioned tables: what their images say of current rows, and that a target gets just those."""

from __future__ import annotations

import pyarrow as pa
import pytest

from support.both_paths import by_dump, create_copies, write
from unshard.binlog.rows import decode_range
from unshard.errors import Where
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Table, TableName
from unshard.mysql.structure import read_table
from unshard.sync.changes.decode import FOREVER, current_rows
from unshard.testing.mariadb_server import MariadbServer

VERSIONED = Table(TableName("s", "t"), (Column("id", "int", "int(11)"), Column("e", "timestamp", "", period="end")))
NOW, PAST = FOREVER[0], "2024-01-01 00:00:00.000000"


def images(*rows: tuple[Op, int, int, str]) -> pa.RecordBatch:
    types = [*(field.type for field in IMAGE_FIELDS), pa.int64(), pa.string()]
    arrays = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["op", "seq", "id", "e"])


def kept(*rows: tuple[Op, int, int, str]) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in current_rows(VERSIONED, images(*rows)).to_pylist()]


def test_each_kind_of_change() -> None:
    found = kept(
        (Op.INSERT, 0, 1, NOW),
        (Op.UPDATE_BEFORE, 1, 1, NOW),
        (Op.UPDATE_AFTER, 1, 2, NOW),
        (Op.INSERT, 2, 1, PAST),
        (Op.UPDATE_BEFORE, 3, 2, NOW),
        (Op.UPDATE_AFTER, 3, 2, PAST),
        (Op.DELETE, 4, 2, PAST),
        (Op.UPDATE_BEFORE, 5, 7, PAST),
        (Op.UPDATE_AFTER, 5, 8, PAST),
        (Op.UPDATE_BEFORE, 6, 7, PAST),
        (Op.UPDATE_AFTER, 6, 8, FOREVER[1]),
        (Op.DELETE, 7, 8, FOREVER[1]),
    )
    assert found == [
        (Op.INSERT, 0, 1, NOW),
        (Op.UPDATE_BEFORE, 1, 1, NOW),
        (Op.UPDATE_AFTER, 1, 2, NOW),
        (Op.DELETE, 3, 2, NOW),
        (Op.INSERT, 6, 8, FOREVER[1]),
        (Op.DELETE, 7, 8, FOREVER[1]),
    ]


def test_a_table_without_versions_is_left_alone() -> None:
    batch = images((Op.INSERT, 0, 1, PAST))
    assert current_rows(Table(TableName("s", "t"), (Column("id", "int", ""), Column("e", "", ""))), batch) is batch


IMPLICIT = "id int PRIMARY KEY, a varchar(9)"
PERIOD = (
    "id int PRIMARY KEY, a varchar(9), s timestamp(6) GENERATED ALWAYS AS ROW START,"
    " `e ``x` timestamp(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME(s, `e ``x`)"
)
CHANGES = [
    "INSERT INTO t (id, a) VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
    "UPDATE t SET a = 'A' WHERE id = 1",
    "DELETE FROM t WHERE id = 2",
    "INSERT INTO t (id, a) VALUES (2, 'back')",
    "REPLACE INTO t (id, a) VALUES (3, 'C')",
    "INSERT INTO t (id, a) VALUES (4, '') ON DUPLICATE KEY UPDATE a = 'D'",
    "UPDATE t SET id = 9 WHERE id = 1",
    "DELETE HISTORY FROM t",
    "DELETE FROM t WHERE id = 4",
]


@pytest.mark.parametrize("plain_target", [False, True])
@pytest.mark.parametrize(
    ("columns", "key"),
    [
        (IMPLICIT, ("id",)),
        (IMPLICIT + ", b int DEFAULT 5 WITHOUT SYSTEM VERSIONING", ("id",)),
        (PERIOD, ("id",)),
        ("id int, a varchar(9), UNIQUE (id)", ()),
    ],
)
def test_current_rows_arrive(
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    columns: str,
    key: tuple[str, ...],
    plain_target: bool,
) -> None:
    create = f"CREATE TABLE t ({columns}) WITH SYSTEM VERSIONING COMMENT 'it''s one'"
    connection = source_server.connection()
    with connection.cursor() as cursor:
        for statement in (f"CREATE DATABASE {schema}", f"USE {schema}", create):
            cursor.execute(statement)
        cursor.execute("SHOW MASTER STATUS")
        file, start, *_ = cursor.fetchone()
        for statement in CHANGES:
            cursor.execute(statement)
        cursor.execute("SHOW MASTER STATUS")
        end = cursor.fetchone()[1]
    table = read_table(connection, TableName(schema, "t"))
    connection.close()
    assert table is not None
    assert table.identity == key
    data = (source_server.data / file).read_bytes()
    ((_, batch),) = decode_range(data, start, end, checksum=True, wanted=lambda _, __: table, where=Where())
    if plain_target:
        target_server.run(f"CREATE DATABASE {schema}")
        target_server.run(f"CREATE TABLE {schema}.t (id int PRIMARY KEY, a varchar(9), b int DEFAULT 5)")
    else:
        create_copies(target_server, schema, [table])
    write(target_server, [(table, current_rows(table, batch))])
    names = [column.name for column in table.columns if not column.generated]
    ours, theirs = (by_dump(server, [table])[table.name] for server in (source_server, target_server))
    assert theirs.select(names).sort_by("id").to_pylist() == ours.sort_by("id").to_pylist()
    assert sorted(ours.column("id").to_pylist()) == [2, 3, 9]
    for server in (source_server, target_server):
        server.run(f"DROP DATABASE {schema}")


def test_the_text_of_a_comment_makes_no_versions(source_server: MariadbServer, schema: str) -> None:
    source_server.run(f"CREATE DATABASE {schema}")
    source_server.run(f"CREATE TABLE {schema}.t (id int) COMMENT ' WITH SYSTEM VERSIONING'")
    connection = source_server.connection()
    table = read_table(connection, TableName(schema, "t"))
    connection.close()
    assert table is not None
    assert [column.name for column in table.columns] == ["id"]
    assert table.row_end is None
    source_server.run(f"DROP DATABASE {schema}")
