"""What explain says is what happens: its statements, found in the target's own log when the task has run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from support.general_log import general_log
from support.task_runs import TaskFiles, TaskRun
from unshard.cli.app import app
from unshard.ddl.context import Context
from unshard.ddl.online import Kept
from unshard.model.table import TableName
from unshard.target.meta import MetaTables
from unshard.target.online_ddl import save_records
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

SUMMARY = "SELECT query_sample_text FROM information_schema.statements_summary"
"""TiDB has no log as a table. It keeps one text of each kind of statement."""


def explained(files: TaskFiles, *asked: str) -> dict[str, Any]:
    sources = [text for path in files.source_paths for text in ("--source", str(path))]
    done = CliRunner().invoke(app, ["explain", str(files.task_path), *sources, "--connect", "--json", *asked])
    assert done.exit_code == 0, done.output
    (source,) = json.loads(done.output)["sources"]
    found: dict[str, Any] = source
    return found


def finding(source: dict[str, Any], kind: str) -> dict[str, Any]:
    (found,) = [one for group in source["groups"] for one in group["findings"] if one["kind"] == kind]
    one: dict[str, Any] = found
    return one


@pytest.fixture
def files(source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path) -> TaskFiles:
    route = {"schema-pattern": schema, "target-schema": f"{schema}_to"}
    shard = {
        "schema-pattern": schema,
        "table-pattern": "shard_*",
        "target-schema": f"{schema}_to",
        "target-table": "one",
    }
    keep = {"schema-pattern": schema, "table-pattern": "*", "events": ["drop column"], "action": "Ignore"}
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.plain (id INT PRIMARY KEY, v VARCHAR(9), old INT)",
        f"CREATE TABLE {schema}.tied (id INT PRIMARY KEY, code VARCHAR(9) UNIQUE)",
        f"CREATE TABLE {schema}.bare (v VARCHAR(9))",
        f"CREATE TABLE {schema}.shard_1 (id INT PRIMARY KEY)",
        f"CREATE TABLE {schema}.shard_2 (id INT PRIMARY KEY)",
    )
    return TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (schema,),
        keys={"routes": {"all": route, "shards": shard}, "filters": {"keep": keep}},
        instance={"route-rules": ["all", "shards"], "filter-rules": ["keep"]},
    ).write()


@contextmanager
def asked_for(target: ThrowawayServer) -> Iterator[Callable[[], str]]:
    """Yields a function that returns the texts of the statements that the target was sent meanwhile."""
    if isinstance(target, TidbServer):
        yield lambda: "\n".join(text for (text,) in target.query(SUMMARY))
        return
    with general_log(target) as asked:
        yield lambda: "\n".join(text for _, text in asked())


def on(target: ThrowawayServer, text: str, for_tidb: str) -> str:
    """What is explained of a statement: its text as it stands or as TiDB gets it, or the error's code."""
    return for_tidb if isinstance(target, TidbServer) else text


@pytest.mark.scenarios
def test_the_explained_statements_are_those_that_the_target_gets(
    files: TaskFiles, source_server: MariadbServer, target_server: ThrowawayServer, schema: str, spark: SparkSession
) -> None:
    plain = explained(files, "--table", f"{schema}.plain")
    assert finding(plain, "structure")["says"] == "made"
    with TaskRun(files, spark) as run:
        run.reach("sync")
        plain = explained(files, "--table", f"{schema}.plain")
        tied = explained(files, "--table", f"{schema}.tied")
        bare = explained(files, "--table", f"{schema}.bare")
        assert [finding(one, "structure")["says"] for one in (plain, tied, bare)] == ["fits"] * 3
        assert [finding(one, "key")["says"] for one in (plain, tied, bare)] == ["free", "tied", "ordered"]
        assert {one["mode"] for one in bare["statements"]} == {"normal"}
        alter = f"ALTER TABLE {schema}.plain ADD COLUMN note INT, DROP COLUMN old, ADD INDEX i (v)"
        altered = explained(files, "--sql", alter)
        assert [one["sql"] for one in altered["statements"]] == [
            f"ALTER TABLE `{schema}_to`.`plain` {on(target_server, text, for_tidb)}"
            for text, for_tidb in (
                ("ADD COLUMN note INT", "ADD COLUMN `note` int(11) DEFAULT NULL"),
                ("ADD INDEX i (v)", "ADD KEY `i` (`v`)"),
            )
        ]
        with asked_for(target_server) as asked:
            for change in (
                "INSERT INTO plain VALUES (1, 'a', 1)",
                "UPDATE plain SET v = 'b', old = 2",
                "DELETE FROM plain",
                "INSERT INTO tied VALUES (1, 'a')",
                "UPDATE tied SET code = 'b'",
                "INSERT INTO bare VALUES ('a')",
                "UPDATE bare SET v = 'b'",
                alter,
            ):
                source_server.run(change, database=schema)
                run.catch_up()
            said = asked()
    wanted = [one for source in (plain, tied, bare, altered) for one in source["statements"]]
    done = [one for one in wanted if one["mode"] != "safe" and (one["change"] != "DELETE" or "plain" in one["sql"])]
    assert len(done) == 3 + 3 + 2 + 2
    assert [one["sql"] for one in done if one["sql"] not in said] == []


def test_a_merged_table_stops_as_explained_and_its_statement_is_for_the_hand(
    files: TaskFiles, source_server: MariadbServer, target_server: ThrowawayServer, schema: str, spark: SparkSession
) -> None:
    merged = finding(explained(files, "--table", f"{schema}.shard_1"), "merge")
    assert merged["others"] == [f"{schema}.shard_2 (s1)"]
    alter = f"ALTER TABLE {schema}.shard_1 ADD COLUMN a INT"
    run = TaskRun(files, spark).start()
    run.reach("sync")
    said = explained(files, "--sql", alter)
    assert (said["says"], said["error"]["code"], said["byHand"]) == ("stops", "SYNC-011", True)
    added = on(target_server, "ADD COLUMN a INT", "ADD COLUMN `a` int(11) DEFAULT NULL")
    assert [one["sql"] for one in said["statements"]] == [f"ALTER TABLE `{schema}_to`.`one` {added}"]
    missing = explained(files, "--sql", f"ALTER TABLE {schema}.nowhere ADD COLUMN a INT")
    assert missing["error"]["code"] == "DDL-004"
    refused = explained(files, "--sql", f"ALTER TABLE {schema}.plain ADD COLUMN id INT")
    assert refused["error"]["code"] == on(target_server, "DDL-003", "DDL-037")
    there = explained(files, "--sql", f"CREATE TABLE IF NOT EXISTS {schema}.plain (id INT)")
    assert there["says"] == "nothing"
    source_server.run(alter)
    error = run.error()
    assert getattr(error, "code", None) == said["error"]["code"]


def test_explaining_leaves_nothing_behind(
    files: TaskFiles, target_server: ThrowawayServer, source_server: MariadbServer, schema: str
) -> None:
    before = target_server.query("SHOW DATABASES")
    made = explained(files, "--sql", f"CREATE TABLE {schema}.fresh (id INT)")
    there = [one["sql"].split(" (")[0] for one in made["statements"]]
    assert there[0].startswith(f"CREATE DATABASE IF NOT EXISTS `{schema}_to` ")
    assert there[1:] == [f"CREATE TABLE `{schema}_to`.`fresh`"]
    target_server.run(f"CREATE DATABASE {schema}_to CHARACTER SET latin1")
    made = explained(files, "--sql", f"CREATE TABLE {schema}.fresh (id INT)")
    ((sql,),) = [[one["sql"] for one in made["statements"]]]
    text = on(
        target_server, "(id INT) CHARACTER SET utf8mb4", "(\n  `id` int(11) DEFAULT NULL\n) DEFAULT CHARSET=utf8mb4"
    )
    assert sql.startswith(f"CREATE TABLE `{schema}_to`.`fresh` {text}")
    target_server.run(f"DROP DATABASE {schema}_to")
    assert target_server.query("SHOW DATABASES") == before


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "why-was-it-not-migrated.md"


def test_the_page_shows_what_the_servers_tell(files: TaskFiles, target_server: ThrowawayServer, schema: str) -> None:
    target_server.run(
        f"CREATE DATABASE {schema}_to", f"CREATE TABLE {schema}_to.tied (id INT PRIMARY KEY, code VARCHAR(9) UNIQUE)"
    )
    asked = ["--source", str(files.source_paths[0]), "--connect", "--table", f"{schema}.tied"]
    done = CliRunner().invoke(app, ["explain", str(files.task_path), *asked])
    assert done.exit_code == 0, done.output
    shown = done.output.replace(f"{schema}_to", "shop").replace(schema, "shop_1")
    assert f"```text\n{shown.strip()}\n```" in PAGE.read_text(encoding="utf-8")
    target_server.run(f"DROP DATABASE {schema}_to")


def test_a_table_whose_updates_may_be_left_out_keeps_its_order(files: TaskFiles, schema: str) -> None:
    rule = {"schema": schema, "table": "tied", "update-new-value-expr": "code = 'draft'"}
    keys = {**files.keys, "expression-filter": {"drafts": rule}}
    ruled = replace(files, keys=keys, instance={**files.instance, "expression-filters": ["drafts"]}).write()
    told = finding(explained(ruled, "--table", f"{schema}.tied"), "key")
    assert told["says"] == "ordered"
    assert "a rule may leave out UPDATEs" in told["text"]


def test_a_server_that_is_not_there_is_an_error(files: TaskFiles) -> None:
    files.source_paths[0].write_text("source-id: s1\nfrom: {host: 127.0.0.1, port: 1, user: root}\n")
    asked = ["--source", str(files.source_paths[0]), "--connect", "--table", "a.t"]
    done = CliRunner().invoke(app, ["explain", str(files.task_path), *asked])
    assert (done.exit_code, "SOURCE-001" in done.output) == (1, True)


def test_what_was_run_on_a_ghost_is_read_from_the_target(
    files: TaskFiles, target_server: ThrowawayServer, schema: str
) -> None:
    target_server.run(f"CREATE DATABASE {schema}_to", f"CREATE TABLE {schema}_to.plain (id INT PRIMARY KEY)")
    ghost, meta = TableName(schema, "_plain_gho"), MetaTables(files.meta, files.name)
    with closing(target_server.connection()) as connection:
        meta.create(connection)
        with connection.cursor() as cursor:
            kept = Kept("alter table _plain_gho add a int", Context(schema))
            save_records(cursor, meta, "s1", {ghost: (kept,)})
        connection.commit()
    found = explained(files, "--sql", f"RENAME TABLE {schema}.plain TO {schema}._plain_del, {ghost} TO {schema}.plain")
    text = on(
        target_server,
        f"alter table `{schema}_to`.`plain` add a int",
        f"ALTER TABLE `{schema}_to`.`plain` ADD COLUMN `a` int(11) DEFAULT NULL",
    )
    assert [one["sql"] for one in found["statements"]] == [text]
    target_server.run(f"DROP DATABASE {schema}_to")


def test_a_dropped_schema_with_a_table_that_is_routed_elsewhere(
    files: TaskFiles, source_server: MariadbServer, target_server: ThrowawayServer, schema: str
) -> None:
    away = {"schema-pattern": schema, "table-pattern": "tied", "target-schema": f"{schema}_old"}
    alone = {"one": {"do-dbs": [schema], "ignore-tables": [{"db-name": schema, "tbl-name": "shard_*"}]}}
    keys = {**files.keys, "routes": {**files.keys["routes"], "away": away}, "block-allow-list": alone}
    rules = {"route-rules": ["all", "shards", "away"], "block-allow-list": "one"}
    own = replace(files, keys=keys, instance={**files.instance, **rules}).write()
    target_server.run(f"CREATE DATABASE {schema}_to", f"CREATE DATABASE {schema}_old")
    found = explained(own, "--sql", f"DROP DATABASE {schema}")
    assert [one["sql"] for one in found["statements"]] == [
        f"DROP TABLE IF EXISTS `{schema}_old`.`tied`",
        f"DROP DATABASE `{schema}_to`",
    ]
    target_server.run(f"DROP DATABASE {schema}_to", f"DROP DATABASE {schema}_old")


def test_an_altered_schema_that_the_target_lacks(files: TaskFiles, schema: str) -> None:
    found = explained(files, "--sql", f"ALTER DATABASE {schema} CHARACTER SET latin1")
    assert (found["says"], found["statements"]) == ("nothing", [])
