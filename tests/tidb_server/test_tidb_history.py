"""The history of rows in a TiDB tells what was applied, and how often, as a binlog would."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from random import Random

import pytest

from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.target.meta import MetaTables
from unshard.target.receipts import Applied, OpenBatch, advance_statement, claim, open_batch
from unshard.testing.applied_once import not_once
from unshard.testing.binlog_count import RowEvent, row_log
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.shapes import TYPES
from unshard.testing.tidb_history import Transaction, Version, versions, walks
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

NOT_COMPARED = ("western", "state", "flags", "document")
COLUMNS = [name for name in TYPES.columns if name not in NOT_COMPARED]


@pytest.fixture
def table(tidb: TidbServer, schema: str) -> Iterator[TableName]:
    tidb.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id BIGINT PRIMARY KEY, v INT)")
    yield TableName(schema, "t")
    tidb.run(f"DROP DATABASE {schema}", f"DROP DATABASE IF EXISTS meta_{schema}")


class Task:
    """Writes rows as a task does, with the receipts of one partition."""

    def __init__(self, server: TidbServer, table: TableName) -> None:
        self.server, self.table = server, table
        self.meta = MetaTables(f"meta_{table.schema}", "task")
        self.log: list[RowEvent] = []
        self.chunk = 0
        connection = server.connection()
        self.meta.create(connection)
        self.epoch = claim(connection, self.meta, "s1").epoch
        batch = OpenBatch(1, Position("mysql-bin.000001", 4), Position("mysql-bin.000001", 9), {"kind": "rows"})
        open_batch(connection, self.meta, "s1", self.epoch, batch, 1)
        connection.close()

    def chunk_of(self, *statements: str, receipt: bool = True) -> None:
        before = Applied(self.chunk)
        self.chunk += receipt
        advance = advance_statement(self.meta, "s1", 0, self.epoch, 1, before, Applied(self.chunk))
        self.server.run(
            "BEGIN", *([advance] if receipt else []), *(s.format(self.table.quoted) for s in statements), "COMMIT"
        )

    def upstream(self, *values: int | None, row: int = 1) -> None:
        """What a row became upstream, change by change; None for a DELETE."""
        for value in values:
            after = () if value is None else (str(row), str(value))
            self.log.append(RowEvent(self.table, "UPDATE" if after else "DELETE", (str(row), "0"), after))

    def against(self) -> list[str]:
        return not_once(self.log, self.server, [self.table])


@pytest.fixture
def task(tidb: TidbServer, table: TableName) -> Task:
    return Task(tidb, table)


def test_values_are_those_of_a_binlog(source_server: MariadbServer, tidb: TidbServer, table: TableName) -> None:
    source_server.run(f"CREATE DATABASE {table.schema}")
    random = Random(5)
    name = TableName(table.schema, "typed")
    for server in (source_server, tidb):
        server.run(f"CREATE TABLE {name.quoted} {TYPES.definition}")
        server.run(f"ALTER TABLE {name.quoted} {', '.join(f'DROP COLUMN {column}' for column in NOT_COMPARED)}")
    marks = ",".join(["%s"] * len(COLUMNS))
    there, here = source_server.connection(), tidb.connection()
    for number in range(200):
        row = dict(zip(TYPES.columns, (number, *TYPES.values(random)), strict=True))
        for connection in (there, here):
            with connection.cursor() as cursor:
                cursor.execute(
                    f"INSERT INTO {name.quoted} ({','.join(COLUMNS)}) VALUES ({marks})", [row[c] for c in COLUMNS]
                )
    there.close(), here.close()
    found = versions(tidb, name, ())
    logged = {event.after[0]: event.after for event in row_log(source_server, [name])}
    assert len(found) == len(logged) == 200
    for key, history in found.items():
        told = dict(zip(COLUMNS, history[0].image or (), strict=True))
        assert told == dict(zip(COLUMNS, logged[key], strict=True))


def test_each_version_is_told_with_the_transaction_that_made_it(tidb: TidbServer, table: TableName) -> None:
    tidb.run(f"INSERT INTO {table.quoted} VALUES (1, 1), (2, 1), (-3, 1)")
    tidb.run("BEGIN", *(f"UPDATE {table.quoted} SET v = {v} WHERE id = 1" for v in (2, 3)), "COMMIT")
    tidb.run(f"DELETE FROM {table.quoted} WHERE id = 1")
    tidb.run(f"UPDATE {table.quoted} SET v = 1")  # as it was
    tidb.run(f"ALTER TABLE {table.quoted} ADD COLUMN w INT DEFAULT 5")
    tidb.run(f"UPDATE {table.quoted} SET w = 6 WHERE id = 2")
    tidb.kill()
    tidb.start()
    found = versions(tidb, table, ["1", "9"])
    assert [one.image for one in found["1"]] == [("1", "1"), ("1", "3"), None]
    assert [one.image for one in found["2"]] == [("2", "1"), ("2", "1", "6")]
    assert [one.image for one in found["-3"]] == [("-3 (18446744073709551613)", "1")]
    assert found["9"] == []
    assert found["1"][0].transaction == found["2"][0].transaction
    assert found["1"][0].transaction < found["1"][1].transaction


def test_a_history_outlives_a_kill_of_the_server(tidb: TidbServer, table: TableName) -> None:
    """Also of transactions that the store has written in one batch, as it does of those that commit side by side."""
    keys = list(map(str, range(8)))

    def write(key: str) -> None:
        tidb.run(*(f"REPLACE INTO {table.quoted} VALUES ({key}, {value})" for value in range(100)))

    with ThreadPoolExecutor(len(keys)) as threads:
        list(threads.map(write, keys))
    before = versions(tidb, table, keys)
    assert {key: len(history) for key, history in before.items()} == dict.fromkeys(keys, 100)
    tidb.kill()
    tidb.start()
    assert versions(tidb, table, keys) == before


def test_a_history_is_told_from_the_files_of_the_store(tidb: TidbServer, table: TableName) -> None:
    """A stop writes them. So many rows that the hashes of some keys are the same in a file."""
    keys = list(map(str, range(600)))
    tidb.run(f"INSERT INTO {table.quoted} VALUES {','.join(f'({key}, 1)' for key in keys)}")
    tidb.run(f"UPDATE {table.quoted} SET v = 2", f"UPDATE {table.quoted} SET v = 3")
    tidb.stop()
    tidb.start()
    told = {key: [one.image for one in history] for key, history in versions(tidb, table, keys).items()}
    assert told == {key: [(key, "1"), (key, "2"), (key, "3")] for key in keys}


def test_all_rows_of_several_files_are_read_as_they_were(tidb: TidbServer, table: TableName) -> None:
    """So many bytes that the stop writes several files."""
    count, at_once = 20_000, 2_000
    ranges = [(first, first + at_once) for first in range(0, count, at_once)]
    tidb.run(f"ALTER TABLE {table.quoted} ADD COLUMN pad VARCHAR(500)")
    for begin, end in ranges:
        tidb.run(
            f"INSERT INTO {table.quoted} VALUES "
            + ",".join(f"({number}, 1, REPEAT('{number % 10}', 500))" for number in range(begin, end))
        )
    ((_, before, *_),) = tidb.query(tidb.position_query)
    tidb.run(*(f"UPDATE {table.quoted} SET v = 2 WHERE id >= {begin} AND id < {end}" for begin, end in ranges))
    tidb.stop()
    tidb.start()
    with closing(tidb.connection()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET @@tidb_snapshot = '{before}'")
        cursor.execute(f"SELECT COUNT(*), SUM(v) FROM {table.quoted}")
        assert cursor.fetchall() == ((count, count),)


def test_changes_that_were_applied_once(task: Task) -> None:
    task.upstream(1, 2, 3, None, 4, 5)
    task.upstream(7, None, row=2)
    task.chunk_of("INSERT INTO {} VALUES (1, 1)", "UPDATE {} SET v = 2")
    task.chunk_of("UPDATE {} SET v = 3")
    task.chunk_of("DELETE FROM {}", "INSERT INTO {} VALUES (1, 4)", "INSERT INTO {} VALUES (2, 7)")
    task.chunk_of("UPDATE {} SET v = 5 WHERE id = 1", "DELETE FROM {} WHERE id = 2")
    assert task.against() == []
    task.server.run(f"ALTER TABLE {task.table.quoted} MODIFY COLUMN v VARCHAR(20)")
    assert task.against() == [], "TiDB itself writes the rows anew"
    task.server.run(
        f"ALTER TABLE {task.table.quoted} ADD COLUMN w INT NOT NULL DEFAULT 7",
        f"ALTER TABLE {task.table.quoted} MODIFY COLUMN w VARCHAR(20)",
    )
    assert task.against() == [], "with the default of a column that came since"


def test_changes_that_were_applied_again_and_hidden_by_the_next(task: Task) -> None:
    task.upstream(1, 2, 3)
    task.chunk_of("INSERT INTO {} VALUES (1, 1)", "UPDATE {} SET v = 2")
    task.chunk_of("REPLACE INTO {} VALUES (1, 1)")
    task.chunk_of("UPDATE {} SET v = 3")
    assert [line.split(":")[1] for line in task.against()] == [" applied again"]


def test_changes_that_were_lost_or_made_up(task: Task) -> None:
    task.upstream(1, 2)
    task.chunk_of("INSERT INTO {} VALUES (1, 1)", "INSERT INTO {} VALUES (2, 9)")
    assert sorted(line.split(":")[1] for line in task.against()) == [" from nowhere", " missing"]


def test_changes_without_a_receipt(task: Task) -> None:
    task.upstream(1, 2)
    task.chunk_of("INSERT INTO {} VALUES (1, 1)")
    task.chunk_of("UPDATE {} SET v = 2", receipt=False)
    (line,) = task.against()
    assert "written with 0 receipts" in line


def test_a_receipt_that_was_moved_to_the_same_place_twice(task: Task) -> None:
    task.upstream(1)
    task.chunk_of("INSERT INTO {} VALUES (1, 1)")
    task.server.run(f"UPDATE {task.meta.partition} SET epoch = epoch + 1")
    assert task.against() == []
    task.server.run(f"UPDATE {task.meta.partition} SET chunk = 0")
    task.chunk = 0
    task.epoch += 1
    task.chunk_of()
    assert [line.split(":")[0] for line in task.against()] == [
        "came twice to ('1', '0', '0')",
        "came twice to ('1', '1', '0')",
    ]


@pytest.mark.parametrize(
    ("made", "states", "copied", "verdict"),
    [
        ("abc", "abc", False, ""),
        ("c", "abc", False, ""),
        ("", "a-", False, ""),
        ("a-b", "a-b", False, ""),
        ("ab", "a", False, "from nowhere"),
        ("aba", "ab", False, "applied again"),
        ("a-", "a", False, "applied again"),
        ("ab", "abc", False, "missing"),
        ("", "a", False, "missing"),
        ("xbc", "abc", True, ""),
        ("c", "abc", True, ""),
        ("x", "", True, ""),
        ("axb", "ab", True, "from nowhere"),
        ("bab", "ab", True, "applied again"),
    ],
)
def test_a_walk_through_states(made: str, states: str, copied: bool, verdict: str) -> None:
    def image(state: str) -> tuple[str, ...] | None:
        return None if state == "-" else (state,)

    before = [None, *map(image, made)]
    history = [Version(Transaction(n, n), image(state), before[n]) for n, state in enumerate(made)]
    why = walks(history, [image(state) for state in states], copied=copied)
    assert why.split(":")[0] == verdict


def test_a_row_that_is_written_as_a_ddl_has_left_it() -> None:
    """A column with a default was added, and then one transaction deleted the row and inserted it again."""
    states: list[tuple[str, ...] | None] = [("1", "0"), None, ("1", "0", "'x'")]
    inserted = Version(Transaction(1, 1), states[0], None)
    again = Version(Transaction(2, 2), states[2], states[2])
    assert walks([inserted, again], states) == ""
    assert walks([inserted], states).startswith("missing")
