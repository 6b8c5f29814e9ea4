"""Row events of ever new tables that are skipped, such as copies made daily: what is kept of their names is bounded."""

from __future__ import annotations

from collections import Counter

from unshard.model.table import Table, TableName
from unshard.sync.batch.row_counts import Account
from unshard.sync.planning import table_plans
from unshard.sync.planning.skipped_events import MOST_TABLES, OTHERS, SkippedTables
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.planning.target_tables import TargetTables
from unshard.sync.status import Meter
from unshard.transform.block_allow import BlockAllowList
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.route import Router


def rule(name: TableName) -> str:
    return "filters.odd" if int(name.table[1:]) % 2 else "block-allow-list"


def day(number: int) -> dict[TableName, int]:
    return {TableName("d", f"t{number}"): 3, TableName("d", f"t{number + 1}"): 4}


def test_the_further_tables_are_counted_together_by_rule() -> None:
    skipped, meter, total = SkippedTables(rule, list), Meter(), Counter[str]()
    for number in range(0, 2000, 2):
        account = Account(skipped=skipped.by_rule(day(number)))
        meter.passed(account)
        total.update({"block-allow-list": 3, "filters.odd": 4})
    found = meter.read(0.0, None).skipped
    assert len(found) == MOST_TABLES + 2
    assert {name for name, _ in found} == {f"d.t{number}" for number in range(MOST_TABLES)} | {OTHERS}
    assert sum((Counter({rule: events}) for (_, rule), events in found.items()), Counter()) == total


def test_a_table_that_has_a_row_keeps_it_after_a_restart() -> None:
    recorded = [f"d.t{number}" for number in range(1000, 1000 + MOST_TABLES)]
    skipped = SkippedTables(rule, lambda: recorded)
    assert skipped.by_rule({TableName("d", "t1000"): 1, TableName("d", "t2"): 2, TableName("d", "t4"): 4}) == {
        ("d.t1000", "block-allow-list"): 1,
        (OTHERS, "block-allow-list"): 6,
    }


def test_verdicts_on_names_are_not_kept_for_ever() -> None:
    ends = BlockAllowList(), Router({}), ColumnMapper({}), dict[TableName, Table]().__getitem__
    rules = TableRules("s1", *ends, TargetTables(lambda name: None), {})
    for number in range(3 * table_plans.MOST_VERDICTS):
        assert rules.takes(TableName("d", f"t{number}"))
    assert len(rules._taken) <= table_plans.MOST_VERDICTS
