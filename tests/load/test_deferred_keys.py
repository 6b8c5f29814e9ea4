"""Secondary keys of large tables: left out while rows are loaded, and there at the end whatever happens meanwhile."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import MySQLdb
import pytest

from support.dump_units import load
from support.waiting import PATIENCE_SECONDS, wait_until
from unshard.dump.unit import DumpUnit
from unshard.errors import LoadError
from unshard.load import deferred_keys
from unshard.load.deferred_keys import DeferredKeys, in_foreign_keys, keys_of
from unshard.load.unit import LoadUnit
from unshard.model.table import TableName
from unshard.mysql.connection import rows
from unshard.target.forget import forget_task
from unshard.testing.mariadb_server import MariadbServer

SHOWN = """CREATE TABLE `t` (
  `id` int(11) NOT NULL,
  `a``b` varchar(9) DEFAULT NULL COMMENT 'a\\n  KEY `no` (`id`)',
  `k` int(11) DEFAULT NULL,
  `words` text DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`k`),
  KEY `one``` (`a``b`(3) DESC,`k`) COMMENT 'it''s, 100%',
  KEY `two` (`k`) USING BTREE,
  FULLTEXT KEY `three` (`words`),
  CONSTRAINT `c` CHECK (`k` > 0)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"""


def test_which_keys_are_deferred() -> None:
    assert keys_of(SHOWN) == {
        "one`": "KEY `one``` (`a``b`(3) DESC,`k`) COMMENT 'it''s, 100%'",
        "two": "KEY `two` (`k`) USING BTREE",
    }
    assert keys_of(SHOWN.replace("ENGINE=InnoDB", "ENGINE=Aria")) == {}


def test_which_tables_are_in_foreign_keys() -> None:
    child = (
        "FOREIGN KEY (`p`) REFERENCES `other`.`Pa``rent` (`id`),\n"
        "  CONSTRAINT `c` FOREIGN KEY (`q`) REFERENCES `q` (`id`)"
    )
    tables = {
        TableName("s", "child"): child,
        TableName("s", "pa`rent"): "",
        TableName("s", "q"): "",
        TableName("t", "Q"): "",
        TableName("s", "free"): "COMMENT ' REFERENCES `free` '",
    }
    assert in_foreign_keys(tables) == tables.keys() - {TableName("s", "free")}


MADE = (
    "CREATE TABLE {0}.plain (id INT PRIMARY KEY, a VARCHAR(20), b INT, c TEXT, UNIQUE KEY u (b),"
    " KEY one (a(3), b) COMMENT '100% it''s', KEY `two ``x` (b) USING BTREE, FULLTEXT KEY words (c), KEY three (a))",
    "CREATE TABLE {0}.counted (id INT PRIMARY KEY, n INT NOT NULL AUTO_INCREMENT, b INT, KEY n (n), KEY b (b))",
    "CREATE TABLE {0}.parent (id INT PRIMARY KEY, code INT, KEY code (code))",
    "CREATE TABLE {0}.child (id INT PRIMARY KEY, parent INT, n INT, KEY parent (parent), KEY n (n),"
    " CONSTRAINT {0}_c FOREIGN KEY (parent) REFERENCES parent (id))",
    "CREATE TABLE {0}.keyless (id INT, KEY id (id))",
    "INSERT INTO {0}.plain SELECT seq, seq % 7, seq, 'some words' FROM mysql.seq_1_to_1500",
    "INSERT INTO {0}.counted SELECT seq, seq, seq FROM mysql.seq_1_to_900",
    "INSERT INTO {0}.parent SELECT seq, seq FROM mysql.seq_1_to_9",
    "INSERT INTO {0}.child SELECT seq, seq % 9 + 1, seq FROM mysql.seq_1_to_900",
    "INSERT INTO {0}.keyless SELECT seq % 7 FROM mysql.seq_1_to_900",
)
TABLES = ("plain", "counted", "parent", "child", "keyless")


def make_source(server: MariadbServer, schema: str) -> None:
    server.run(f"CREATE DATABASE {schema}", *(statement.format(schema) for statement in MADE), database="mysql")


def shown(server: MariadbServer, schema: str) -> dict[str, str]:
    return {table: server.query(f"SHOW CREATE TABLE {schema}.{table}")[0][1] for table in TABLES}


def keys(server: MariadbServer, schema: str, table: str) -> set[str]:
    return {name for (_, _, name, *_) in server.query(f"SHOW KEYS FROM {schema}.{table}")}


def recorded(server: MariadbServer, schema: str) -> list[tuple[str, str]]:
    return [*server.query(f"SELECT target_table, key_name FROM {schema}_meta.task_load_key ORDER BY 1, 2")]


@pytest.fixture
def dumped(make_dump: Callable[..., DumpUnit], source_server: MariadbServer, schema: str) -> str:
    """The schema, whose tables have been dumped."""
    make_source(source_server, schema)
    make_dump(schema, rows=400).run()
    return schema


@pytest.fixture
def of_all_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_keys, "DEFERRED_BYTES", 0)


@pytest.mark.server
@pytest.mark.usefixtures("of_all_tables")
def test_the_load_of_a_table_goes_before_its_keys(
    dumped: str,
    make_load: Callable[..., LoadUnit],
    source_server: MariadbServer,
    target_server: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = dumped
    during: dict[str, set[str]] = {}
    notes: list[str] = []
    both = threading.Barrier(2)
    unit, add = make_load(schema), DeferredKeys._add

    def seen(own: DeferredKeys, connection: Any, table: TableName, missing: dict[str, str]) -> None:
        both.wait(PATIENCE_SECONDS)
        during.update({name: keys(target_server, schema, name) for name in TABLES if name not in during})
        notes.append(unit.note)
        both.wait(PATIENCE_SECONDS)
        add(own, connection, table, missing)

    monkeypatch.setattr(DeferredKeys, "_add", seen)
    unit.run()
    assert {", ".join(sorted(note.removeprefix("builds the keys of ").split(", "))) for note in notes} == {
        f"{schema}.keyless, {schema}.plain"
    }, "both at a time"
    assert unit.note == ""
    assert during == {
        "plain": {"PRIMARY", "u", "words"},
        "counted": {"PRIMARY", "n", "b"},  # the server does not drop `n`, so both stay
        "parent": {"PRIMARY", "code"},
        "child": {"PRIMARY", "parent", "n"},
        "keyless": set(),
    }
    assert shown(target_server, schema) == shown(source_server, schema)
    assert recorded(target_server, schema) == []


@pytest.mark.server
def test_small_tables_keep_their_keys(
    dumped: str,
    make_load: Callable[..., LoadUnit],
    source_server: MariadbServer,
    target_server: MariadbServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schema = dumped
    done = []
    monkeypatch.setattr(DeferredKeys, "_add", lambda *_: done.append("added"))
    make_load(schema).run()
    assert done == []
    assert shown(target_server, schema) == shown(source_server, schema)


@pytest.mark.server
@pytest.mark.recovery
@pytest.mark.parametrize(
    "place",
    [
        "load-keys-recorded",
        "load-keys-added",
        *(
            pytest.param(place, marks=pytest.mark.faults)
            for place in ("load-keys-recorded:3", "load-piece-commit:2", "load-finish-before")
        ),
    ],
)
def test_a_killed_load_ends_with_all_keys(
    place: str, dumped: str, source_server: MariadbServer, target_server: MariadbServer, tmp_path: Path
) -> None:
    schema = dumped
    assert load(target_server, schema, tmp_path / "dump", place, deferred=0) == -signal.SIGKILL
    assert load(target_server, schema, tmp_path / "dump", deferred=0) == 0
    assert shown(target_server, schema) == shown(source_server, schema)
    assert recorded(target_server, schema) == []
    for table in TABLES:
        asked = f"SELECT COUNT(*), SUM(id) FROM {schema}.{table}"
        assert target_server.query(asked) == source_server.query(asked)


@pytest.mark.server
@pytest.mark.recovery
def test_a_load_whose_record_is_removed_ends_with_all_keys(
    dumped: str, source_server: MariadbServer, target_server: MariadbServer, tmp_path: Path
) -> None:
    schema = dumped
    assert load(target_server, schema, tmp_path / "dump", "load-piece-commit:2", deferred=0) == -signal.SIGKILL
    with target_server.connection() as connection:
        forget_task(connection, f"{schema}_meta", "task")
    target_server.run(*(f"DELETE FROM {schema}.{table}" for table in reversed(TABLES)))
    assert load(target_server, schema, tmp_path / "dump", deferred=0) == 0
    assert shown(target_server, schema) == shown(source_server, schema)
    assert recorded(target_server, schema) == []


@pytest.mark.server
@pytest.mark.recovery
def test_a_table_that_is_made_anew_gets_no_key_of_the_one_before(
    dumped: str,
    make_dump: Callable[..., DumpUnit],
    source_server: MariadbServer,
    target_server: MariadbServer,
    tmp_path: Path,
) -> None:
    schema = dumped
    assert load(target_server, schema, tmp_path / "dump", "load-keys-recorded:3", deferred=0) == -signal.SIGKILL
    assert ("plain", "one") in recorded(target_server, schema)
    source_server.run(
        f"ALTER TABLE {schema}.plain DROP KEY one, DROP KEY three, DROP COLUMN a, ADD d INT, ADD KEY d (d)"
    )
    shutil.rmtree(tmp_path / "dump")
    make_dump(schema, rows=400).run()
    assert load(target_server, schema, tmp_path / "dump", deferred=0) == 0
    assert shown(target_server, schema) == shown(source_server, schema)
    assert recorded(target_server, schema) == []


@pytest.mark.server
def test_a_table_that_has_rows_already_keeps_its_keys(
    deferred: DeferredKeys, target_server: MariadbServer, schema: str
) -> None:
    """As one into which another source has loaded all of its rows, while this one stood still."""
    target_server.run(
        f"CREATE TABLE {schema}.full (id INT PRIMARY KEY, a INT, KEY a (a))", f"INSERT INTO {schema}.full VALUES (1, 1)"
    )
    with target_server.connection() as connection:
        deferred.defer(connection, TableName(schema, "full"), deferred_keys.DEFERRED_BYTES)
    assert keys(target_server, schema, "full") == {"PRIMARY", "a"}
    assert ("full", "a") not in recorded(target_server, schema)


@pytest.fixture
def deferred(target_server: MariadbServer, schema: str) -> DeferredKeys:
    """The keys `a` and `b` of an empty table `t` are on record and dropped."""
    target_server.run(
        f"CREATE DATABASE {schema}_meta",
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, a INT, b INT, KEY a (a), KEY b (b))",
    )
    found = DeferredKeys(f"{schema}_meta", "task", "s1")
    with target_server.connection() as connection:
        found.create(connection)
        found.defer(connection, TableName(schema, "t"), deferred_keys.DEFERRED_BYTES)
    assert keys(target_server, schema, "t") == {"PRIMARY"}
    assert recorded(target_server, schema) == [("t", "a"), ("t", "b")]
    return found


@pytest.mark.server
def test_only_missing_keys_of_the_named_tables_are_added(
    deferred: DeferredKeys, target_server: MariadbServer, schema: str
) -> None:
    deferred.add(target_server.connection, [TableName(schema, "other")])
    assert keys(target_server, schema, "t") == {"PRIMARY"}
    target_server.run(f"ALTER TABLE {schema}.t ADD KEY b (b)")
    deferred.add(target_server.connection, [TableName(schema, "t")])
    assert keys(target_server, schema, "t") == {"PRIMARY", "a", "b"}
    assert recorded(target_server, schema) == []


@pytest.mark.server
def test_a_key_that_was_dropped_meanwhile_stays_dropped(
    deferred: DeferredKeys, target_server: MariadbServer, schema: str
) -> None:
    """One source has added the keys, and a statement of its log drops one, while another source waits to add them."""
    table = TableName(schema, "t")
    with target_server.connection() as one, target_server.connection() as other:
        one.query(f"SELECT GET_LOCK('unshard:keys:{table}', 0)")
        one.store_result()
        waits = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE STATE = 'User lock' AND ID = {other.thread_id()}"
        thread = threading.Thread(target=deferred.add, args=(lambda: nullcontext(other), [table]))
        thread.start()
        wait_until(lambda: bool(target_server.query(waits)), "the other source waits")
        target_server.run(
            f"ALTER TABLE {schema}.t ADD KEY a (a), ADD KEY b (b)",
            f"DELETE FROM {schema}_meta.task_load_key",
            f"ALTER TABLE {schema}.t DROP KEY a",
        )
        one.query(f"SELECT RELEASE_LOCK('unshard:keys:{table}')")
        one.store_result()
        thread.join()
    assert keys(target_server, schema, "t") == {"PRIMARY", "b"}


@pytest.mark.server
def test_where_others_write_too_much_meanwhile_they_wait(
    deferred: DeferredKeys, target_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[str] = []

    def refusing(connection: Any, statement: str, values: Any = ()) -> Any:
        if "ADD KEY" in statement:
            run.append(statement)
            if len(run) == 1:
                raise MySQLdb.OperationalError(1799, "Creating index 'a' required more than … bytes")
        return rows(connection, statement, values)

    monkeypatch.setattr(deferred_keys, "rows", refusing)
    deferred.add(target_server.connection, [TableName(schema, "t")])
    assert run == [run[0], f"{run[0]}, LOCK=SHARED"]
    assert keys(target_server, schema, "t") == {"PRIMARY", "a", "b"}


@pytest.mark.server
def test_a_key_that_can_not_be_built_stops_the_load_until_it_can(
    deferred: DeferredKeys, target_server: MariadbServer, schema: str
) -> None:
    target_server.run(f"ALTER TABLE {schema}.t DROP COLUMN a")
    with pytest.raises(LoadError) as stopped:
        deferred.add(target_server.connection, [TableName(schema, "t")])
    assert stopped.value.code == "LOAD-027"
    assert "a, b" in str(stopped.value)
    assert "doesn't exist in table" in str(stopped.value)
    assert recorded(target_server, schema) == [("t", "a"), ("t", "b")]
    target_server.run(f"ALTER TABLE {schema}.t ADD COLUMN a INT")
    deferred.add(target_server.connection, [TableName(schema, "t")])
    assert keys(target_server, schema, "t") == {"PRIMARY", "a", "b"}
