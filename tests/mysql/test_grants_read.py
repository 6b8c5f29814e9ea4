"""SHOW GRANTS as servers print it: roles, wildcards, quotes, partial revokes, columns, routines."""

from __future__ import annotations

import pytest

from unshard.model.table import TableName
from unshard.mysql.grants import Grants, account, schema_clause


def granted(*lines: str, literal: bool = False) -> Grants:
    return Grants.read(lines, literal=literal)


@pytest.mark.parametrize(
    ("line", "schema", "found"),
    [
        ("GRANT SELECT ON `shop`.* TO `u`@`%`", "shop", True),
        ('GRANT SELECT ON "shop".* TO "o\'n""e"@"%"', "shop", True),
        ("GRANT SELECT ON `db_%`.* TO `u`@`%`", "dbx1", True),
        (r"GRANT SELECT ON `db\_%`.* TO `u`@`%`", "dbx1", False),
        (r"GRANT SELECT ON `db\_%`.* TO `u`@`%`", "db_1", True),
        ("GRANT SELECT ON `a``b.*`.* TO `u`@`%`", "a`b.*", True),
        ("GRANT SELECT ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*F85A' WITH GRANT OPTION", "any", True),
        ("GRANT ALL PRIVILEGES ON `shop`.* TO `u`@`%`", "shop", True),
        ("GRANT INSERT, SELECT, UPDATE ON `shop`.* TO PUBLIC", "shop", True),
        ("GRANT SELECT (`a`, `b`), INSERT ON `shop`.`t` TO `u`@`%`", "shop", False),
        ("GRANT SELECT ON FUNCTION `shop`.`f` TO `u`@`%`", "shop", False),
        ("GRANT PROXY ON ''@'' TO 'root'@'localhost' WITH GRANT OPTION", "shop", False),
        ("GRANT `SELECT`@`%` TO `u`@`%`", "shop", False),
        ("SET DEFAULT ROLE `r` FOR `u`@`%`", "shop", False),
    ],
)
def test_select_on_a_schema(line: str, schema: str, found: bool) -> None:
    assert granted(line).on_schema("SELECT", schema) is found


def test_a_partial_revoke_takes_one_schema_out() -> None:
    grants = granted("GRANT SELECT ON *.* TO `u`@`%`", "REVOKE SELECT ON `s_1`.* FROM `u`@`%`", literal=True)
    assert grants.everywhere("SELECT")
    assert not grants.on_schema("SELECT", "s_1")
    assert grants.on_schema("SELECT", "sx1")


def test_with_partial_revokes_a_wildcard_is_a_letter() -> None:
    assert not granted("GRANT SELECT ON `db_%`.* TO `u`@`%`", literal=True).on_schema("SELECT", "db_1")


def test_of_two_patterns_the_more_exact_one_counts_alone() -> None:
    grants = granted("GRANT SELECT ON `shop%`.* TO u", "GRANT INSERT ON `shop\\_1`.* TO u")
    assert not grants.on_schema("SELECT", "shop_1")
    assert grants.on_schema("INSERT", "shop_1")
    roles = granted("GRANT SELECT ON `shop%`.* TO `r`", "GRANT INSERT ON `shop\\_1`.* TO u")
    assert roles.on_schema("SELECT", "shop_1")


def test_a_table_and_its_columns() -> None:
    name = TableName("shop", "t")
    assert granted("GRANT SELECT ON `shop`.`t` TO u").on_table("SELECT", name)
    assert not granted("GRANT SELECT ON `shop`.`t` TO u").on_table("SELECT", TableName("shop", "s"))
    assert not granted("GRANT SELECT (`a`) ON `shop`.`t` TO u").on_table("SELECT", name)


def test_old_and_new_names_are_one() -> None:
    assert granted("GRANT BINLOG MONITOR ON *.* TO u").everywhere("REPLICATION CLIENT")
    assert granted("GRANT REPLICATION CLIENT ON *.* TO u").everywhere("BINLOG MONITOR")


def test_what_a_grant_is_written_with() -> None:
    assert schema_clause("shop_1") == r"`shop\_1`.*"
    assert schema_clause("shop_1", literal=True) == "`shop_1`.*"
    assert account("o'n@e@%") == "'o''n@e'@'%'"
