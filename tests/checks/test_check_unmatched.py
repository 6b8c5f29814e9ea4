"""Rules that take nothing are told before the start, with the name that was perhaps meant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.checked_tasks import found, report_of
from support.task_runs import TaskFiles
from unshard.checks.run import require
from unshard.errors import CheckError

pytestmark = pytest.mark.server
NAME = "unmatched rule checker"
DUMPER = {"mydumper-config-name": "global"}


def told(files: TaskFiles) -> list[tuple[str, str]]:
    return [(finding.severity, finding.short_error) for finding in found(files, NAME)]


def routed(files: TaskFiles, **route: Any) -> TaskFiles:
    rule = {key.replace("_", "-"): value for key, value in route.items()}
    return replace(files, keys={"routes": {"orders": rule}}, instance={"route-rules": ["orders"]})


def test_rules_that_match_are_not_told_of(files: TaskFiles) -> None:
    (schema,) = files.schemas
    assert told(files) == []
    assert told(routed(files, schema_pattern=schema, table_pattern="t*", target_schema="x", target_table="y")) == []


def test_a_route_for_no_table_is_told_with_the_nearest_name(files: TaskFiles) -> None:
    (schema,) = files.schemas
    files.sources["s1"].run(f"CREATE TABLE {schema}.orders_1 (id INT PRIMARY KEY)")
    route = {"schema_pattern": schema, "table_pattern": "order_*", "target_schema": "x", "target_table": "y"}
    expected = f"route orders: {schema}.order_* matches no table of s1; the nearest name is {schema}.orders_1"
    assert told(routed(files, **route)) == [("warn", expected)]


def test_lists_and_column_mappings_for_no_table_are_told(files: TaskFiles) -> None:
    (schema,) = files.schemas
    entries = [{"db-name": schema, "tbl-name": "t"}, {"db-name": schema, "tbl-name": "tt"}]
    mapping = {
        "schema-pattern": f"{schema}x",
        "expression": "partition id",
        "source-column": "id",
        "target-column": "id",
        "arguments": ["1", "", ""],
    }
    keys = {"block-allow-list": {"own": {"do-tables": entries}}, "column-mappings": {"ids": mapping}}
    rules = replace(files, keys=keys, instance={"column-mapping-rules": ["ids"]})
    assert told(rules) == [
        ("warn", f"do-tables: {schema}.tt matches no table of s1; the nearest name is {schema}.t"),
        ("warn", f"column mapping ids: {schema}x matches no table of s1; the nearest name is {schema}"),
    ]


def flagged(files: TaskFiles, flags: str, mode: str = "all") -> TaskFiles:
    return replace(files, keys={"task-mode": mode, "mydumpers": {"global": {"extra-args": flags}}}, instance=DUMPER)


@pytest.mark.parametrize("mode", ["full", "all"])
@pytest.mark.parametrize("flag", ["-B {schema}X", "-T {schema}.T"])
def test_an_exact_name_that_no_table_has_is_refused(flag: str, mode: str, files: TaskFiles) -> None:
    """Nothing would be copied."""
    (schema,) = files.schemas
    flags = flag.format(schema=schema)
    near = schema if "-B" in flag else f"{schema}.t"
    expected = f"{flags[:2]} of extra-args: {flags[3:]} matches no table of s1; the nearest name is {near}"
    assert ("fail", expected) in told(flagged(files, flags, mode))
    with pytest.raises(CheckError, match="matches no table of s1"):
        require(report_of(flagged(files, flags, mode)))


def test_a_table_filter_that_takes_nothing_is_told(files: TaskFiles) -> None:
    (schema,) = files.schemas
    flags = f"--filter '{schema}.t,{schema}.order_*,!{schema}.tmp_*'"
    expected = f"--filter of extra-args: {schema}.order_* matches no table of s1"
    ((severity, text),) = told(flagged(files, flags))
    assert (severity, text.split(";")[0]) == ("warn", expected)


def test_tables_that_are_followed_without_a_copy_are_told(files: TaskFiles) -> None:
    (schema,) = files.schemas
    files.sources["s1"].run(f"CREATE TABLE {schema}.more (id INT PRIMARY KEY)")
    ((severity, text),) = told(flagged(files, f"-T {schema}.t"))
    assert severity == "warn"
    assert text.startswith("s1 follows tables without a copy")
    assert f"for the dump: {schema}.more;" in text
    assert told(flagged(files, f"-T {schema}.t", "full")) == []
    assert told(flagged(files, f"-B {schema}")) == []


def test_a_task_that_would_copy_nothing_does_not_start(files: TaskFiles) -> None:
    (schema,) = files.schemas
    nothing = replace(files, schemas=(f"{schema}_typo",), keys={"task-mode": "full"})
    first, second = told(nothing)
    assert first[0] == "fail"
    assert first[1].startswith("the task takes no table at all")
    assert second == ("warn", f"do-dbs: {schema}_typo matches no table of s1; the nearest name is {schema}")
    with pytest.raises(CheckError, match="takes no table at all"):
        require(report_of(nothing))
    require(report_of(replace(nothing, keys={**nothing.keys, "ignore-checking-items": ["unmatched_rules"]})))


def test_a_task_that_follows_may_begin_before_its_tables_are_made(files: TaskFiles) -> None:
    (schema,) = files.schemas
    later = replace(files, schemas=(f"{schema}_later",), keys={"task-mode": "all"})
    assert [severity for severity, _ in told(later)] == ["warn", "warn"]
    require(report_of(later))


def test_a_source_of_which_nothing_is_taken_is_told(files: TaskFiles, second_source: Any, schema: str) -> None:
    second_source.run(f"CREATE DATABASE {schema}_other", f"CREATE TABLE {schema}_other.t (id INT PRIMARY KEY)")
    both = replace(files, sources={**files.sources, "s2": second_source})
    assert [severity for severity, _ in told(both)] == ["warn"]
    assert "no table of source s2 is taken" in told(both)[0][1]
