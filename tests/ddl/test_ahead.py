"""Sharding DDL that some copies have already: what may be so, and what of it is left to run on the target."""

from __future__ import annotations

import pytest

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.context import Context
from unshard.ddl.in_snapshot import DdlInSnapshot, is_kept, left_to_run
from unshard.ddl.parse import classify_ddl
from unshard.ddl.statement import Ddl
from unshard.model.table import Column, Index, Table, TableName

NAME = TableName("up", "t")
THERE = Table(
    NAME,
    tuple(Column(name, "int", "int(11)") for name in ("id", "Note", "old")),
    (Index("PRIMARY", ("id",), (0,), unique=True), Index("by_old", ("old",), (0,), unique=False)),
)


def ddl(text: str) -> Ddl:
    return classify_ddl(text, Context("up"))


def left(text: str) -> list[str]:
    return [one.text for one in left_to_run([ddl(text)], THERE)]


@pytest.mark.parametrize(
    ("statement", "rest"),
    [
        ("ALTER TABLE t ADD COLUMN note INT", []),
        ("ALTER TABLE t ADD note INT AFTER id", []),
        ("ALTER TABLE t ADD COLUMN IF NOT EXISTS `NOTE` INT", []),
        ("ALTER TABLE t ADD more INT", ["ALTER TABLE t ADD more INT"]),
        ("ALTER TABLE t DROP gone, DROP COLUMN old", ["ALTER TABLE t DROP COLUMN old"]),
        ("ALTER TABLE t DROP COLUMN IF EXISTS gone", []),
        ("ALTER TABLE t ADD (note INT, m INT), DROP old", ["ALTER TABLE t ADD COLUMN m INT", "ALTER TABLE t DROP old"]),
        ("ALTER TABLE t ADD KEY by_old (old), ADD UNIQUE u (old)", ["ALTER TABLE t ADD UNIQUE u (old)"]),
        ("ALTER TABLE t ADD UNIQUE KEY by_old (old)", []),
        ("ALTER TABLE t ADD FULLTEXT INDEX by_old (old)", []),
        ("ALTER TABLE t ADD KEY (old)", ["ALTER TABLE t ADD KEY (old)"]),
        ("ALTER TABLE t ADD INDEX USING BTREE (old)", ["ALTER TABLE t ADD INDEX USING BTREE (old)"]),
        ("ALTER TABLE t DROP KEY by_note", []),
        ("CREATE UNIQUE INDEX IF NOT EXISTS by_old ON t (old)", []),
        ("CREATE INDEX by_note ON t (note)", ["CREATE INDEX by_note ON t (note)"]),
        ("DROP INDEX by_note ON t", []),
        ("DROP INDEX `PRIMARY` ON t", ["DROP INDEX `PRIMARY` ON t"]),
        ("ALTER TABLE t MODIFY note BIGINT", ["ALTER TABLE t MODIFY note BIGINT"]),
        ("ALTER TABLE t ADD COLUMN note INT UNIQUE", ["ALTER TABLE t ADD COLUMN note INT UNIQUE"]),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (old > 0)", ["ALTER TABLE t ADD CONSTRAINT c CHECK (old > 0)"]),
        ("ALTER TABLE t DROP PRIMARY KEY", ["ALTER TABLE t DROP PRIMARY KEY"]),
        ("ALTER TABLE t ENGINE = InnoDB", ["ALTER TABLE t ENGINE = InnoDB"]),
        ("ALTER TABLE t ADD PARTITION PARTITIONS 1", ["ALTER TABLE t ADD PARTITION PARTITIONS 1"]),
    ],
)  # fmt: skip
def test_what_copies_have_brought_is_not_run_again(statement: str, rest: list[str]) -> None:
    assert left(statement) == rest


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("ALTER TABLE t ADD COLUMN anything INT", True),
        ("ALTER TABLE t DROP COLUMN gone", True),
        ("ALTER TABLE t DROP COLUMN old", False),
        ("ALTER TABLE t DROP COLUMN NOTE", False),
        ("ALTER TABLE t ADD KEY k (id)", True),
        ("DROP INDEX k ON t", True),
        ("DROP INDEX `PRIMARY` ON t", False),
        ("ALTER TABLE t RENAME COLUMN a TO b", False),
        ("ALTER TABLE t MODIFY old BIGINT", False),
        ("ALTER TABLE t ADD PRIMARY KEY (id)", False),
    ],
)
def test_a_copy_keeps_what_its_statement_is_about(statement: str, kept: bool) -> None:
    """A column that was dropped and came again would lose its values with the DROP on the target."""
    (part,) = alter_parts(ddl(statement))
    assert is_kept(part, THERE, lambda part: False) is kept


def test_any_other_operation_may_be_on_a_copy_that_it_leaves_as_it_is() -> None:
    assert is_kept(ddl("ALTER TABLE t MODIFY old BIGINT"), THERE, lambda part: True)


def test_the_columns_that_a_copy_has_got_and_lost() -> None:
    parts = alter_parts(ddl("ALTER TABLE t ADD a INT, DROP B, DROP KEY c"))
    copied = DdlInSnapshot({NAME: (parts, alter_parts(ddl("ALTER TABLE t DROP d")))})
    assert copied.columns(NAME) == (frozenset({"a"}), frozenset({"b", "d"}))
    assert (copied.count(NAME), copied.count(TableName("up", "u"))) == (2, 0)
