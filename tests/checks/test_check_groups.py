"""Findings that the same thing mends are told once, with their tables below."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from unshard.checks.grouped import FindingGroup, LocatedFinding, grouped
from unshard.ctl.tables import rendered


def no_key(table: str, place: str = "s1", column: str = "id") -> LocatedFinding:
    schema, _, name = table.partition(".")
    mend = f"ALTER TABLE `{schema}`.`{name}` ADD PRIMARY KEY ({column});"
    return LocatedFinding("warn", "keys", place, f"table {table} has no key", mend, table)


def test_findings_that_differ_in_their_tables_alone_are_one() -> None:
    (group,) = grouped([no_key("a.t"), no_key("a.u"), no_key("b.t")])
    assert group.head == "keys (s1): table a.t has no key"
    assert group.mend == "ALTER TABLE `a`.`t` ADD PRIMARY KEY (id);"
    assert group.others == ("a.u", "b.t")
    assert group.line == (
        "keys (s1): table a.t has no key. What to do: ALTER TABLE `a`.`t` ADD PRIMARY KEY (id);"
        " The same holds for 2 more tables: a.u, b.t"
    )


def test_what_is_mended_otherwise_stands_by_itself_and_names_its_table() -> None:
    found = [no_key("a.t"), no_key("a.u", column="no"), no_key("a.t", place="s2")]
    assert grouped(found) == [FindingGroup("warn", one.head, one.mend) for one in found]


def test_findings_without_a_table_stay_as_they_are() -> None:
    one = LocatedFinding("fail", "server", "target", "too old", "take a newer one")
    assert grouped([one]) == [FindingGroup("fail", "server (target): too old", "take a newer one")]


def test_a_terminal_shows_one_block_for_all_tables() -> None:
    errors = [
        {"severity": one.severity, "short_error": one.text, "instruction": one.mend, "self": one.table, "other": ""}
        for one in (no_key("a.t"), no_key("a.u"))
    ]
    results = [{"name": "keys", "extra": "s1", "errors": [error]} for error in errors]
    summary = {"passed": True, "total": 2, "successful": 0, "failed": 0, "warning": 2}
    text = StringIO()
    console = Console(file=text, width=100, color_system=None)
    for part in rendered("check-task", {"result": True, "results": results, "summary": summary}):
        console.print(part, markup=False)
    assert text.getvalue().splitlines() == [
        "warn keys (s1): table a.t has no key",
        "  ALTER TABLE `a`.`t` ADD PRIMARY KEY (id);",
        "  The same holds for one more table: a.u",
        "",
        "0 of 2 fine, 2 warned, 0 failed",
    ]
