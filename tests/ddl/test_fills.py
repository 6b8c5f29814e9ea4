"""What a new column puts into rows that are there: the same at each run, or not."""

from __future__ import annotations

import pytest

from unshard.ddl.backfill import filled_by_the_run, filled_unlike_upstream
from unshard.ddl.context import Context
from unshard.ddl.intent import Again, Step
from unshard.ddl.parse import classify_ddl
from unshard.ddl.rewrite import without_ignore
from unshard.ddl.statement import StatementKind

BEFORE = ("`id` bigint(20) NOT NULL", "`old` timestamp NOT NULL DEFAULT current_timestamp()")


def create(*lines: str) -> str:
    return "CREATE TABLE `t` (\n  " + ",\n  ".join((*lines, "PRIMARY KEY (`id`)")) + "\n) ENGINE=InnoDB"


def filled(statement: str, *lines: str) -> tuple[str, ...]:
    """By an ALTER of `all`.`t` that leads to those columns behind `id`."""
    before, after = {"`all`.`t`": create(*BEFORE)}, {"`all`.`t`": create(BEFORE[0], *lines)}
    text = f"ALTER TABLE `all`.`t` {statement}"
    return filled_by_the_run(Step(text, StatementKind.ALTER_TABLE, Again.HARMLESS, before, after, Context()))


@pytest.mark.parametrize(
    "line",
    [
        "`c` timestamp(3) NOT NULL DEFAULT current_timestamp(3)",
        "`c` datetime DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
        "`c` date DEFAULT curdate()",
        "`c` varchar(36) DEFAULT uuid()",
        "`c` varchar(36) NOT NULL DEFAULT (uuid()) COMMENT 'x'",
        "`c` double DEFAULT (1 + rand())",
        "`c` bigint(20) DEFAULT nextval(`s`.`q`)",
        "`c` int(11) NOT NULL AUTO_INCREMENT",
    ],
)
def test_what_only_that_run_gives(line: str) -> None:
    assert filled("ADD COLUMN c INT", BEFORE[1], line) == ("c",)
    assert filled("add `C` int first, DROP old", line) == ("c",)
    assert filled("ADD (b INT, c INT), COMMENT 'now'", BEFORE[1], "`b` int(11) DEFAULT 5", line) == ("c",)


@pytest.mark.parametrize(
    "line",
    [
        "`c` timestamp NULL DEFAULT NULL ON UPDATE current_timestamp()",
        "`c` timestamp NOT NULL DEFAULT '2020-01-01 00:00:00' ON UPDATE current_timestamp()",
        "`c` varchar(9) DEFAULT 'uuid()' COMMENT 'AUTO_INCREMENT'",
        "`c` int(11) NOT NULL",
        "`c` int(11) DEFAULT (`id` + 1)",
        "`c` int(11) GENERATED ALWAYS AS (`id` + 1) STORED",
    ],
)
def test_what_every_run_gives(line: str) -> None:
    assert filled("ADD COLUMN c INT", BEFORE[1], line) == ()


def test_a_column_that_was_there_is_not_filled() -> None:
    renamed = "`c` timestamp NOT NULL DEFAULT current_timestamp()"
    assert filled("CHANGE old c TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP", renamed) == ()
    assert filled("RENAME COLUMN old TO c, ADD d INT", renamed, "`d` int(11) DEFAULT NULL") == ()
    assert filled("MODIFY old TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)", BEFORE[1]) == ()


def test_a_tool_has_its_own_time_for_each_row() -> None:
    line = "`c` timestamp NOT NULL DEFAULT current_timestamp()"
    before, after = {"`all`.`t`": create(*BEFORE)}, {"`all`.`t`": create(*BEFORE, line)}
    text = "ALTER TABLE `all`.`t` ADD c TIMESTAMP NOT NULL DEFAULT NOW()"
    for context, unlike in ((Context(), ()), (Context(by_tool=True), ("c",))):
        step = Step(text, StatementKind.ALTER_TABLE, Again.HARMLESS, before, after, context)
        assert filled_unlike_upstream(step) == unlike
        assert Context.from_dict(context.to_dict()) == context


def test_ignore_is_taken_out() -> None:
    def without(text: str) -> str:
        return without_ignore(classify_ddl(text, Context("s"))).text

    assert without("ALTER IGNORE TABLE t ADD UNIQUE (a)") == "ALTER TABLE t ADD UNIQUE (a)"
    assert without("alter online ignore table `ignore` add b int") == "alter online table `ignore` add b int"
    for same in ("ALTER TABLE t ADD UNIQUE `IGNORE` (a)", "CREATE UNIQUE INDEX i ON t (a)"):
        assert without(same) == same


def test_a_tool_copies_a_column_that_is_dropped_and_added_by_its_name() -> None:
    before, after = (
        {"`all`.`t`": create(*BEFORE, "`c` int(11)")},
        {"`all`.`t`": create(*BEFORE, "`c` bigint(20) DEFAULT 7")},
    )
    text = "ALTER TABLE `all`.`t` DROP COLUMN c, ADD COLUMN C BIGINT DEFAULT 7"
    for by_tool, unlike in ((False, ()), (True, ("c",))):
        context = Context(by_tool=by_tool)
        step = Step(text, StatementKind.ALTER_TABLE, Again.HARMLESS, before, after, context)
        assert filled_unlike_upstream(step) == filled_by_the_run(step) == unlike


@pytest.mark.parametrize(
    ("lines", "unlike"),
    [
        (("`a` varchar(80) DEFAULT lcase(`Code`)",), ("a",)),
        (("`a` varchar(80) DEFAULT (lower(code))",), ("a",)),
        (("`a` varchar(80) DEFAULT (lower(`codes`))",), ()),
        (("`a` varchar(80) DEFAULT 'code' COMMENT '`code`'",), ()),
        (("`a` varchar(80) DEFAULT (concat('`code`', `id`))",), ()),
        (("`a` varchar(80) GENERATED ALWAYS AS (lcase(`code`)) VIRTUAL",), ()),
        (("`a` varchar(80) DEFAULT concat(`b`,'x')", "`b` varchar(80) DEFAULT lcase(`code`)"), ("a", "b")),
        (("`a` varchar(80) DEFAULT (`b`)", "`b` varchar(80) GENERATED ALWAYS AS (lcase(`code`)) VIRTUAL"), ("a",)),
        (("`a` varchar(80) DEFAULT (lower(`b`))", "`b` varchar(36) DEFAULT (uuid())"), ("a", "b")),
    ],
)
def test_a_default_over_a_column_whose_values_differ(lines: tuple[str, ...], unlike: tuple[str, ...]) -> None:
    """A column mapping writes `code`."""
    code = "`code` varchar(8) NOT NULL"
    before, after = {"`all`.`t`": create(BEFORE[0], code)}, {"`all`.`t`": create(BEFORE[0], code, *lines)}
    text = f"ALTER TABLE `all`.`t` {', '.join('ADD COLUMN ' + line for line in lines)}"
    step = Step(text, StatementKind.ALTER_TABLE, Again.HARMLESS, before, after, Context())
    rewritten = frozenset({"code"})
    assert filled_unlike_upstream(step, None, rewritten) == filled_by_the_run(step, rewritten) == unlike
    assert filled_unlike_upstream(step) == filled_by_the_run(step) == (unlike if "uuid" in text else ())


def test_a_table_that_gets_another_name_too() -> None:
    before = {"`d`.`t`": create(*BEFORE), "`d`.`u`": None}
    after = {"`d`.`t`": None, "`d`.`u`": create(*BEFORE, "`c` varchar(36) DEFAULT uuid()")}
    text = "ALTER TABLE `d`.`t` ADD c VARCHAR(36) DEFAULT (UUID()), RENAME TO `d`.`u`"
    step = Step(text, StatementKind.ALTER_TABLE, Again.HARMLESS, before, after, Context())
    assert filled_unlike_upstream(step) == filled_by_the_run(step) == ("c",)
