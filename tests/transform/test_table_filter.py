"""Dumpling's table filter: each form of a name, the order of rules, files, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from unshard.config.table_rules import read_rules
from unshard.model.table import TableName
from unshard.transform.source_rules import TableFilter


def takes(value: str, schema: str, table: str, case_sensitive: bool = False) -> bool:
    return TableFilter(read_rules(value), case_sensitive).takes(TableName(schema, table))


@pytest.mark.parametrize(
    ("value", "schema", "table", "expected"),
    [
        ("*.*", "a", "t", True),
        ("a.t", "a", "t", True),
        ("a.t", "a", "t2", False),
        ("a.t", "xa", "t", False),
        ("A.T", "a", "t", True),
        ("a.t?", "a", "t1", True),
        ("a.t?", "a", "t", False),
        ("a.*_log", "a", "x_log", True),
        ("a.t[0-9]", "a", "t5", True),
        ("a.t[!0-9]", "a", "t5", False),
        ("a.t[^0-9]", "a", "t5", True),
        ("a.t[^0-9]", "a", "tx", False),
        (r"a.t[\]\-]", "a", "t]", True),
        (r"a.t\-1", "a", "t-1", True),
        (r"a.t\*", "a", "tx", False),
        ('"a.b"."c,d"', "a.b", "c,d", True),
        ('"x""y".t', 'x"y', "t", True),
        ("`a b`.`c``d`", "a b", "c`d", True),
        (r"/^shop_\d{1,2}$/.*", "shop_12", "t", True),
        (r"/^shop_\d{1,2}$/.*", "shop_123", "t", False),
        ("/op/./^t/", "shop", "t1", True),
        (r"/a\/b/.*", "a/b", "t", True),
        ("größe.表*", "größe", "表_1", True),
        ("*.*,!a.*", "a", "t", False),
        ("*.*,!a.*", "b", "t", True),
        ("*.*,!a.*,a.t", "a", "t", True),
        ("!a.*", "b", "t", False),
        (" a.t , b.t ", "b", "t", True),
    ],
)
def test_the_last_rule_that_matches_decides(value: str, schema: str, table: str, expected: bool) -> None:
    assert takes(value, schema, table) is expected


def test_case_counts_on_demand() -> None:
    assert not takes("A.T", "a", "t", case_sensitive=True)
    assert takes("/A/.T", "A", "T", case_sensitive=True)


def test_rules_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text("# shops\n shop_*.* \n\n!shop_*.tmp_*\n")
    assert read_rules(f"@{file},shop_1.tmp_kept") == ("shop_*.*", "!shop_*.tmp_*", "shop_1.tmp_kept")
    assert not takes(f"@{file}", "shop_2", "tmp_x")
    file.write_text("@other")
    with pytest.raises(ValueError, match="names another one with @"):
        read_rules(f"@{file}")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("a", "schema.table in each rule"),
        ("a.b.c", "signs behind a table"),
        ("a-b.t", "schema.table in each rule"),
        ("a.", "missing or not closed"),
        ("", "missing or not closed"),
        ("a.t,", "missing or not closed"),
        ('"a.t', "missing or not closed"),
        ("/a.t", "missing or not closed"),
        ("a.[z", "missing or not closed"),
        ("a.[z-a]", "a set that can't be"),
        ("/(/.t", "no regular expression"),
        (r"a.\d", "missing or not closed"),
    ],
)
def test_what_is_no_rule(value: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_rules(value)


def test_the_decision_says_its_rule() -> None:
    found = TableFilter(("a.*", "!a.t"))
    assert found.judge(TableName("a", "t")) == (False, "!a.t")
    assert found.judge(TableName("a", "u")) == (True, "a.*")
    assert found.judge(TableName("b", "u")) == (False, "")
