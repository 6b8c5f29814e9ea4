"""An ALTER TABLE of a source becomes statements that leave TiDB's table as the source's is."""

from __future__ import annotations

import pytest

from unshard.ddl.context import Context
from unshard.ddl.evaluate import created_definition, operations
from unshard.ddl.parse import classify_ddl
from unshard.model.table import TableName
from unshard.mysql.tidb_collations import nearest
from unshard.schema.definition import Dialect
from unshard.schema.implied import Surroundings, complete_table
from unshard.schema.tidb import TidbWords, tidb_table
from unshard.schema.tidb_alter import alter_table

NAME = TableName("s", "t")
COLLATIONS = frozenset({"utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "latin1_bin", "ascii_bin"})
WORDS = TidbWords(lambda collation: nearest(collation, COLLATIONS, {}))
IMPLICIT = Surroundings(Dialect.MARIADB, "utf8mb4_general_ci", explicit_timestamps=False)
MYSQL = Surroundings(Dialect.MYSQL, "utf8mb4_general_ci")
EXPLICIT = Surroundings(Dialect.MARIADB, "utf8mb4_general_ci")


def changes(columns: str, alter: str, around: Surroundings = EXPLICIT) -> list[str]:
    """The statements of an ALTER TABLE of a table on TiDB, without their `ALTER TABLE` and the table's name."""
    context = Context("s", mariadb=around.dialect is Dialect.MARIADB)
    made = created_definition(classify_ddl(f"CREATE TABLE t {columns}", context))
    before = complete_table(made, "t", around)
    ddl = classify_ddl(f"ALTER TABLE t {alter}", context)
    found = alter_table(operations(ddl), NAME, before, tidb_table(before, WORDS, []), around, WORDS)
    assert not found.left_out
    return [statement.removeprefix("ALTER TABLE `s`.`t` ") for statement in found.statements]


def test_the_first_timestamp_renews_itself_without_explicit_defaults() -> None:
    added = "`ts` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
    assert changes("(id INT PRIMARY KEY)", "ADD ts TIMESTAMP", IMPLICIT) == [f"ADD COLUMN {added}"]
    assert changes("(id INT, ts DATETIME)", "MODIFY ts TIMESTAMP", IMPLICIT) == [f"MODIFY COLUMN {added}"]
    assert changes("(id INT, a DATETIME)", "CHANGE a ts TIMESTAMP", IMPLICIT) == [f"CHANGE COLUMN `a` {added}"]


def test_a_later_timestamp_is_zero_without_explicit_defaults() -> None:
    zero = "timestamp NOT NULL DEFAULT '0000-00-00 00:00:00'"
    assert changes("(id INT, a TIMESTAMP)", "ADD ts TIMESTAMP", IMPLICIT) == [f"ADD COLUMN `ts` {zero}"]
    renewed = "timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
    assert changes("(id INT)", "ADD b TIMESTAMP, ADD a TIMESTAMP FIRST", IMPLICIT) == [
        f"ADD COLUMN `b` {zero}, ADD COLUMN `a` {renewed} FIRST"
    ]


def test_a_timestamp_with_explicit_defaults_is_null() -> None:
    assert changes("(id INT)", "ADD ts TIMESTAMP") == ["ADD COLUMN `ts` timestamp NULL DEFAULT NULL"]


YEARS = {"0": "0000", "'0000'": "0000", "'0'": "2000", "'000'": "2000", "7": "2007", "'70'": "1970", "2155": "2155"}


@pytest.mark.parametrize("written", YEARS)
def test_the_default_of_a_year_has_four_digits(written: str) -> None:
    """TiDB takes the text '0' for 2000."""
    added = f"ADD COLUMN `y` year(4) NOT NULL DEFAULT '{YEARS[written]}'"
    assert changes("(id INT)", f"ADD y YEAR NOT NULL DEFAULT {written}") == [added]


LATIN = "(id INT, a VARCHAR(10), b VARCHAR(5)) DEFAULT CHARSET latin1 COLLATE latin1_bin"
CONVERT = "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
UNICODE = "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"
DEFAULT = "DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_unicode_ci"
B_CONVERTED = f"MODIFY COLUMN `b` varchar(5) {UNICODE} DEFAULT NULL"


@pytest.mark.parametrize("order", ["MODIFY a VARCHAR(20) NOT NULL, {}", "{}, MODIFY a VARCHAR(20) NOT NULL"])
def test_a_conversion_keeps_what_else_changes_in_a_column(order: str) -> None:
    assert changes(LATIN, order.format(CONVERT)) == [
        B_CONVERTED,
        DEFAULT,
        f"MODIFY COLUMN `a` varchar(20) {UNICODE} NOT NULL",
    ]


def test_a_conversion_is_of_renamed_columns_and_not_of_dropped_ones() -> None:
    assert changes(LATIN, f"DROP COLUMN a, {CONVERT}") == [B_CONVERTED, DEFAULT, "DROP COLUMN `a`"]
    assert changes(LATIN, f"DROP COLUMN a, RENAME COLUMN b TO a, {CONVERT}") == [
        B_CONVERTED,
        DEFAULT,
        "DROP COLUMN `a`",
        "RENAME COLUMN `b` TO `a`",
    ]
    assert changes(LATIN, f"ALTER b SET DEFAULT 'x', DROP COLUMN a, {CONVERT}") == [
        B_CONVERTED,
        DEFAULT,
        "ALTER COLUMN `b` SET DEFAULT 'x', DROP COLUMN `a`",
    ]


def test_a_conversion_beside_a_default_of_the_table() -> None:
    """Old and new columns have the character set of the conversion, the table the default."""
    assert changes(LATIN, f"DROP COLUMN a, {CONVERT}, ADD c VARCHAR(3), COLLATE utf8mb4_bin") == [
        B_CONVERTED,
        "DEFAULT CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin",
        f"DROP COLUMN `a`, ADD COLUMN `c` varchar(3) {UNICODE} DEFAULT NULL",
    ]


@pytest.mark.parametrize("change", ["DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_unicode_ci", CONVERT])
def test_a_new_column_has_the_tables_new_character_set_wherever_it_is_named(change: str) -> None:
    added = f"ADD COLUMN `x` varchar(10) {UNICODE} DEFAULT NULL"
    assert sorted(changes("(id INT)", f"ADD x VARCHAR(10), {change}")) == [added, DEFAULT]
    assert sorted(changes("(id INT)", f"{change}, ADD x VARCHAR(10)")) == [added, DEFAULT]


def test_a_column_is_there_before_another_is_computed_from_it() -> None:
    assert changes("(id INT)", "ADD j JSON, ADD n VARCHAR(20) AS (j->>'$.name')", MYSQL) == [
        "ADD COLUMN `j` json DEFAULT NULL",
        "ADD COLUMN `n` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
        " GENERATED ALWAYS AS (j->>'$.name') VIRTUAL",
    ]
    assert changes("(id INT)", "ADD b INT, ADD KEY kb ((`B` + 1))", MYSQL) == [
        "ADD COLUMN `b` int(11) DEFAULT NULL",
        "ADD KEY `kb` ((`B` + 1))",
    ]
    assert changes("(id INT, a INT)", "ADD b INT, ADD c INT AS (a + 1)", MYSQL) == [
        "ADD COLUMN `b` int(11) DEFAULT NULL, ADD COLUMN `c` int(11) GENERATED ALWAYS AS (a + 1) VIRTUAL"
    ]


def test_an_expression_key_is_dropped_before_its_column() -> None:
    assert changes("(id INT, b INT, KEY kb ((b + 1)))", "DROP COLUMN b, DROP KEY kb", MYSQL) == [
        "DROP INDEX `kb`",
        "DROP COLUMN `b`",
    ]


TRIPLE = "(id INT PRIMARY KEY, a INT, b INT, c INT, UNIQUE k (a, b, c))"


def test_a_key_is_never_over_a_part_of_what_the_statement_leaves_of_it() -> None:
    """A unique key over too few columns would refuse rows that differ in the others."""
    assert changes(TRIPLE, "DROP COLUMN a, DROP COLUMN b") == [
        "DROP INDEX `k`",
        "DROP COLUMN `a`, ADD UNIQUE KEY `k` (`c`), DROP COLUMN `b`",
    ]
    assert changes(TRIPLE, "DROP COLUMN a, DROP COLUMN b, DROP COLUMN c") == [
        "DROP INDEX `k`",
        "DROP COLUMN `a`, DROP COLUMN `b`, DROP COLUMN `c`",
    ]
    assert changes(TRIPLE, "DROP COLUMN a, ADD a INT, DROP COLUMN b") == [
        "DROP INDEX `k`",
        "DROP COLUMN `a`, ADD UNIQUE KEY `k` (`c`)",
        "ADD COLUMN `a` int(11) DEFAULT NULL, DROP COLUMN `b`",
    ]


def test_a_smaller_key_has_the_new_names() -> None:
    assert changes(TRIPLE, "RENAME COLUMN a TO d, CHANGE b e BIGINT, RENAME KEY k TO m, DROP COLUMN c") == [
        "RENAME COLUMN `a` TO `d`, CHANGE COLUMN `b` `e` bigint(20) DEFAULT NULL, RENAME INDEX `k` TO `m`",
        "DROP INDEX `m`",
        "DROP COLUMN `c`, ADD UNIQUE KEY `m` (`d`,`e`)",
    ]


def test_a_drop_of_nothing_is_not_of_a_column_that_gets_the_name() -> None:
    assert changes(TRIPLE, "DROP COLUMN IF EXISTS x, RENAME COLUMN a TO x, DROP COLUMN b") == [
        "RENAME COLUMN `a` TO `x`",
        "DROP INDEX `k`",
        "DROP COLUMN `b`, ADD UNIQUE KEY `k` (`x`,`c`)",
    ]


@pytest.mark.parametrize("order", ["DROP COLUMN g, DROP COLUMN a", "DROP COLUMN a, DROP COLUMN g"])
def test_a_computed_column_is_dropped_before_its_source(order: str) -> None:
    computed = "(id INT PRIMARY KEY, a INT, g INT AS (a + 1) VIRTUAL)"
    assert changes(computed, order) == ["DROP COLUMN `g`", "DROP COLUMN `a`"]


VOID = [
    "RENAME COLUMN IF EXISTS x TO y",
    "CHANGE COLUMN IF EXISTS x y INT",
    "MODIFY COLUMN IF EXISTS x INT",
    "DROP COLUMN IF EXISTS x",
    "ALTER COLUMN IF EXISTS x SET DEFAULT 3",
    "ALTER COLUMN IF EXISTS x DROP DEFAULT",
    "DROP KEY IF EXISTS x",
    "RENAME KEY IF EXISTS x TO y",
    "ALTER KEY IF EXISTS x IGNORED",
    "DROP FOREIGN KEY IF EXISTS x",
    "DROP CONSTRAINT IF EXISTS x",
    "ADD COLUMN IF NOT EXISTS a BIGINT",
    "ADD KEY IF NOT EXISTS k (id)",
    "ADD CONSTRAINT IF NOT EXISTS fk FOREIGN KEY (a) REFERENCES p (id)",
    "ADD CONSTRAINT IF NOT EXISTS ck CHECK (a > 1)",
]


@pytest.mark.parametrize("void", VOID)
def test_an_operation_that_the_source_had_nothing_to_do_for_is_left_out(void: str) -> None:
    table = (
        "(id INT PRIMARY KEY, a INT, KEY k (a), CONSTRAINT fk FOREIGN KEY (a) REFERENCES p (id),"
        " CONSTRAINT ck CHECK (a > 0))"
    )
    assert changes(table, void) == []
    assert changes(table, f"{void}, ADD z INT") == ["ADD COLUMN `z` int(11) DEFAULT NULL"]
