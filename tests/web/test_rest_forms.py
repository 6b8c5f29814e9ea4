"""DM's objects of tasks and sources: taken as they were shown they change nothing, whatever they have no place for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unshard.config.files import load_source, load_task, parse_source, parse_task
from unshard.config.task import TaskConfig
from unshard.errors import ClusterError
from unshard.web.rest import source_form, task_form

EXAMPLES = Path(__file__).parents[2] / "examples"
TASK = """
name: t
task-mode: all
target-database: {host: h, port: 4000, user: r, password: p, security: {ssl-ca: /ca.pem}, max-rows-per-second: 5}
block-allow-list: {b: {do-dbs: [shop], ignore-tables: [{db-name: shop, tbl-name: log}]}}
expression-filter: {e: {schema: shop, table: o, insert-value-expr: "a > 1"}}
routes: {r: {schema-pattern: shop, table-pattern: "o*", target-schema: x, target-table: o}}
filters: {f: {schema-pattern: shop, events: [all dml], action: Do}}
syncers: {s: {worker-count: 3, compact: true}}
mysql-instances:
- {source-id: a, block-allow-list: b,
   expression-filters: [e], route-rules: [r], filter-rules: [f], syncer-config-name: s}
"""
SOURCE = """
source-id: a
server-id: 77
case-sensitive: true
from: {host: h, port: 3306, user: u, password: p, security: {ssl-ca: /ca.pem}}
checker: {check-enable: false}
"""
RULES: list[dict[str, Any]] = [
    {"source": {"source_name": "a", "schema": "shop_*", "table": "o_*"}, "target": {"schema": "shop", "table": "o"},
     "binlog_filter_rule": ["no-drop"]},
    {"source": {"source_name": "a", "schema": "shop_*", "table": "kept"}, "binlog_filter_rule": []},
]  # fmt: skip
OBJECT: dict[str, Any] = {
    "name": "t",
    "task_mode": "all",
    "target_config": {"host": "h", "port": 4000, "user": "r", "password": "p"},
    "binlog_filter_rule": {"no-drop": {"ignore_event": ["drop table"]}},
    "table_migrate_rule": RULES,
    "source_config": {"source_conf": [{"source_name": "a"}]},
}


def taken_back(known: TaskConfig, **changes: Any) -> TaskConfig:
    """The task after a client has read its object and has put it back."""
    shown = task_form.from_config(known) | changes
    return parse_task(task_form.to_text(task_form.Task.model_validate(shown), known))


@pytest.mark.parametrize("known", [parse_task(TASK), load_task(EXAMPLES / "everything.yaml")], ids=["rules", "example"])
def test_a_task_taken_as_it_was_shown(known: TaskConfig) -> None:
    assert taken_back(known) == known


def test_a_source_taken_as_it_was_shown() -> None:
    for known in (parse_source(SOURCE), load_source(EXAMPLES / "source-1.yaml")):
        shown = source_form.from_config(known)
        for left_out in ((), ("password", "purge", "relay_config", "flavor")):
            form = {key: value for key, value in shown.items() if key not in left_out}
            assert parse_source(source_form.to_text(source_form.Source.model_validate(form), known)) == known


def test_what_an_object_changes_is_changed() -> None:
    known = parse_task(TASK)
    settings = {"source_conf": [{"source_name": "a"}], "incr_migrate_conf": {"repl_batch": 7}}
    found = taken_back(known, ignore_checking_items=["version"], source_config=settings)
    assert found.ignore_checking_items == ("version",)
    syncer = found.syncers["s"]
    assert (syncer.batch, syncer.worker_count, syncer.compact) == (7, 3, True)
    assert found.model_copy(update={"ignore_checking_items": (), "syncers": known.syncers}) == known


def test_rules_that_would_be_lost_are_not_replaced() -> None:
    with pytest.raises(ClusterError) as caught:
        taken_back(parse_task(TASK), table_migrate_rule=RULES)
    assert caught.value.code == "CLUSTER-016"
    assert "update-task" in str(caught.value)


def test_rules_of_an_object_are_shown_and_changed_as_they_were_given() -> None:
    made = parse_task(task_form.to_text(task_form.Task.model_validate(OBJECT)))
    shown = task_form.from_config(made)
    assert [rule | {"target": rule["target"] or None} for rule in shown["table_migrate_rule"]] == [
        RULES[0], RULES[1] | {"target": None}
    ]  # fmt: skip
    assert shown["binlog_filter_rule"] == {"no-drop": {"ignore_event": ["drop table"], "ignore_sql": []}}
    assert taken_back(made) == made
    further = {"source": {"source_name": "a", "schema": "other", "table": ""}, "binlog_filter_rule": []}
    changed = taken_back(made, table_migrate_rule=[*shown["table_migrate_rule"], further])
    (instance,) = changed.mysql_instances
    allowed = changed.block_allow_list[instance.block_allow_list].do_tables
    assert [(entry.db_name, entry.tbl_name) for entry in allowed] == [
        ("shop_*", "o_*"), ("shop_*", "kept"), ("other", "*")
    ]  # fmt: skip
    assert [changed.filters[name].table_pattern for name in instance.filter_rules] == ["o_*"]
    assert len(instance.route_rules) == 1


def test_a_switch_that_an_object_leaves_out_stays() -> None:
    """DM wants all three in every object; an object without one of them changes nothing else either."""
    source = parse_source(SOURCE + "enable: false\nenable-gtid: true\n")
    form = {"source_name": "a", "host": "h", "port": 3306, "user": "u"}
    assert parse_source(source_form.to_text(source_form.Source.model_validate(form), source)) == source
    switched = source_form.Source.model_validate(form | {"enable": True, "enable_gtid": False})
    found = parse_source(source_form.to_text(switched, source))
    assert (found.enable, found.enable_gtid) == (True, False)
    made = parse_source(source_form.to_text(source_form.Source.model_validate(form)))
    assert (made.enable, made.enable_gtid) == (True, False)

    task = parse_task(TASK + "online-ddl: false\n")
    shown = task_form.from_config(task)
    assert shown.pop("enhance_online_schema_change") is False
    assert parse_task(task_form.to_text(task_form.Task.model_validate(shown), task)) == task
    assert taken_back(task, enhance_online_schema_change=True).online_ddl is True
    assert parse_task(task_form.to_text(task_form.Task.model_validate(OBJECT))).online_ddl is True


@pytest.mark.parametrize("left_out", [("table_migrate_rule", "binlog_filter_rule"), ("binlog_filter_rule",)])
def test_rules_that_an_object_leaves_out_stay(left_out: tuple[str, ...]) -> None:
    for known in (parse_task(task_form.to_text(task_form.Task.model_validate(OBJECT))), parse_task(TASK)):
        form = {key: value for key, value in task_form.from_config(known).items() if key not in left_out}
        assert parse_task(task_form.to_text(task_form.Task.model_validate(form), known)) == known
    gone = taken_back(parse_task(task_form.to_text(task_form.Task.model_validate(OBJECT))), table_migrate_rule=[])
    assert gone.routes == {}


OTHERS = [{"host": "other"}, {"port": 1}, {"user": "root"}]


@pytest.mark.parametrize("other", OTHERS, ids=["host", "port", "user"])
@pytest.mark.parametrize("password", ["******", None])
def test_a_password_that_an_object_leaves_out_goes_to_the_same_login_only(
    other: dict[str, Any], password: str | None
) -> None:
    """As for a draft of the page. A login without a password has none to give away."""
    source = parse_source(SOURCE)
    form = source_form.from_config(source) | {"password": password} | other
    with pytest.raises(ClusterError, match=r"CLUSTER-016.*(?s:.*)from has another host, port or user"):
        source_form.to_text(source_form.Source.model_validate(form), source)
    new = source_form.Source.model_validate(form | {"password": "new"})
    assert parse_source(source_form.to_text(new, source)).database.password == "new"
    empty = parse_source(SOURCE.replace("password: p", "password: ''"))
    text = source_form.to_text(source_form.Source.model_validate(form), empty)
    assert parse_source(text).database.password == ""

    task = parse_task(TASK)
    target = task_form.from_config(task)["target_config"] | {"password": password or ""} | other
    with pytest.raises(ClusterError, match=r"CLUSTER-016.*(?s:.*)target-database has another host, port or user"):
        taken_back(task, target_config=target)
    assert taken_back(task, target_config=target | {"password": "new"}).target_database.password == "new"
    assert taken_back(parse_task(TASK.replace("password: p", "password: ''")), target_config=target)
