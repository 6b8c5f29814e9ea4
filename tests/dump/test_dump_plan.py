"""Key ranges cover every row once; shares are fair."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.dump_units import dump_of, values_of
from unshard.dump import plan
from unshard.dump.metadata import read_dump
from unshard.dump.plan import Listed, TableChunk, resolve, shares, snapshot_groups, split
from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.connection import session
from unshard.mysql.structure import read_table
from unshard.testing.mariadb_server import MariadbServer

KEYS = {
    "int": ("id INT PRIMARY KEY", "seq"),
    "negative": ("id BIGINT PRIMARY KEY", "CAST(seq AS SIGNED) - 500"),
    "unsigned": ("id BIGINT UNSIGNED PRIMARY KEY", "18446744073709551615 - seq"),
    "sparse": ("id INT PRIMARY KEY", "seq * seq"),
    "text": ("id VARCHAR(40) COLLATE utf8mb4_general_ci PRIMARY KEY", "CONCAT('k''\\\\', MD5(seq))"),
    "binary": ("id VARBINARY(16) PRIMARY KEY", "UNHEX(MD5(seq))"),
    "date": ("id DATETIME PRIMARY KEY", "'2020-01-01' + INTERVAL seq HOUR"),
    "decimal": ("id DECIMAL(20,5) PRIMARY KEY", "seq / 7"),
    "unique": ("id INT NOT NULL UNIQUE", "seq"),
    "composite": ("a INT NOT NULL, id VARCHAR(9) NOT NULL, PRIMARY KEY (a, id)", "seq % 3, CONCAT('x', seq)"),
    "enum-first": ("a ENUM('z','a') NOT NULL, id INT NOT NULL, PRIMARY KEY (a, id)", "1 + seq % 2, seq"),
    "none": ("id INT", "seq"),
}
UNCUT = {"enum-first", "none"}
QUOTES = ("id VARCHAR(40) COLLATE utf8mb4_general_ci PRIMARY KEY", "CONCAT('k''', CHAR(92), MD5(seq))")


@pytest.mark.server
@pytest.mark.parametrize("kind", KEYS)
def test_ranges_cover_every_row_once(kind: str, source_server: MariadbServer, schema: str) -> None:
    columns, values = KEYS[kind]
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t ({columns})",
        f"INSERT INTO {schema}.t SELECT {values} FROM seq_1_to_1000",
        database="mysql",
    )
    name = TableName(schema, "t")
    with session(source_server.endpoint, "source") as connection:
        table = read_table(connection, name)
        assert table is not None
        chunks = split(connection, Listed(name, True, 1000, 0), table, 150)
    counts = [
        source_server.query(f"SELECT COUNT(*) FROM {schema}.t WHERE {chunk.condition or 'TRUE'}")[0][0]
        for chunk in chunks
    ]
    assert sum(counts) == 1000
    assert len(chunks) == (1 if kind in UNCUT else 7)
    either = " OR ".join(f"({chunk.condition or 'TRUE'})" for chunk in chunks)
    assert source_server.query(f"SELECT COUNT(*) FROM {schema}.t WHERE {either}") == [(1000,)]


@pytest.mark.server
def test_a_dump_from_a_server_whose_backslashes_escape_nothing(schema: str, tmp_path: Path) -> None:
    """Each bound has a quote and a backslash."""
    columns, values = QUOTES
    with MariadbServer({"sql_mode": "NO_BACKSLASH_ESCAPES"}) as server:
        server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t ({columns})",
            f"INSERT INTO {schema}.t SELECT {values} FROM seq_1_to_1000",
            f"ANALYZE TABLE {schema}.t PERSISTENT FOR ALL",
            database="mysql",
        )
        dump_of(server, tmp_path, schema, consistency="flush", rows=150).run()
        (record,) = read_dump(tmp_path / "dump").records.values()
        assert len(record.files) >= 7
        expected = sorted(row[0] for row in server.query(f"SELECT id FROM {schema}.t"))
        assert sorted(values_of(tmp_path / "dump", record)) == expected


def test_a_small_table_is_one_chunk() -> None:
    name = TableName("s", "t")
    assert split(None, Listed(name, True, 10, 0), Table(name, ()), 100) == [TableChunk(name, 0)]


def test_shares_are_fair_and_never_empty() -> None:
    weights = {"a": 9, "b": 1, "c": 5, "d": 4}
    dealt = shares(list(weights), list(weights.values()), 2)
    assert sorted(sum(weights[item] for item in share) for share in dealt) == [9, 10]
    assert sorted(item for share in dealt for item in share) == ["a", "b", "c", "d"]
    assert len(shares(["a"], [1], 8)) == 1
    assert shares([], [], 4) == []


NAMES = [TableName("s", f"t{number:03}") for number in range(300)]


@pytest.mark.parametrize(("count", "most"), [(0, 0), (1, 1), (15, 1), (16, 2), (80, 10), (300, 32)])
def test_small_tables_have_a_snapshot_together(count: int, most: int) -> None:
    groups = snapshot_groups(NAMES[:count], dict.fromkeys(NAMES, 16 << 10))
    assert [name for group in groups for name in group] == NAMES[:count]
    assert max(map(len, groups), default=0) == most
    assert len(groups) >= min(count, 8)


def test_a_group_is_small() -> None:
    sizes = {NAMES[0]: 3 << 20, NAMES[1]: 1 << 20, NAMES[2]: 1, NAMES[3]: 5 << 20, NAMES[4]: 5 << 20}
    first, second, third, fourth, fifth, *_ = snapshot_groups(NAMES, sizes)
    assert (first, second) == (tuple(NAMES[:2]), (NAMES[2],))
    assert (third, fourth) == ((NAMES[3],), (NAMES[4],))
    assert fifth == tuple(NAMES[5:37])


@pytest.mark.parametrize(
    ("mariadb", "transactional", "resolved"),
    [(True, True, "lock-free"), (True, False, "flush"), (False, True, "flush")],
)
def test_auto_needs_no_lock_where_every_table_has_a_snapshot(mariadb: bool, transactional: bool, resolved: str) -> None:
    tables = [Listed(TableName("s", "a"), True, 0, 0), Listed(TableName("s", "b"), transactional, 0, 0)]
    assert resolve("auto", tables, tells_positions=mariadb) == resolved
    assert resolve("none", tables, tells_positions=mariadb) == "none"


@pytest.mark.parametrize(("flushes", "resolved"), [(True, "flush"), (False, "lock-free")])
def test_a_copy_that_is_not_followed_is_under_a_lock_where_it_may_take_one(flushes: bool, resolved: str) -> None:
    tables = [Listed(TableName("s", "a"), True, 0, 0)]
    assert resolve("auto", tables, tells_positions=True, follows=False, flushes=flushes) == resolved


@pytest.mark.parametrize("estimate", [1_000_000, 600_000])
def test_a_table_with_more_ranges_than_are_walked_has_wider_ones(
    estimate: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the last range would have all rows that are left. The estimate may be too low."""
    total, most = 1_000_000, 100
    columns = tuple(Column(name, "int", "int", nullable=False) for name in ("a", "b"))
    table = Table(TableName("s", "t"), columns, (Index("PRIMARY", ("a", "b"), (0, 0), True),))
    steps: list[int] = []
    done = 0

    def walked(connection: object, statement: str) -> list[tuple[object, ...]]:
        nonlocal done
        steps.append(int(statement.rpartition(" LIMIT ")[2].removesuffix(", 1")) + 1)
        done += steps[-1]
        return [(str(done), "0")] if done <= total else []

    monkeypatch.setattr(plan, "rows", walked)
    monkeypatch.setattr(plan, "_MOST_CHUNKS", most)
    chunks = split(None, Listed(table.name, True, estimate, 0), table, 1_000)
    last = total - sum(steps[: len(chunks) - 1])
    assert max([*steps, last]) <= 2 * total // most
    assert len(chunks) <= most
