"""The decision table of `unshard.ddl.intent`, cell by cell, and what counts as the same structure."""

from __future__ import annotations

import json

import pytest

from unshard.ddl.context import Context
from unshard.ddl.intent import Again, Decision, Intent, Step, again, decide
from unshard.ddl.parse import classify_ddl
from unshard.ddl.statement import StatementKind
from unshard.errors import Where

X, Y, Z = ("CREATE TABLE `t` (\n  `x` int(11) DEFAULT NULL\n)".replace("x", letter) for letter in "xyz")
N = None
SAME, DIFFERENT = (X, X), (X, Y)


@pytest.mark.parametrize(
    ("around", "again", "actual", "resumed", "decision"),
    [
        (DIFFERENT, Again.HARMLESS, Y, False, Decision.DONE),
        (DIFFERENT, Again.HARMLESS, Y, True, Decision.DONE),
        (DIFFERENT, Again.HARMLESS, X, False, Decision.RUN),
        (DIFFERENT, Again.HARMFUL, X, True, Decision.RUN),
        (DIFFERENT, Again.HARMLESS, Z, False, Decision.CONFLICT),
        (DIFFERENT, Again.HARMLESS, N, True, Decision.CONFLICT),
        ((N, X), Again.HARMLESS, N, True, Decision.RUN),
        ((N, X), Again.HARMLESS, X, False, Decision.DONE),
        ((N, X), Again.HARMLESS, Y, False, Decision.CONFLICT),
        ((X, N), Again.HARMLESS, N, False, Decision.DONE),
        ((X, N), Again.HARMLESS, X, True, Decision.RUN),
        ((X, N), Again.HARMLESS, Y, True, Decision.CONFLICT),
        (SAME, Again.HARMLESS, X, False, Decision.RUN),
        (SAME, Again.HARMLESS, X, True, Decision.RUN),
        (SAME, Again.NOTHING, X, False, Decision.DONE),
        (SAME, Again.NOTHING, X, True, Decision.DONE),
        (SAME, Again.HARMFUL, X, False, Decision.RUN),
        (SAME, Again.HARMFUL, X, True, Decision.UNCLEAR),
        (SAME, Again.HARMLESS, Y, True, Decision.CONFLICT),
        (SAME, Again.NOTHING, Y, False, Decision.CONFLICT),
        (SAME, Again.HARMFUL, N, True, Decision.CONFLICT),
        ((N, N), Again.NOTHING, N, False, Decision.DONE),
    ],
)
def test_decision(
    around: tuple[str | None, str | None], again: Again, actual: str | None, resumed: bool, decision: Decision
) -> None:
    step = Step("…", StatementKind.ALTER_TABLE, again, {"t": around[0]}, {"t": around[1]}, Context())
    assert decide(step, {"t": actual}, resumed=resumed) is decision


@pytest.mark.parametrize(
    ("found", "decision"),
    [
        ({"a": X, "b": N}, Decision.RUN),
        ({"a": N, "b": X}, Decision.DONE),
        ({"a": X, "b": X}, Decision.CONFLICT),
        ({"a": N, "b": N}, Decision.CONFLICT),
    ],
)
def test_both_names_of_a_rename_count(found: dict[str, str | None], decision: Decision) -> None:
    step = Step("…", StatementKind.RENAME_TABLE, Again.HARMFUL, {"a": X, "b": N}, {"a": N, "b": X}, Context())
    assert decide(step, found, resumed=True) is decision


@pytest.mark.parametrize(
    ("sql", "before", "expected"),
    [
        ("truncate t", X, Again.HARMLESS),
        ("create or replace table t (x int)", X, Again.HARMLESS),
        ("alter table t force", X, Again.HARMLESS),
        ("alter table t truncate partition p", X, Again.HARMLESS),
        ("alter table t exchange partition p with table u", X, Again.HARMFUL),
        ("alter table t change a b int, change b a int", X, Again.HARMFUL),
        ("alter table t add i int, rename column a to b", X, Again.HARMFUL),
        ("rename table t to t", X, Again.HARMFUL),
        ("rename table if exists t to u", N, Again.NOTHING),
        ("drop table if exists t", N, Again.NOTHING),
        ("drop database if exists t", N, Again.NOTHING),
        ("alter database t charset latin1", X, Again.NOTHING),
        ("create or replace database t", X, Again.HARMLESS),
    ],
)
def test_what_a_second_run_does(sql: str, before: str | None, expected: Again) -> None:
    assert again(classify_ddl(sql, Context("d")), {"t": before}, {"t": before}) is expected


def test_an_intent_lives_through_json() -> None:
    context = Context("d", 4, 12.5, "+01:00", 45, 8, True, where=Where(source="s", position="bin.000001:4"))
    step = Step(
        "drop table `d`.`t`", StatementKind.DROP_TABLE, Again.HARMLESS, {"`d`.`t`": X}, {"`d`.`t`": None}, context
    )
    intent = Intent("bin.000001:4", "bin.000001:99", context, (step, step), done=1)
    assert Intent.from_dict(json.loads(json.dumps(intent.to_dict()))) == intent
