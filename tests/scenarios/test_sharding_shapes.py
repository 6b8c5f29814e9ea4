"""Sharding DDL and what else happens to shards: pt-online-schema-change, XA transactions, a schema that goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.shard_rig import ShardRig
from support.shard_runs import ROW, Shards
from support.task_runs import TaskRun

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_pt_online_schema_change_and_xa_transactions_behind_it(rig: ShardRig) -> None:
    """Prepared and committed while the table is held, committed when it is free, rolled back; a restart between.

    In front of the task the log holds what it could not read.
    """
    shards = rig.shards()
    shards.sources["s1"].run(
        "SET SESSION binlog_format = STATEMENT", f"INSERT INTO {shards.at(0)} (id, v) VALUES (9000, 'as text')"
    )
    with rig.run(shards) as run:
        run.catch_up()
        _by_pt(shards, 0, "ADD COLUMN c INT")
        for number, xid in enumerate(("done", "late", "undone"), 20):
            _prepare(shards, f"{rig.name}{xid}", number)
        shards.run("s1", f"XA COMMIT '{rig.name}done'")
        shards.insert("s1", 0, 1, c="1")
        run.catch_up()
        assert shards.held()
    with rig.run(shards) as run:
        shards.run("s1", f"XA ROLLBACK '{rig.name}undone'")
        shards.insert("s1", 1, 1)
        _by_pt(shards, 1, "ADD COLUMN c INT")
        shards.insert("s1", 1, 2, c="2")
        shards.wait_in_step(run)
        shards.run("s1", f"XA COMMIT '{rig.name}late'")
        shards.settle(run)
        assert len(shards.merged_rows()) == 10


def test_a_schema_of_shards_is_dropped_while_one_of_them_is_held(rig: ShardRig) -> None:
    """Nothing of it goes from the target, and nobody waits for its tables any more."""
    fold = {"schema-pattern": f"{rig.name}_s*", "table-pattern": "t_*"}
    routes = {"fold": {**fold, "target-schema": f"{rig.name}_all", "target-table": "t"}}
    shards = rig.shards(tables=1, keys={"routes": routes})
    other = f"`{rig.name}_s2`"
    tables = [f"{other}.t_8", f"{other}.t_9"]
    shards.run("s1", f"CREATE DATABASE {other}")
    for number, table in enumerate(tables, 1):
        shards.run("s1", f"CREATE TABLE {table} ({ROW})")
        shards.run("s1", f"INSERT INTO {table} VALUES ({number}, 'before')")
    files = replace(shards.files(), schemas=(f"{rig.name}_s", f"{rig.name}_s2")).write()
    with TaskRun(files, rig.spark) as run:
        run.catch_up()
        shards.run("s1", f"ALTER TABLE {tables[0]} ADD COLUMN c INT")
        shards.run("s1", f"INSERT INTO {tables[0]} VALUES (3, 'held', 7)")
        run.catch_up()
        assert shards.held()
        shards.run("s1", f"DROP DATABASE {other}")
        run.catch_up()
    with TaskRun(files, rig.spark) as run:
        shards.alter("s1", 0, "ADD COLUMN c INT")
        shards.insert("s1", 0, 4, c="8")
        shards.wait_in_step(run)
        gone = [(1, "before", None), (2, "before", None), (3, "held", 7)]
        assert shards.merged_rows() == sorted([*gone, *shards.expected()], key=lambda row: row[0])
        shards.alter("s1", 0, "ADD COLUMN d INT")
        shards.wait_in_step(run)


def test_a_shard_that_is_dropped_while_it_is_held_before_its_copy_takes_its_name(rig: ShardRig) -> None:
    """As pt-online-schema-change does it with `drop_swap`: its changes behind that wait too, and none is lost."""
    shards = rig.shards()
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 0, "MODIFY v VARCHAR(40) NOT NULL, ADD COLUMN c INT")
        shards.insert("s1", 0, 1, c="1")
        new, at = f"`{rig.name}_s`.`_t_0_new`", shards.at(0)
        for sql in (
            f"CREATE TABLE {new} LIKE {at}",
            f"ALTER TABLE {new} ADD COLUMN d INT",
            f"INSERT INTO {new} (id, v, c) SELECT id, v, c FROM {at}",
            f"DROP TABLE {at}",
            f"RENAME TABLE {new} TO {at}",
        ):
            shards.run("s1", sql)
        shards.insert("s1", 0, 2, c="2", d="3")
        run.catch_up()
        assert shards.held()
    with rig.run(shards) as run:
        shards.insert("s1", 0, 3, c="3", d="4")
        shards.alter("s1", 1, "MODIFY v VARCHAR(40) NOT NULL, ADD COLUMN c INT")
        shards.insert("s1", 1, 1, c="5")
        shards.alter("s1", 1, "ADD COLUMN d INT")
        shards.insert("s1", 1, 2, c="6", d="7")
        shards.settle(run)


def _prepare(shards: Shards, xid: str, number: int) -> None:
    row = f"({shards.id('s1', 0, number)}, '{number}', {number})"
    insert = f"INSERT INTO {shards.at(0)} (id, v, c) VALUES {row}"
    shards.sources["s1"].run(f"XA START '{xid}'", insert, f"XA END '{xid}'", f"XA PREPARE '{xid}'")


def _by_pt(shards: Shards, table: int, change: str) -> None:
    """The tool's statements, with a row that comes by its trigger."""
    at = shards.at(table)
    new, old, trigger = (
        f"`{shards.name}_s`.`{name}`" for name in (f"_t_{table}_new", f"_t_{table}_old", f"pt_{table}")
    )
    put = f"REPLACE INTO {new} (id, v) VALUES (NEW.id, NEW.v)"
    for sql in (
        f"CREATE TABLE {new} LIKE {at}",
        f"ALTER TABLE {new} {change}",
        f"CREATE TRIGGER {trigger} AFTER INSERT ON {at} FOR EACH ROW {put}",
        f"INSERT LOW_PRIORITY IGNORE INTO {new} (id, v) SELECT id, v FROM {at}",
        f"INSERT INTO {at} (id, v) VALUES ({shards.id('s1', table, 90)}, 'by trigger')",
        f"ANALYZE TABLE {new}",
        f"RENAME TABLE {at} TO {old}, {new} TO {at}",
        f"DROP TABLE {old}",
        f"DROP TRIGGER IF EXISTS {trigger}",
    ):
        shards.run("s1", sql)


def test_foreign_keys_that_bear_the_names_of_their_shards(rig: ShardRig) -> None:
    """On the target they bear its table's name, those of the copy too."""
    rig.source.run(f"CREATE DATABASE {rig.name}_s", f"CREATE TABLE {rig.name}_s.p (id BIGINT PRIMARY KEY)")
    row = "id BIGINT NOT NULL PRIMARY KEY, v VARCHAR(20) NOT NULL, p BIGINT, FOREIGN KEY (p) REFERENCES p (id)"
    shards = rig.shards(row=row)

    def names() -> list[str]:
        found = "SELECT CONSTRAINT_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = %s"
        return [name for (name,) in rig.target.query(found, (f"{rig.name}_all",))]

    with rig.run(shards) as run:
        run.catch_up()
        for table in (0, 1):
            shards.alter("s1", table, f"ADD FOREIGN KEY (p) REFERENCES {rig.name}_s.p (id) ON DELETE CASCADE")
        shards.settle(run)
        assert sorted(names()) == ["t_ibfk_1", "t_ibfk_2"]
        for table in (0, 1):
            shards.alter("s1", table, f"DROP FOREIGN KEY t_{table}_ibfk_1")
        shards.settle(run)
        assert names() == ["t_ibfk_2"]


def test_a_ddl_of_tables_whose_foreign_keys_are_checked_is_refused(rig: ShardRig) -> None:
    """The held DELETE of a parent would take children that came behind it. Taken up where nothing is checked."""
    shards = rig.shards()
    child = f"{rig.name}_s.child"
    keyed = "(id BIGINT PRIMARY KEY, p BIGINT NOT NULL, FOREIGN KEY (p) REFERENCES {} (id) ON DELETE CASCADE)"
    rig.source.run(f"CREATE TABLE {child} {keyed.format(shards.at(0))}", f"INSERT INTO {child} VALUES (1, 0)")
    rig.target.run(f"CREATE DATABASE {rig.name}_all", f"CREATE TABLE {shards.merged} ({shards.row})")
    rig.target.run(f"CREATE DATABASE {rig.name}_s", f"CREATE TABLE {child} {keyed.format(shards.merged)}")
    target = {"host": "127.0.0.1", "user": "root", "port": rig.target.port}
    shards.keys = {"target-database": {**target, "session": {"foreign_key_checks": "1"}}}
    with rig.run(shards) as run:
        run.catch_up()
    shards.alter("s1", 0, "ADD COLUMN c INT")
    shards.insert("s1", 0, 1, c="1")
    shards.run("s1", f"INSERT INTO {child} VALUES (2, {shards.id('s1', 0, 1)})")
    error = rig.run(shards).start().error()
    assert "SHARD-038" in str(error)
    assert child in str(error)
    shards.keys = {}
    with rig.run(shards) as run:
        run.catch_up()
        shards.alter("s1", 1, "ADD COLUMN c INT")
        shards.settle(run)
        assert rig.target.query(f"SELECT * FROM {child}") == rig.source.query(f"SELECT * FROM {child}")
