"""Names between sections: dangling, unused, repeated; keys that exclude each other; rules that surely clash."""

from __future__ import annotations

from typing import Any

import pytest

from support.refusals import refusal
from unshard.errors import ConfigError

ROUTE = {"schema-pattern": "a_*", "table-pattern": "t_*", "target-schema": "b", "target-table": "t"}
MAPPING = {
    "schema-pattern": "a_*", "table-pattern": "t_*", "source-column": "id", "target-column": "id",
    "expression": "partition id", "arguments": ["1", "a_", "t_"],
}  # fmt: skip
SECTIONS: list[tuple[str, str, Any]] = [
    ("routes", "route-rules", ROUTE),
    ("column-mappings", "column-mapping-rules", MAPPING),
    ("block-allow-list", "block-allow-list", {}),
    ("mydumpers", "mydumper-config-name", {}),
    ("loaders", "loader-config-name", {}),
    ("syncers", "syncer-config-name", {}),
    ("validators", "validator-config-name", {}),
]


def instance(**keys: Any) -> list[dict[str, Any]]:
    return [{"source-id": "s1", **{key.replace("_", "-"): value for key, value in keys.items()}}]


@pytest.mark.parametrize(("section", "key", "rule"), SECTIONS)
def test_a_rule_has_to_be_there_and_to_be_used(files: Any, section: str, key: str, rule: Any) -> None:
    many = key.endswith("-rules")
    used = instance(**{key: ["rule-1"] if many else "rule-1"})
    files.read_task(**{section: {"rule-1": rule}, "mysql_instances": used})
    (unused,) = files.task_problems(**{section: {"rule-1": rule}})
    assert unused == f"{section}.rule-1: no instance uses it; name it in one of mysql-instances, or take it out"
    wrong = instance(**{key: ["rule-1", "rule-l"] if many else "rule-l"})
    problems = files.task_problems(**{section: {"rule-1": rule}, "mysql_instances": wrong})
    dangling = f"mysql-instances[0].{key}: `rule-l` is not defined under {section} (did you mean `rule-1`?)"
    assert set(problems) == {dangling} if many else {dangling, unused}


def test_a_rule_is_named_once_by_an_instance(files: Any) -> None:
    problems = files.task_problems(routes={"r": ROUTE}, mysql_instances=instance(route_rules=["r", "r"]))
    assert problems == ["mysql-instances[0].route-rules: `r` is listed twice; keep one"]


def test_a_source_is_named_once_by_a_task(files: Any) -> None:
    problems = files.task_problems(mysql_instances=[*instance(), {"source-id": "s2"}, *instance()])
    assert problems == ["mysql-instances[2].source-id: 's1' is the source of entry [0] already; name another"]


@pytest.mark.parametrize("unit", ["mydumper", "loader", "syncer"])
def test_settings_are_named_or_inline(files: Any, unit: str) -> None:
    used = instance(**{f"{unit}-config-name": "x", unit: {}})
    problems = files.task_problems(**{f"{unit}s": {"x": {}}, "mysql_instances": used})
    assert problems == [f"mysql-instances[0].{unit}: set beside {unit}-config-name; keep one of the two"]


def test_a_starting_point_names_a_place(files: Any) -> None:
    (found,) = files.task_problems(mysql_instances=instance(meta={"binlog-pos": 5}))
    assert found == "mysql-instances[0].meta: names no place; write binlog-name, or binlog-gtid"


def clash(files: Any, one: dict[str, Any], other: dict[str, Any], **changes: Any) -> bool:
    """Whether the two routes are refused when one instance uses both."""
    rules = {"one": {"target-schema": "x", **one}, "other": {"target-schema": "y", **other}}
    changed = {"routes": rules, "mysql_instances": instance(route_rules=["one", "other"]), **changes}
    refused = refusal(ConfigError, files.read_task, **changed)
    assert refused is None or "routes.other: whatever it matches, `one` matches too" in refused.cause
    return refused is not None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (("a", "t"), ("a", "t"), True),
        (("a", "t"), ("A", "T"), True),
        (("a_*", "t_*"), ("a_1", "t_1"), True),
        (("a_1", "t_1"), ("a_*", "t_*"), True),
        (("a_*", "*"), ("a_?", "t_[0-9]"), True),
        (("~^a_", "t"), ("a_1", "t"), True),
        (("~^a_", "t"), ("~^a_", "t"), True),
        (("*", None), ("a", None), True),
        (("a", None), ("a", "t"), False),
        (("a_*", "t_1"), ("a_1", "t_*"), False),
        (("a_?", "t"), ("?_1", "t"), False),
        (("a", "t_1"), ("a", "t_2"), False),
        (("~^a", "t"), ("~^ab", "t"), False),
        (("a_[0-4]", "t"), ("a_[5-9]", "t"), False),
    ],
)
def test_two_routes_of_a_level_may_not_surely_match_the_same_table(
    files: Any, one: tuple[str, str | None], other: tuple[str, str | None], expected: bool
) -> None:
    def rule(patterns: tuple[str, str | None]) -> dict[str, Any]:
        keys = {"schema-pattern": patterns[0], "table-pattern": patterns[1]}
        return {key: pattern for key, pattern in keys.items() if pattern is not None}

    assert clash(files, rule(one), rule(other)) == expected


def test_case_keeps_routes_apart_when_it_counts(files: Any) -> None:
    one, other = {"schema-pattern": "a", "table-pattern": "t"}, {"schema-pattern": "A", "table-pattern": "t"}
    assert clash(files, one, other)
    assert not clash(files, one, other, case_sensitive=True)


def test_routes_of_different_instances_do_not_clash(files: Any) -> None:
    instances = [{"source-id": "s1", "route-rules": ["r1"]}, {"source-id": "s2", "route-rules": ["r2"]}]
    files.read_task(routes={"r1": ROUTE, "r2": ROUTE}, mysql_instances=instances)


def test_two_column_mappings_may_not_surely_match_the_same_table(files: Any) -> None:
    rules = {"m1": MAPPING, "m2": {**MAPPING, "source-column": "x", "target-column": "x"}}
    (found,) = files.task_problems(column_mappings=rules, mysql_instances=instance(column_mapping_rules=["m1", "m2"]))
    assert found.startswith("column-mappings.m2: whatever it matches, `m1` matches too")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"schema-pattern": "a*b"}, "write a regular expression: ~^a.*b$"),
        ({"schema-pattern": "a[b"}, "close the set: [a-z]"),
        ({"schema-pattern": "a[]"}, "an empty set"),
        ({"schema-pattern": "a[z-a]"}, "the range z-a runs backwards; write a-z"),
        ({"schema-pattern": "~("}, "not a regular expression"),
        ({"schema-pattern": ""}, "an empty pattern; write a name or `*`"),
        ({"target-schema": ""}, "write at least 1 character(s)"),
        ({"target-table": "x" * 65}, "write at most 64 characters"),
        ({"table-pattern": None}, "target-table needs table-pattern"),
    ],
)
def test_a_bad_route_is_refused(files: Any, change: dict[str, Any], expected: str) -> None:
    (found,) = files.task_problems(routes={"r": {**ROUTE, **change}}, mysql_instances=instance(route_rules=["r"]))
    assert expected in found


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["1", "a"], "write three or four texts"),
        (["1", "a", "b", "c", "d"], "write three or four texts"),
        (["16", "", ""], "a number from 0 to 15"),
        (["-1", "", ""], "a number from 0 to 15"),
        (["²", "", ""], "a number from 0 to 15"),
        (["", "", ""], "all parts are empty"),
        (["", "", "", "_"], "all parts are empty"),
    ],
)
def test_bad_arguments_of_a_column_mapping_are_refused(files: Any, arguments: list[str], expected: str) -> None:
    rule = {**MAPPING, "arguments": arguments}
    used = instance(column_mapping_rules=["m"])
    (found,) = files.task_problems(column_mappings={"m": rule}, mysql_instances=used)
    assert found.startswith("column-mappings.m.arguments: ")
    assert expected in found


@pytest.mark.parametrize(
    ("keys", "arguments", "expected"),
    [
        ({"expression": "add prefix"}, [], "write one text"),
        ({"expression": "add suffix"}, [""], "write one text"),
        ({"expression": "add prefix"}, ["1", "a", "b"], "write one text"),
    ],
)
def test_a_text_to_add_is_one(files: Any, keys: dict[str, str], arguments: list[str], expected: str) -> None:
    used = instance(column_mapping_rules=["m"])
    (found,) = files.task_problems(
        column_mappings={"m": {**MAPPING, **keys, "arguments": arguments}}, mysql_instances=used
    )
    assert found.startswith("column-mappings.m.arguments: ")
    assert expected in found


@pytest.mark.parametrize(
    ("regexp", "expected"),
    [("order_.*", "no capture group"), ("order_(", "not a regular expression"), ("(?:a)", "no capture group")],
)
def test_what_extracts_nothing_is_refused(files: Any, regexp: str, expected: str) -> None:
    rule = {"schema-pattern": "a", "target-schema": "b"}
    rule |= {"extract-schema": {"schema-regexp": regexp, "target-column": "c"}}  # type: ignore[dict-item]
    (found,) = files.task_problems(routes={"r": rule}, mysql_instances=instance(route_rules=["r"]))
    assert found.startswith("routes.r.extract-schema.schema-regexp: ")
    assert expected in found


def test_two_parts_for_one_column_are_refused(files: Any) -> None:
    parts = {"extract-schema": ("schema-regexp", "c"), "extract-source": ("source-regexp", "C")}
    rule: dict[str, Any] = {"schema-pattern": "a", "target-schema": "b"}
    rule |= {part: {key: "(.*)", "target-column": column} for part, (key, column) in parts.items()}
    (found,) = files.task_problems(routes={"r": rule}, mysql_instances=instance(route_rules=["r"]))
    assert "two parts are extracted to one column" in found
