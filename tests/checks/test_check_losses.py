"""What a task would lose while its statements succeed is told before it starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.checked_tasks import found, mended, with_keys
from support.dm_records import CHECKPOINT
from support.task_runs import TaskFiles
from unshard.checks.result import Finding
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
CODES = "character code checker"
KEYS = "target key checker"
MOVES = "row move checking"
SETTINGS = "settings checking"


@pytest.mark.parametrize("columns", ["id INT PRIMARY KEY, v INT, UNIQUE KEY (v)", "v INT PRIMARY KEY, id INT"])
def test_a_unique_key_of_the_target_alone(
    files: TaskFiles, changed_source: MariadbServer, target_server: MariadbServer, schema: str, columns: str
) -> None:
    changed_source.run(f"CREATE TABLE {schema}.k (id INT PRIMARY KEY, v INT)")
    target_server.run(f"CREATE DATABASE IF NOT EXISTS {schema}", f"CREATE TABLE {schema}.k ({columns})")
    (command,) = mended(files, KEYS, target_server, "warn", "remove the other")
    assert "DROP" in command


def test_a_key_that_the_sources_key_implies(
    files: TaskFiles, changed_source: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    changed_source.run(f"CREATE TABLE {schema}.k (id INT PRIMARY KEY, v INT)")
    target_server.run(
        f"CREATE DATABASE IF NOT EXISTS {schema}", f"CREATE TABLE {schema}.k (id INT, v INT, PRIMARY KEY (v, id))"
    )
    assert found(files, KEYS) == []


def test_a_character_set_with_two_codes_for_one_character(
    files: TaskFiles, changed_source: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    changed_source.run(
        f"CREATE TABLE {schema}.k (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET eucjpms UNIQUE,"
        " w VARCHAR(9) CHARSET sjis, UNIQUE (w), x VARCHAR(9) CHARSET sjis)",
        f"INSERT INTO {schema}.k (id, v) VALUES (1, _eucjpms x'8FA2B7'), (2, _eucjpms x'A1C1'), (3, NULL)",
    )
    (lack,) = found(files, CODES)
    assert "(v: eucjpms, w: sjis)" in lack.short_error
    query = lack.instruction.split(";")[0]
    assert changed_source.query(query) == [(1,)]
    target_server.run(
        f"CREATE DATABASE IF NOT EXISTS {schema}",
        f"CREATE TABLE {schema}.k (id INT PRIMARY KEY, v VARCHAR(9) CHARSET utf8mb4, w VARCHAR(9) CHARSET sjis,"
        " x VARCHAR(9) CHARSET sjis, UNIQUE (v), UNIQUE (w))",
    )
    (lack,) = found(files, CODES)
    assert "(w: sjis)" in lack.short_error
    target_server.run(f"ALTER TABLE {schema}.k MODIFY w VARCHAR(9) CHARSET utf8mb4")
    assert found(files, CODES) == []
    (lack,) = found(replace(files, instance={"mydumper": {"format": "sql"}}), CODES)
    assert "(x: sjis)" in lack.short_error


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, []),
        ({"loaders": {"own": {"on-duplicate-logical": "replace"}}}, ["before all are in sync is lost"]),
        ({"delivery": "at-least-once"}, ["safe mode writes rows over others (`delivery: at-least-once` of s1)"]),
        ({"mydumpers": {"own": {"extra-args": "--consistency none"}}}, ["writes rows over others (the dump without"]),
    ],
)
def test_rows_between_two_sources(
    changed_source: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    keys: dict[str, object],
    words: list[str],
) -> None:
    for server in (changed_source, second_source):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.o (id INT PRIMARY KEY)")
    sources = {"s1": changed_source, "s2": second_source}
    instance = {"mydumper-config-name": "own"} if "mydumpers" in keys else {}
    files = TaskFiles(tmp_path, schema, sources, target_server, (schema,), instance=instance)
    lacks = found(with_keys(files, **keys), MOVES)
    assert len(lacks) == len(words)
    assert all(word in lack.short_error for word, lack in zip(words, lacks, strict=True))
    assert found(replace(with_keys(files, **keys), sources={"s1": changed_source}), KEYS) == []


PLACE = "'bin.000001', 4, ''"
NO_EXIT, EXIT = "'', 0, NULL", "'bin.000001', 900, ''"


@pytest.mark.parametrize(
    ("info", "exit_point", "words"),
    [
        ("null", NO_EXIT, "a checkpoint that DM or `delivery: at-least-once` has written of s2"),
        ('{"delivery": "at-least-once"}', NO_EXIT, "has written of s2"),
        ('{"delivery": "at-least-once"}', PLACE, ""),
        ('{"delivery": "exactly-once"}', NO_EXIT, ""),
        ('{"delivery": "exactly-once"}', EXIT, "a checkpoint with safe mode until bin.000001:900 of s2"),
        ("null", EXIT, "a checkpoint with safe mode until bin.000001:900 of s2"),
    ],
)
def test_rows_between_two_sources_of_which_one_goes_on_in_safe_mode(
    changed_source: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    info: str,
    exit_point: str,
    words: str,
) -> None:
    for server in (changed_source, second_source, target_server):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.o (id INT PRIMARY KEY)")
    files = TaskFiles(tmp_path, schema, {"s1": changed_source, "s2": second_source}, target_server, (schema,))
    checkpoint = f"{files.meta}.{files.name}_syncer_checkpoint"
    row = f"INSERT INTO {checkpoint} VALUES ('s2', '', '', {PLACE}, {exit_point}, '{info}', TRUE, NOW(), NOW())"
    target_server.run(f"CREATE DATABASE {files.meta}", CHECKPOINT.format(name=checkpoint), row)
    lacks = found(files, MOVES)
    assert len(lacks) == bool(words)
    for lack in lacks:
        assert words in lack.short_error
        assert "until `query-status` shows no `safeMode`" in lack.instruction


@pytest.mark.parametrize(
    ("settings", "mode", "words"),
    [
        ("time_zone = '+02:00'", "pessimistic", "another time zone each"),
        ("time_zone = '+02:00'", "", ""),
        ("time_zone = '+00:00'", "pessimistic", ""),
        ("sql_mode = 'STRICT_ALL_TABLES'", "pessimistic", "another SQL mode each"),
        ("sql_mode = 'NO_ENGINE_SUBSTITUTION'", "pessimistic", ""),
    ],
)
def test_settings_that_a_merged_ddl_may_depend_on(
    changed_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    settings: str,
    mode: str,
    words: str,
) -> None:
    with MariadbServer() as other:
        for server, numbers in ((changed_source, (1, 2)), (other, (3,))):
            server.run(f"CREATE DATABASE {schema}", "SET GLOBAL sql_mode = ''", "SET GLOBAL time_zone = '+00:00'")
            server.run(*(f"CREATE TABLE {schema}.o_{number} (id INT PRIMARY KEY)" for number in numbers))
        other.run(f"SET GLOBAL {settings}")
        told = settings_told(schema, {"s1": changed_source, "s2": other}, target_server, tmp_path, mode)
    assert len(told) == bool(words)
    assert all(words in one.short_error and "s2: " in one.short_error for one in told)


def settings_told(
    schema: str, sources: dict[str, MariadbServer], target: MariadbServer, folder: Path, mode: str
) -> list[Finding]:
    merged = {"schema-pattern": schema, "table-pattern": "o_*", "target-schema": schema, "target-table": "o"}
    keys = {"shard-mode": mode, "routes": {"merged": merged}}
    files = TaskFiles(folder, schema, sources, target, (schema,), instance={"route-rules": ["merged"]})
    return found(with_keys(files, **keys), SETTINGS)
