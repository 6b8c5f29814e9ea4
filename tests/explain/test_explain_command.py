"""`unshard explain` on the example files: every kind of rule, what decides, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from unshard.cli.app import app

EXAMPLES = Path(__file__).parents[2] / "examples" / "explain"
TASK = str(EXAMPLES / "task.yaml")
SOURCES = ["-s", str(EXAMPLES / "source-1.yaml"), "-s", str(EXAMPLES / "source-2.yaml")]


def invoke(*asked: str, task: str = TASK) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["explain", task, *asked])
    return done.exit_code, done.output


def explained(*asked: str, task: str = TASK) -> dict[str, Any]:
    code, output = invoke(*SOURCES, "--source-id", "shop-01", "--json", *asked, task=task)
    assert code == 0, output
    (source,) = json.loads(output)["sources"]
    found: dict[str, Any] = source
    return found


def findings(source: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [one for group in source["groups"] for one in group["findings"] if one["kind"] == kind]


@pytest.fixture
def changed(tmp_path: Path) -> Any:
    """The example task with other keys; gives its path."""

    def change(**keys: Any) -> str:
        form = yaml.safe_load((EXAMPLES / "task.yaml").read_text())
        path = tmp_path / "task.yaml"
        path.write_text(yaml.safe_dump({**form, **{name.replace("_", "-"): value for name, value in keys.items()}}))
        return str(path)

    return change


@pytest.mark.parametrize(
    ("table", "says", "outcome"),
    [
        ("shop_1.order_7", "taken", "goes to shop.orders"),
        ("shop_1.visits", "taken", "goes to shop.visits; rows left out by their values"),
        ("shop_1.audit_1", "taken", "goes to shop.audit_1; delete left out by source filters[0]"),
        ("shop_1.tmp_x", "left out", "left out: block-allow-list, ignore-tables[0]"),
        ("mysql.user", "left out", "left out: block-allow-list, system schema"),
        ("other.t", "left out", "left out: block-allow-list, do-dbs"),
        ("shop_1._t_gho", "left out", "left out: block-allow-list, online DDL"),
        ("shop_x.order_7", "stops", "the task stops with CONFIG-007"),
        ("`shop_1`.`order_7`", "taken", "goes to shop.orders"),
    ],
)
def test_the_outcome_of_a_table(table: str, says: str, outcome: str) -> None:
    source = explained("--table", table)
    assert (source["says"], source["outcome"]) == (says, outcome)
    assert (source["error"] is not None) == (says == "stops")


def test_every_kind_of_rule_says_what_decides() -> None:
    source = explained("--table", "shop_1.order_7")
    (allow,), (route,) = findings(source, "block-allow-list"), findings(source, "route")
    assert (allow["rule"], allow["pattern"]) == ("do-dbs[0]", "shop_*")
    assert (route["rule"], route["level"], route["behind"], route["target"]) == (
        "routes.orders",
        "table",
        ["routes.shop"],
        "shop.orders",
    )
    events = findings(source, "event-filter")
    assert [(one["event"], one["says"], one["rules"]) for one in events] == [
        (event, "taken", ["filters.keep-rows"]) for event in ("insert", "update", "delete")
    ]
    (mapping,) = findings(source, "column-mapping")
    assert [(bits["part"], bits["number"]) for bits in mapping["bits"]] == [
        ("instance", 1),
        ("schema", 1),
        ("table", 7),
    ]
    assert mapping["example"] == {"before": 1, "after": (1 << 59) + (1 << 52) + (7 << 44) + 1}
    (helper,) = findings(explained("--table", "shop_1._t_gho"), "online-ddl")
    assert (helper["rule"], helper["part"], helper["table"]) == ("shadow-table-rules[0]", "ghost", "shop_1.t")
    extracts = findings(explained("--table", "shop_2.visit_9"), "extract")
    assert {one["column"]: one["value"] for one in extracts} == {"c_source": "01", "c_schema": "2", "c_table": "9"}
    filters = findings(explained("--table", "shop_1.visits"), "expression-filter")
    assert [(one["rule"], one["expressions"]) for one in filters] == [
        ("expression-filter.no-drafts", {"insert": "note = 'draft'"}),
        ("expression-filter.keep-paid", {"delete": "note LIKE 'paid%'"}),
    ]


def test_the_dumps_own_choice(changed: Any) -> None:
    dumpers = {"global": {"extra-args": "--filter shop_*.*,!shop_1.order_7"}}
    source = explained("--table", "shop_1.order_7", task=changed(mydumpers=dumpers))
    (dump,) = findings(source, "dump")
    assert (dump["says"], dump["rule"], dump["pattern"]) == ("left out", "--filter", "!shop_1.order_7")
    assert source["outcome"] == "goes to shop.orders; the dump leaves it out"
    source = explained("--table", "shop_1.tmp_x", task=changed(mydumpers={"global": {"extra-args": "-B shop_1"}}))
    assert source["outcome"].endswith("; the dump takes it, and the load passes over its files")


@pytest.mark.parametrize(
    ("sql", "says", "outcome", "statements"),
    [
        (
            "ALTER TABLE shop_1.k ADD a INT, DROP b",
            "runs",
            "runs one statement on the target",
            ["ALTER TABLE `shop`.`k` ADD a INT, DROP b"],
        ),
        ("DROP TABLE shop_1.k, shop_1.tmp_a, shop_1.l", "runs", "runs 2 statements on the target", 2),
        ("drop table shop_1.order_1", "nothing", "nothing is run: left out by filters.keep-rows", []),
        ("RENAME TABLE shop_1.order_1 TO shop_1.order_2", "nothing", "nothing is run: old and new name are one", []),
        ("ALTER TABLE shop_1._t_gho ADD a INT", "nothing", "nothing is run: shop_1._t_gho is ghost of shop_1.t", []),
        ("RENAME TABLE shop_1._t_gho TO shop_1.t", "unknown", "what was run on the ghost is run on the table", []),
        ("ALTER TABLE other.t ADD a INT", "nothing", "nothing is run: other.t kept out", []),
        ("CREATE TABLE shop_1.visit_1 (a INT)", "nothing", "nothing is run: the table on the target has columns", []),
        ("CREATE VIEW v AS SELECT 1", "skipped", "nothing is run, it is passed over: view", []),
        ("FLUSH LOGS", "skipped", "nothing is run, it is passed over: flush", []),
        ("ALTER TABLE shop_1.order_1 COMMENT = 'archive'", "nothing", "nothing is run: left out by filters.keep-", []),
        ("RENAME TABLE shop_1.tmp_1 TO shop_1.b", "stops", "the task stops with DDL-011", []),
        ("ALTER TABLE shop_1.'", "stops", "the task stops with DDL-001", []),
        ("SELECT 1", "stops", "the task stops with DDL-002", []),
        ("CREATE SEQUENCE shop_1.s", "stops", "the task stops with DDL-013", []),
        ("DROP DATABASE shop_1", "runs", "runs one statement on the target", ["DROP DATABASE `shop`"]),
    ],
)
def test_the_outcome_of_a_statement(sql: str, says: str, outcome: str, statements: Any) -> None:
    source = explained("--sql", sql)
    assert (source["says"], source["outcome"][: len(outcome)]) == (says, outcome)
    found = [one["sql"] for one in source["statements"]]
    assert (len(found) if isinstance(statements, int) else found) == statements
    assert (source["error"] is not None) == (says == "stops")


def test_parts_of_a_statement_say_their_names_and_the_rule(changed: Any) -> None:
    keep = {"schema-pattern": "shop_*", "table-pattern": "order_*", "events": ["drop column"], "action": "Ignore"}
    asked = ("--sql", "alter table order_1 add a int, drop b", "--schema", "shop_1")
    source = explained(*asked, task=changed(filters={"keep-rows": keep}))
    parts, several = [one for one in findings(source, "event-filter") if "event" in one], "multi schema change"
    assert [(one["part"], one["event"], one["also"], one["says"], one["rule"], one["by"]) for one in parts] == [
        ("alter table order_1 add a int", "alter table", ["add column", several], "taken", "", ""),
        ("alter table order_1 drop b", "drop column", [several], "left out", "filters.keep-rows", "events"),
    ]
    assert [one["sql"] for one in source["statements"]] == ["alter table `shop`.`orders` add a int"]
    stops = explained(*asked, task=changed(filters={"keep-rows": {**keep, "action": "Error"}}))
    assert (stops["says"], stops["error"]["code"]) == ("stops", "DDL-020")


def test_sql_mode_and_schema_decide_how_a_statement_is_read() -> None:
    asked = ("--sql", 'ALTER TABLE "k" ADD "a" INT', "--schema", "shop_1")
    assert explained(*asked)["error"]["code"] == "DDL-002"
    found = explained(*asked, "--sql-mode", "ANSI_QUOTES,STRICT_TRANS_TABLES")
    assert [one["sql"] for one in found["statements"]] == ['ALTER TABLE `shop`.`k` ADD "a" INT']


def test_two_routes_of_a_level_are_told_with_both_names(changed: Any) -> None:
    form = yaml.safe_load((EXAMPLES / "task.yaml").read_text())
    more = {"schema-pattern": "shop_1", "table-pattern": "~_7$", "target-schema": "x"}
    instances = [{**one, "route-rules": [*one["route-rules"], "more"]} for one in form["mysql-instances"]]
    task = changed(routes={**form["routes"], "more": more}, mysql_instances=instances)
    source = explained("--table", "shop_1.order_7", task=task)
    assert source["error"]["code"] == "CONFIG-006"
    assert "orders, more" in source["error"]["message"]


def test_without_source_files_the_task_alone_is_explained() -> None:
    code, output = invoke("--table", "shop_1.audit_1")
    assert code == 0
    assert "shop_1.audit_1  source shop-02\n  → goes to shop.audit_1\n" in output
    assert "note: without a --source file the filters and case-sensitive of shop-01, shop-02 don't count" in output


@pytest.mark.parametrize(
    ("asked", "code", "text"),
    [
        (["--table", "nope"], 1, "CONFIG-025"),
        (["--table", "a.b.c"], 1, "CONFIG-025"),
        (["--table", "a.`b"], 1, "CONFIG-025"),
        (["--table", "a.t", "--source-id", "x"], 1, "CONFIG-026: source x is not in"),
        (["--sql", "SELECT 1", "--sql-mode", "ANSI_QUOTE"], 1, "CONFIG-027: `ANSI_QUOTE` is not an SQL mode"),
        (["--table", "a.t", "--connect"], 1, "CONFIG-005"),
        (["--table", "a.t", "--sql", "SELECT 1"], 2, "either --table or --sql"),
        ([], 2, "either --table or --sql"),
    ],
)
def test_bad_input_is_answered(asked: list[str], code: int, text: str) -> None:
    done = CliRunner().invoke(app, ["explain", TASK, *asked])
    assert done.exit_code == code
    assert text in done.output
