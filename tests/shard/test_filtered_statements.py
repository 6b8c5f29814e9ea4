"""A sharding DDL of which an event filter leaves a part out: what is left of it, and what it makes of the shard."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from merged_world import BASE, definition

from unshard.ddl.context import Context
from unshard.ddl.evaluate import definition_of
from unshard.ddl.online import Kept, OnlineDdl
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import AlterOperation, StatementRules, pieces
from unshard.errors import Where
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect
from unshard.schema.text import to_table
from unshard.sync.sharding.optimistic_statements import OptimisticStatements
from unshard.sync.sharding.statements import ShardedStatements
from unshard.transform.event_filter import Verdict
from unshard.transform.online_tables import OnlineTables

SHARD, GHOST = TableName("s", "t_1"), TableName("s", "_t_1_gho")
CONTEXT = Context("s")
SWAP = "RENAME TABLE s.t_1 TO s._t_1_del, s._t_1_gho TO s.t_1"


def found(*statements: str, left_out: str = "DROP COLUMN") -> tuple[AlterOperation, ...]:
    """What the rules leave of statements that gh-ost has run on its ghost table."""
    kept = tuple(Kept(f"ALTER TABLE s._t_1_gho {one}", CONTEXT) for one in statements)
    rules = StatementRules(
        lambda _: True,
        lambda _: True,
        lambda _: TableName("all", "t"),
        lambda _: "all",
        judge=lambda _, part, __: Verdict("Ignore", "keep") if left_out in part.text else None,
        online=OnlineDdl(OnlineTables.compile([r"^_(.+)_gho$"], [r"^_(.+)_(?:ghc|del)$"]), {GHOST: kept}),
    )
    return pieces(classify_ddl(SWAP, CONTEXT), rules, lambda _: table(BASE))


def table(create_sql: str) -> Table:
    return to_table(definition(create_sql), SHARD, Dialect.MARIADB)


def effect(operations: tuple[AlterOperation, ...], before: Table, after: Table) -> tuple[Table, str]:
    groups = SimpleNamespace(dialect=Dialect.MARIADB, definition=lambda one, _: definition_of(one, Dialect.MARIADB))
    handler: Any = SimpleNamespace(_merged_groups=groups)
    return OptimisticStatements._effect(handler, operations, before, after, Where("s1"))


WITHOUT = BASE.replace("  `v` varchar(20) NOT NULL,\n", "")
MORE = WITHOUT.replace("  PRIMARY", "  `d` int(11) DEFAULT NULL,\n  PRIMARY")


@pytest.mark.parametrize(
    ("statements", "after", "expected"),
    [
        (("DROP COLUMN v", "AUTO_INCREMENT=7"), WITHOUT, ["id", "v"]),
        (("DROP COLUMN v", "ADD COLUMN d INT"), MORE, ["id", "v", "d"]),
        (("DROP COLUMN v, ADD COLUMN d INT",), MORE, ["id", "v", "d"]),
    ],
)
def test_a_part_that_is_left_out_has_no_effect_on_the_target(
    statements: tuple[str, ...], after: str, expected: list[str]
) -> None:
    made, barrier = effect(found(*statements), table(BASE), table(after))
    assert [column.name for column in made.columns] == expected
    assert barrier == ""


def test_what_is_run_whole_leads_to_the_structure_that_the_source_has() -> None:
    """It is not computed anew: the swap itself runs nothing and changes nothing."""
    after = table(MORE)
    made, _ = effect(found("ADD COLUMN d INT", "AUTO_INCREMENT=7", left_out="nothing"), table(WITHOUT), after)
    assert made is after


@pytest.mark.parametrize("statements", [("DROP COLUMN v", "AUTO_INCREMENT=7"), ("DROP COLUMN v, AUTO_INCREMENT=7",)])
def test_a_counter_alone_waits_for_nobody(statements: tuple[str, ...]) -> None:
    """All else of the change is left out, so other tables have nothing to meet."""
    handler = ShardedStatements(None, "ignore")  # type: ignore[arg-type]
    shared = handler.share(found(*statements), Where("s1"))
    assert shared.meets is None
    assert not [part for piece in shared.pieces for part in piece.run]


@pytest.mark.parametrize("statements", [("ADD COLUMN d INT", "AUTO_INCREMENT=7"), ("AUTO_INCREMENT=7",)])
def test_a_counter_that_is_not_left_of_a_filtered_change_is_met(statements: tuple[str, ...]) -> None:
    handler = ShardedStatements(None, "ignore")  # type: ignore[arg-type]
    operations = found(*statements)
    shared = handler.share(operations, Where("s1"))
    assert (shared.meets, shared.pieces) == (SHARD, operations)
