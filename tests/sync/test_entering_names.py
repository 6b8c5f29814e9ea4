"""Tables that a RENAME takes from an excluded name to a followed one, where a human has left the statement out."""

from __future__ import annotations

import pytest

from unshard.ddl.context import Context
from unshard.ddl.online import OnlineDdl
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import StatementRules
from unshard.model.table import TableName
from unshard.sync.statements.reader import without_entering
from unshard.transform.online_tables import OnlineTables

RULES = StatementRules(
    allows=lambda name: not name.table.startswith(("shut", "_")),
    allows_schema=lambda schema: True,
    route=lambda name: name,
    route_schema=lambda schema: schema,
    online=OnlineDdl(OnlineTables.compile(["^_(.+)_gho$"], ["^_(.+)_del$"])),
)


@pytest.mark.parametrize(
    ("pairs", "kept", "entered"),
    [
        ("shut TO t", "", {"t"}),
        ("t TO shut_old, shut_new TO t", "t TO shut_old", {"t"}),
        ("t TO old, shut TO t", "t TO old", {"t"}),
        ("shut TO t, t TO u", "", {"u"}),
        ("shut TO t, t TO shut2", "", set()),
        ("a TO shut, b TO a, shut TO b", "a TO shut, b TO a, shut TO b", set()),
        ("t TO _t_del, _t_gho TO t, shut TO u", "t TO _t_del, _t_gho TO t", {"u"}),
        ("shut1 TO shut2, a TO b", "a TO b", set()),
    ],
)
def test_what_is_left_to_follow(pairs: str, kept: str, entered: set[str]) -> None:
    parsed = classify_ddl(f"RENAME TABLE {pairs}", Context(schema="d"))
    left, names = without_entering(parsed, RULES)
    assert names == {TableName("d", name) for name in entered}
    text = left.text.replace("`d`.", "").replace("`", "") if left is not None else ""
    assert text.removeprefix("RENAME TABLE ") == kept


def test_a_rename_in_an_alter() -> None:
    parsed = classify_ddl("ALTER TABLE shut ADD c INT, RENAME TO t", Context(schema="d"))
    assert without_entering(parsed, RULES) == (None, frozenset({TableName("d", "t")}))
