"""`filters` of a task and of a source: what is accepted, what is refused when the file is read, and why."""

from __future__ import annotations

from typing import Any

import pytest

from unshard.config.event_names import ALL_EVENTS, EventName, event_word, list_fault, matches

RULE = {"schema-pattern": "a_*", "table-pattern": "t_*", "events": ["delete"], "action": "Ignore"}


def used(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"source-id": "s1", "filter-rules": list(names), **more}]


def task_fault(files: Any, **changes: Any) -> str:
    rule = {key: value for key, value in {**RULE, **changes}.items() if value is not None}
    (found,) = files.task_problems(filters={"f": rule}, mysql_instances=used("f"))
    return str(found)


def test_a_filter_of_a_task_and_one_of_a_source(files: Any) -> None:
    rule = {**RULE, "events": ["Create  Schema", "ALL DML"], "sql-pattern": ["^drop"], "action": "Do"}
    task = files.read_task(filters={"f": rule}, mysql_instances=used("f"))
    assert task.filters["f"].events == ("create database", "all dml")
    source = files.read_source(filters=[RULE, {**RULE, "table-pattern": None}])
    assert [one.table_pattern for one in source.filters] == ["t_*", None]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"action": None}, "filters.f.action: missing: it has to be set"),
        ({"action": "ignore"}, "write one of 'Do', 'Ignore' or 'Error' (did you mean `Ignore`?)"),
        ({"schema-pattern": None}, "filters.f.schema-pattern: missing"),
        ({"schema-pattern": ""}, "an empty pattern"),
        ({"table-pattern": "t*x"}, "`*`"),
        ({"table-pattern": "[b-a]"}, "runs backwards"),
        ({"table-pattern": "x" * 65}, "no name has more than 64 characters"),
        ({"events": ["truncat table"]}, "`truncat table` is no event (did you mean `truncate table`?)"),
        ({"events": ["delete", "DELETE"]}, "events: `delete` is listed twice; keep one"),
        ({"events": ["none ddl", "drop table"]}, "`drop table` comes too late"),
        ({"events": ["all", "none ddl"]}, "`none ddl` comes too late"),
        ({"events": []}, "it can never match; name events, or give a sql-pattern"),
        ({"events": ["none"]}, "it can never match"),
        ({"events": ["recover table"]}, "it can never match"),
        ({"events": [], "action": "Do", "sql-pattern": ["x"]}, "events matches nothing, so with `Do` everything"),
        ({"events": ["none"], "action": "Do"}, "events matches nothing, so with `Do` everything"),
        ({"sql-pattern": ["("]}, "not a regular expression"),
        ({"sql-pattern": [""]}, "an empty pattern is found in every statement"),
        ({"sql-pattern": ["DROP[[:space:]]"]}, "classes such as [[:space:]] are not known here"),
    ],
    ids=str,
)
def test_a_rule_that_is_malformed_or_can_never_match(files: Any, changes: dict[str, Any], fault: str) -> None:
    assert fault in task_fault(files, **changes)


def test_the_same_rule_in_a_source_file(files: Any) -> None:
    (found,) = files.source_problems(filters=[{**RULE, "events": ["truncat table"]}])
    assert found.startswith("filters[0].events[0]: ")


@pytest.mark.parametrize(
    "changes",
    [
        {"events": [], "sql-pattern": ["^DROP"]},
        {"events": ["all"], "action": "Do"},
        {"events": ["all dml", "insert"]},
        {"events": ["insert", "none"], "action": "Error"},
        {"events": ["create view", "drop view"]},
        {"events": ["recover table", "delete"]},
        {"table-pattern": "~^t_\\d+$"},
    ],
    ids=str,
)
def test_what_is_unusual_and_fine(files: Any, changes: dict[str, Any]) -> None:
    files.read_task(filters={"f": {**RULE, **changes}}, mysql_instances=used("f"))


def test_two_filters_of_one_instance_have_different_patterns(files: Any) -> None:
    twin = {**RULE, "schema-pattern": "A_*", "action": "Error"}
    assert files.task_problems(filters={"f": RULE, "g": twin}, mysql_instances=used("f", "g")) == [
        "filters.g: `f` has the same patterns; make one rule of the two"
    ]
    files.read_task(filters={"f": RULE, "g": twin}, mysql_instances=used("f", "g"), case_sensitive=True)
    apart = [*used("f"), {"source-id": "s2", "filter-rules": ["g"]}]
    files.read_task(filters={"f": RULE, "g": twin}, mysql_instances=apart)
    assert files.source_problems(filters=[RULE, twin]) == [
        "filters[1]: `0` has the same patterns; make one rule of the two"
    ]


def test_a_filter_in_a_task_that_follows_no_binlog_gives_a_notice(files: Any) -> None:
    keys = {"filters": {"f": RULE}, "mysql_instances": used("f")}
    assert files.read_task(**keys, task_mode="all").notices == ()
    assert files.read_task(**keys, task_mode="full").notices == (
        "mysql-instances[0].filter-rules has no effect: task-mode full follows no binlog",
    )


@pytest.mark.parametrize(
    ("words", "event", "said"),
    [
        (["all"], "insert", True),
        (["none", "insert"], "insert", False),
        (["insert", "none"], "insert", True),
        (["all dml"], "drop table", False),
        (["all ddl"], "drop table", True),
        (["none dml", "all"], "update", False),
        (["none dml", "all"], "create table", True),
        (["incompatible ddl changes"], "drop column", True),
        (["incompatible ddl changes"], "alter table", False),
        (["incompatible ddl changes"], "delete", False),
        (["truncate table"], "truncate table", True),
        ([], "insert", False),
    ],
)
def test_the_first_word_that_says_anything_decides(words: list[str], event: str, said: bool) -> None:
    assert matches(words, EventName(event)) is said


def test_an_exact_name_matches_as_well_but_makes_nothing_incompatible() -> None:
    add_column = EventName("alter table", frozenset({"add column"}))
    assert matches(["add column"], add_column)
    assert matches(["alter table"], add_column)
    assert not matches(["incompatible ddl changes"], add_column)


def test_every_event_is_a_word_and_stands_for_itself() -> None:
    for event in ALL_EVENTS:
        assert event_word(event.name.upper()) == event.name
        assert list_fault((event.name,)) is None
        assert [other.name for other in ALL_EVENTS if matches((event.name,), other)] == [event.name]
