"""The event filter: which rule decides, and what it does."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from unshard.config.event_names import EventName
from unshard.config.rules import FilterRule
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Table, TableName
from unshard.transform.event_filter import EventFilter, Verdict
from unshard.transform.pattern import Pattern


def rule(schema: str, table: str | None, events: list[str], action: str = "Ignore", *patterns: str) -> FilterRule:
    keys: dict[str, Any] = {"schema-pattern": schema, "table-pattern": table, "events": events, "action": action}
    return FilterRule.model_validate({**keys, "sql-pattern": list(patterns)})


def deciding(name: str, event: str, *patterns: str) -> str | None:
    """The rule that decides of several with an effect each; a pattern is `schema.table` or `schema`."""
    rules = {}
    for text in patterns:
        schema, _, table = text.partition(".")
        rules[text] = rule(schema, table or None, [event])
    found = EventFilter(rules).judge(TableName(*name.split(".")), EventName(event))
    return found.rule.removeprefix("filters.") if found else None


@pytest.mark.parametrize(
    ("name", "patterns", "first"),
    [
        ("shop.t1", ("shop.t1", "shop"), "shop"),
        ("shop.t1", ("shop.t1", "shop.*"), "shop.*"),
        ("shop.t1", ("shop.t1", "sh*"), "sh*"),
        ("shop.t1", ("shop.t1", "shop.t1*"), "shop.t1"),
        ("shop.t1", ("shop.t1", "shop.t?"), "shop.t?"),
        ("shop.t1", ("shop.t[0-9]", "shop.t?"), "shop.t?"),
        ("shop.t1", ("shop.t1", "shop.t[0-9]"), "shop.t[0-9]"),
        ("shop.t1", ("shop.t[0-9]", "shop.t[!a-z]"), "shop.t[0-9]"),
        ("shop.t1", ("shop.t[!a-z]", "shop.t[0-9]"), "shop.t[!a-z]"),
        ("shop.t1", ("shop.t1", "s*.t1"), "s*.t1"),
        ("shop.t1", ("shop.~t", "shop.t1"), "shop.t1"),
        ("shop.t1", ("other.t1", "shop.u*"), None),
        ("SHOP.T1", ("Shop.t1",), "Shop.t1"),
        ("größe.tabelle_ß", ("größe.tabelle_?",), "größe.tabelle_?"),
        ("日本.表", ("日?.[一-龠]",), "日?.[一-龠]"),
    ],
)
def test_rules_are_asked_in_dms_order(name: str, patterns: tuple[str, ...], first: str | None) -> None:
    assert deciding(name, "delete", *patterns) == first
    if len(patterns) == 2 and "[!" not in "".join(patterns):
        assert deciding(name, "delete", *reversed(patterns)) == first


NAME = TableName("a", "t")
DROP = EventName("drop table")
DELETE = EventName("delete")
SQL = "DROP TABLE `t` /* Archive */"


@pytest.mark.parametrize(
    ("rules", "event", "sql", "action"),
    [
        ([rule("a", "t", ["drop table"])], DROP, SQL, "Ignore"),
        ([rule("a", "t", ["drop table"], "Error")], DROP, SQL, "Error"),
        ([rule("a", "t", ["drop table"], "Do")], DROP, SQL, None),
        ([rule("a", "t", ["truncate table"], "Do")], DROP, SQL, "Ignore"),
        ([rule("a", "t", ["truncate table"])], DROP, SQL, None),
        # events and sql-pattern: either is enough for Ignore and Error, Do wants both
        ([rule("a", "t", ["truncate table"], "Ignore", "archive")], DROP, SQL, "Ignore"),
        ([rule("a", "t", [], "Error", "^nothing", "archive")], DROP, SQL, "Error"),
        ([rule("a", "t", ["truncate table"], "Ignore", "^archive")], DROP, SQL, None),
        ([rule("a", "t", ["all"], "Do", "archive")], DROP, SQL, None),
        ([rule("a", "t", ["all"], "Do", "^archive")], DROP, SQL, "Ignore"),
        ([rule("a", "t", ["truncate table"], "Do", "archive")], DROP, SQL, "Ignore"),
        # a row change has no text
        ([rule("a", "t", ["all"], "Do", "^archive")], DELETE, "", None),
        ([rule("a", "t", ["drop table"], "Ignore", ".")], DELETE, "", None),
        # a rule that doesn't decide leaves it to the next one
        ([rule("a", "*", ["drop table"], "Do"), rule("a", "t", ["drop table"], "Error")], DROP, SQL, "Error"),
        ([rule("a", "*", ["drop table"]), rule("a", "t", ["drop table"], "Error")], DROP, SQL, "Ignore"),
        # a statement that can't be read: patterns only
        ([rule("a", "t", ["all"])], None, SQL, None),
        ([rule("a", "t", ["all"], "Ignore", "archive")], None, SQL, "Ignore"),
    ],
    ids=str,
)
def test_the_first_rule_that_decides_counts(
    rules: list[FilterRule], event: EventName | None, sql: str, action: str | None
) -> None:
    found = EventFilter({str(place): one for place, one in enumerate(rules)}).judge(NAME, event, sql)
    assert (found.action if found else None) == action


def test_a_verdict_says_its_rules_action_and_what_of_it_decides() -> None:
    rules = {"no": rule("a", None, ["delete"], "Ignore", "weird"), "only": rule("a", "t", ["all"], "Do", "nice")}
    found = EventFilter(rules)
    assert found.concerning(TableName("a", "t")) == ("filters.no", "filters.only")
    assert found.concerning(TableName("a", "u")) == ("filters.no",)

    def said(event: EventName, sql: str = "") -> tuple[str, ...] | None:
        verdict = found.judge(TableName("a", "t"), event, sql)
        return (verdict.action, verdict.rule, verdict.says, verdict.by) if verdict else None

    assert said(DELETE) == ("Ignore", "filters.no", "Ignore", "events")
    assert said(EventName("drop table"), "WEIRD") == ("Ignore", "filters.no", "Ignore", "sql-pattern")
    assert said(EventName("drop table"), "plain") == ("Ignore", "filters.only", "Do", "sql-pattern")
    assert said(EventName("drop table"), "nice") is None


@pytest.mark.parametrize(
    ("one", "keeps"),
    [
        (rule("a", "t", ["truncate table"]), True),
        (rule("a", "t", ["all ddl"]), True),
        (rule("a", "t", ["incompatible ddl changes"]), True),
        (rule("a", "t", ["all dml"], "Do"), True),
        (rule("a", "t", [], "Ignore", "archive"), True),
        (rule("a", "t", ["all"], "Do", "archive"), True),
        (rule("a", None, ["drop database"]), True),
        (rule("a", "t", ["drop database"]), False),
        (rule("a", "t", ["truncate table"], "Error"), False),
        (rule("a", "t", [], "Error", "archive"), False),
        (rule("a", "t", ["delete", "add column"]), False),
        (rule("a", "t", ["all"], "Do"), False),
    ],
    ids=str,
)
def test_rules_that_may_leave_out_a_statement_that_takes_rows(one: FilterRule, keeps: bool) -> None:
    assert EventFilter({"f": one}).keeping([("a", "t")]) == (("filters.f",) if keeps else ())


def test_rules_that_keep_rows_of_tables_known_by_name_or_pattern() -> None:
    found = EventFilter({"one": rule("a", "t_2", ["drop table"]), "all": rule("b*", None, ["drop table"])})
    merged = (Pattern.compile("a"), Pattern.compile("t_*"))
    assert found.keeping([merged]) == ("filters.one",)
    assert found.keeping([("a", "t_1"), (Pattern.compile("b?"), "t")]) == ("filters.all",)
    assert found.keeping([(Pattern.compile("a"), Pattern.compile("u_*"))]) == ()


def test_a_statement_on_a_schema_has_no_table() -> None:
    schema, drop = TableName("a", ""), EventName("drop database")
    assert EventFilter({"f": rule("a", None, ["drop database"])}).judge(schema, drop) == Verdict("Ignore", "filters.f")
    assert EventFilter({"f": rule("a", "*", ["drop database"])}).judge(schema, drop) is not None
    assert EventFilter({"f": rule("a", "t*", ["drop database"])}).judge(schema, drop) is None


def test_a_statement_that_cant_be_read_meets_only_rules_for_every_name() -> None:
    everywhere, there = rule("*", "*", [], "Ignore", "weird"), rule("a", "*", [], "Ignore", "weird")
    nameless = TableName("", "")
    assert EventFilter({"f": everywhere}).judge(nameless, None, "WEIRD x") == Verdict("Ignore", "filters.f")
    assert EventFilter({"f": there}).judge(nameless, None, "WEIRD x") is None


def test_rules_of_the_source_join_those_of_the_task_which_win_at_equal_patterns() -> None:
    found = EventFilter({"mine": rule("a", "t", ["insert"])}, [rule("A", "T", ["delete"]), rule("a", "u", ["delete"])])
    assert found.judge(NAME, DELETE) is None
    assert found.judge(TableName("a", "u"), DELETE) == Verdict("Ignore", "source filters[1]")
    apart = EventFilter({"mine": rule("a", "t", ["insert"])}, [rule("A", "T", ["delete"])], case_sensitive=True)
    assert apart.judge(TableName("A", "T"), DELETE) == Verdict("Ignore", "source filters[0]")


def test_row_events_by_rule() -> None:
    found = EventFilter(
        {
            "no-delete": rule("a", "t", ["delete"]),
            "no-update": rule("a", "*", ["update"]),
            "error": rule("a", None, ["insert"], "Error"),
        }
    )
    filters = found.row_filters(NAME)
    assert sorted(one.rule for one in filters) == ["filters.no-delete", "filters.no-update"]
    assert found.forbidden(NAME) == {"insert": "filters.error"}
    assert not found.drops_all_rows(NAME)
    ops = pa.array([Op.INSERT, Op.UPDATE_BEFORE, Op.UPDATE_AFTER, Op.DELETE], pa.int8())
    images = pa.record_batch([ops, pa.array([1, 2, 2, 3], pa.int64())], schema=pa.schema(IMAGE_FIELDS))
    table = Table(NAME, (Column("id", "int", "int"),))
    dropped = {one.rule: one.dropped(table, images, frozenset()).tolist() for one in filters}
    assert dropped == {
        "filters.no-delete": [False, False, False, True],
        "filters.no-update": [False, True, True, False],
    }
    assert repr(pickle.loads(pickle.dumps(filters))) == repr(filters)


def test_a_table_without_any_row_change_left() -> None:
    assert EventFilter({"f": rule("a", "t", ["all dml"])}).drops_all_rows(NAME)
    assert EventFilter({"f": rule("a", "t", ["all ddl"], "Do")}).drops_all_rows(NAME)
    assert not EventFilter({"f": rule("a", "t", ["all ddl"])}).drops_all_rows(NAME)
    assert not EventFilter({"f": rule("a", "t", ["all"], "Error")}).drops_all_rows(NAME)
    assert EventFilter({}).row_filters(NAME) == ()
