"""Whole files: what is read, that all problems come together with their lines, that no secret shows."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path
from typing import Any

import pytest

from unshard.config.files import load_source, load_task, parse_task
from unshard.errors import ConfigError

BROKEN = """\
name: t
task-mode: all
timezone: "+08:00"
shard-mod: pessimistic
target-database: {host: a, port: 99999, user: root, pasword: geheim}
black-white-list:
  b: {do-dbs: [a], do-db: []}
syncers:
  g: {batch: 0, worker-count: x}
mysql-instances:
- source-id: s1
  route-rules: [r9]
  syncer-config-name: g
  black-white-list: b
"""


def test_all_problems_of_a_file_come_together_in_its_order() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_task(BROKEN, "task.yaml")
    assert [line.strip() for line in caught.value.cause.splitlines()] == [
        'line 3: not supported yet: timezone (leave it out or write "" or "+00:00" or "UTC")',
        "line 4: shard-mod: unknown key (did you mean `shard-mode`?)",
        "line 5: target-database.pasword: unknown key (did you mean `password`?)",
        "line 5: target-database.port: '99999' is refused; write a number of at most 65535",
        "line 7: block-allow-list.b.do-db: unknown key (did you mean `do-dbs`?)",
        "line 9: syncers.g.batch: '0' is refused; write a number of at least 1",
        "line 9: syncers.g.worker-count: 'x' is refused; write a whole number",
        "line 12: mysql-instances[0].route-rules: `r9` is not defined under routes",
    ]
    assert str(caught.value).startswith("CONFIG-001 [file task.yaml]: 8 problem(s) in the file")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": None}, "name: missing: it has to be set"),
        ({"name": ""}, "name: '' is refused; write at least 1 character(s)"),
        ({"name": "x" * 39}, f"name: '{'x' * 39}' is refused; write at most 38 characters"),
        ({"name": "a😀"}, "name: 'a😀' is refused; tables are named by it, and their names can't have characters"),
        ({"name": "a/b"}, "name: 'a/b' is refused; it names folders and tables; write it without slashes"),
        (
            {"name": "50%off"},
            "name: '50%off' is refused; the task's own tables in the target are named by it; write it",
        ),
        ({"meta_schema": "a%b"}, "meta-schema: 'a%b' is refused; the task's own tables in the target are named by it"),
        ({"task_mode": "ful"}, "write one of 'full', 'incremental', 'all', 'dump' or 'load' (did you mean `full`?)"),
        ({"clean_dump_file": "maybe"}, "clean-dump-file: 'maybe' is refused; write true or false"),
        ({"routes": ["a"]}, "routes: write a mapping: keys and values, indented below it"),
        ({"spark": "local"}, "spark: write a mapping: keys and values, indented below it"),
        ({"mysql_instances": []}, "mysql-instances: name at least one source"),
        ({"mysql_instances": {"source-id": "s1"}}, "mysql-instances: write a list: [a, b]"),
        ({"mysql_instances": ["s1"]}, "mysql-instances[0]: write a mapping"),
        ({"mysql_instances": [{"source-id": "é" * 17}]}, "write 1 to 32 bytes, this has 34"),
        ({"mysql_instances": [{"source-id": ".."}]}, "it names a folder"),
        ({"unknown": 1}, "unknown: unknown key"),
    ],
)
def test_a_wrong_value_says_where_what_and_what_instead(files: Any, changes: dict[str, Any], expected: str) -> None:
    (found,) = files.task_problems(**changes)
    assert expected in found


@pytest.mark.parametrize("zone", ["", "+00:00", "UTC"])
def test_time_zones(files: Any, zone: str) -> None:
    assert files.read_task(timezone=zone).timezone == zone


def test_empty_keys_count_as_not_set(files: Any) -> None:
    text = (
        "name: t\ntask-mode: full\nroutes:\nmeta-schema: ~\ntarget-database: {host: h, port: 1, user: u, password: }\n"
    )
    task = parse_task(text + "mysql-instances: [{source-id: s, meta: , route-rules: }]")
    assert (task.routes, task.meta_schema, task.target_database.password) == ({}, "dm_meta", "")
    assert task.mysql_instances[0].meta is None
    assert task.notices == ()


def test_old_names_are_read_and_refused_beside_the_new_ones(files: Any) -> None:
    instance = {"source-id": "s1", "black-white-list": "b", "loader": {"on-duplicate": "ignore", "import-mode": "sql"}}
    task = files.read_task(black_white_list={"b": {"do-dbs": ["a"]}}, mysql_instances=[instance])
    assert task.block_allow_list["b"].do_dbs == ("a",)
    assert task.mysql_instances[0].block_allow_list == "b"
    loader = task.mysql_instances[0].loader
    assert loader is not None
    assert (loader.on_duplicate_logical, loader.import_mode) == ("ignore", "logical")
    instance["block-allow-list"] = "c"
    problems = files.task_problems(block_allow_list={"c": {}}, mysql_instances=[instance])
    assert problems == ["mysql-instances[0].black-white-list: the old name of `block-allow-list`, which is set too; "
                        "keep `block-allow-list`"]  # fmt: skip


def test_a_problem_under_an_old_name_keeps_its_line() -> None:
    text = "name: t\ntask-mode: all\nblack-white-list:\n  b:\n    do-dbs: x\n"
    with pytest.raises(ConfigError, match=r"line 5: block-allow-list\.b\.do-dbs: 'x' is refused; write a list"):
        parse_task(text)


@pytest.mark.parametrize(
    "secret_at",
    [
        "target-database: {host: h, port: 1, user: u, password: [geheim]}",
        "target-database: {host: h, port: 1, user: u, passwort: geheim}",
        "target-database: root:geheim@h",
        "target-database: {host: h, port: 1, user: u, session: {sql_mode: NO_BACKSLASH_ESCAPES, x: geheim}}",
        "target-database: {host: h, port: 1, user: u, session: geheim}",
        "target-database: {host: h, port: 1, user: u, security: {ssl-key-bytes: geheim}}",
        "mydumpers: {g: {extra-args: -pgeheim}}",
        "mydumpers: {g: {extra-args: --password=geheim}}",
        "mydumpers: {g: {extra-args: geheim}}",
        "spark: {conf: geheim}",
    ],
)
def test_no_secret_shows_in_an_error(secret_at: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_task(f"name: t\ntask-mode: all\nmysql-instances: [{{source-id: s}}]\n{secret_at}\n")
    assert "geheim" not in "".join(traceback.format_exception(caught.value))
    assert "geheim" not in repr(caught.value.to_dict())


def test_files_are_named_in_errors_and_unreadable_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    with pytest.raises(ConfigError, match="No such file") as caught:
        load_task(path)
    assert (caught.value.code, caught.value.where.file) == ("CONFIG-002", str(path))
    path.write_bytes(b"name: \xff")
    with pytest.raises(ConfigError, match="byte 6 is not UTF-8"):
        load_source(path)
    path.write_text("name: t\n")
    with pytest.raises(ConfigError) as caught:
        load_task(path)
    assert (caught.value.code, caught.value.where.file) == ("CONFIG-001", str(path))


def test_an_error_crosses_processes_whole() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_task(BROKEN)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"source_id": None}, "source-id: missing"),
        ({"relay_binlog_name": "mysql-bin"}, "write the name of a binlog file: mysql-bin.000001"),
        ({"relay_binlog_gtid": "0-1"}, "write a GTID set: 0-1-100 (MariaDB)"),
        ({"flavor": "postgres"}, "flavor: 'postgres' is refused; write one of '', 'mysql' or 'mariadb'"),
        ({"server_id": 4294967296}, "write a number of at most 4294967295"),
        ({"checker": {"backoff-max": "5"}}, "write a duration with its unit, such as 30s, 5m or 1h30m"),
        ({"purge": {"interval": -1}}, "purge.interval: '-1' is refused; write a number of at least 0"),
        ({"form": {}}, "form: unknown key (did you mean `from`?)"),
    ],
)
def test_a_wrong_source_says_what_instead(files: Any, changes: dict[str, Any], expected: str) -> None:
    (found,) = files.source_problems(**changes)
    assert expected in found


@pytest.mark.parametrize(
    "gtid",
    [
        "0-1-100",
        "0-1-100,1-2-5",
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100:200",
        "3E11FA47-71CA-11E1-9E33-C80AA9429562:1-100, 3e11fa47-71ca-11e1-9e33-c80aa9429563:7",
    ],
)
def test_gtid_sets_of_both_kinds_are_read(files: Any, gtid: str) -> None:
    assert files.read_source(relay_binlog_gtid=gtid).relay_binlog_gtid == gtid


def test_a_source_is_read(files: Any) -> None:
    source = files.read_source(
        flavor="MariaDB", server_id=0, checker={"backoff-max": "5m", "backoff-rollback": "300000ms"}
    )
    assert (source.flavor, source.server_id) == ("mariadb", None)
    assert (source.checker.backoff_max, source.checker.backoff_rollback) == (300.0, 300.0)
    assert (source.purge.interval, source.purge.expires, source.purge.remain_space) == (3600, 0, 15)
    assert source.database.host == "127.0.0.1"


def test_a_validator_in_a_task_that_follows_no_binlog_gives_a_notice(files: Any) -> None:
    keys: dict[str, Any] = {
        "validators": {"v": {"mode": "full"}, "off": {"mode": "none"}},
        "mysql_instances": [
            {"source-id": "s1", "validator-config-name": "v"},
            {"source-id": "s2", "validator-config-name": "off"},
        ],
    }
    assert files.read_task(**keys, task_mode="all").notices == ()
    (notice,) = files.read_task(**keys, task_mode="full").notices
    assert notice.startswith("mysql-instances[0].validator-config-name has no effect: task-mode full follows no binlog")
    assert "`unshard compare` compares the rows that were loaded" in notice


def test_the_form_of_a_dump_of_dumpling_gives_a_notice_where_none_is_loaded(files: Any) -> None:
    flag = "--escape-backslash=false"
    keys: dict[str, Any] = {
        "mydumpers": {"d": {"extra-args": flag}, "e": {"extra-args": "--escape-backslash"}},
        "mysql_instances": [
            {"source-id": "s1", "mydumper-config-name": "d"},
            {"source-id": "s2", "mydumper": {"extra-args": flag}},
            {"source-id": "s3", "mydumper-config-name": "e"},
        ],
    }
    assert files.read_task(**keys, task_mode="load").notices == ()
    notices = files.read_task(**keys, task_mode="full").notices
    assert [notice.partition(" has no effect: ")[0] for notice in notices] == [
        f"{flag} in extra-args of mysql-instances[{index}]" for index in (0, 1)
    ]
