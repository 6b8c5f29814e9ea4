"""REFERENCES in the definition of a column, which the source ignores: no target makes a foreign key of it."""

from __future__ import annotations

import pytest

from unshard.ddl.context import Context
from unshard.ddl.evaluate import evaluate
from unshard.ddl.parse import classify_ddl
from unshard.model.table import TableName

READS_OVER = Context("s", mariadb=False, inline_references=False)

MEANT = {
    "CREATE TABLE c (id INT, p INT REFERENCES p (id) ON DELETE CASCADE NOT NULL, q DECIMAL(5) REFERENCES s.p)":
    "CREATE TABLE c (id INT, p INT NOT NULL, q DECIMAL(5))",
    "CREATE TABLE c (p INT /* as */ REFERENCES `p` (id, j) MATCH FULL ON UPDATE SET NULL ON DELETE NO ACTION, q INT)":
    "CREATE TABLE c (p INT /* as */, q INT)",
    "ALTER TABLE c ADD p INT REFERENCES p(id) AFTER id, ADD q INT REFERENCES p (id), ADD (r INT REFERENCES p)":
    "ALTER TABLE c ADD p INT AFTER id, ADD q INT, ADD (r INT)",
}  # fmt: skip

KEPT = (
    "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id), CONSTRAINT k FOREIGN KEY n (p, q) REFERENCES p (a, b))",
    "ALTER TABLE c ADD FOREIGN KEY (p(9), q) REFERENCES p (id) ON DELETE CASCADE",
    "CREATE TABLE c (`references` INT DEFAULT 3 COMMENT 'REFERENCES p (id)', q INT CHECK (c.references > 3))",
    "ALTER TABLE c RENAME TO d",
)


@pytest.mark.parametrize("sql", MEANT)
def test_the_clause_is_taken_out(sql: str) -> None:
    assert classify_ddl(sql, READS_OVER).text == MEANT[sql]
    assert classify_ddl(sql, Context("s", mariadb=False)).text == sql, "a server that makes a foreign key of it"


@pytest.mark.parametrize("sql", KEPT)
def test_what_else_is_written_stays(sql: str) -> None:
    assert classify_ddl(sql, READS_OVER).text == sql


def test_the_structure_has_no_foreign_key() -> None:
    name = TableName("s", "c")
    for context, there in ((READS_OVER, False), (Context("s", mariadb=False), True)):
        ddl = classify_ddl("CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id))", context)
        table = evaluate(ddl, lambda other: None, lambda schema: None)[name]
        assert table is not None
        assert (table.foreign_keys, [key.name for key in table.indexes]) == (there, ["p", "PRIMARY"][not there :])
