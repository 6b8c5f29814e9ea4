"""DM's names for DDL: the words that `events` of a binlog event filter takes (reference of DM, section 5.3)."""

from __future__ import annotations

from unshard.ddl.statement import Ddl, Kind

BY_COLUMN = "modify column*"
"""Stands for MODIFY and CHANGE: DM compares with the column as it was, which the statement doesn't tell.

It then names it `modify column`, `precision decrease`, `value range decrease`, `rename column`, `modify default
value` or another of its kind.
"""

_ALTER = Kind.ALTER_TABLE.value
_CONSTRAINT = "modify constraint"
_ACTIONS = {
    "MODIFY": BY_COLUMN,
    "CHANGE": BY_COLUMN,
    "RENAME COLUMN": "rename column",
    "RENAME INDEX": "rename index",
    "RENAME KEY": "rename index",
    "DROP INDEX": "drop index",
    "DROP KEY": "drop index",
    "DROP PRIMARY": "drop primary key",
    "DROP PARTITION": "drop table partition",
    "TRUNCATE": "truncate table partition",
    "REORGANIZE": "reorganize table partition",
    "REBUILD": "rebuild table partition",
    "COALESCE": "coalesce table partition",
    "EXCHANGE": "exchange table partition",
    "ADD CONSTRAINT": _CONSTRAINT,
    "ADD INDEX": _CONSTRAINT,
    "ADD KEY": _CONSTRAINT,
    "ADD UNIQUE": _CONSTRAINT,
    "ADD PRIMARY": _CONSTRAINT,
    "ADD FOREIGN": _CONSTRAINT,
    "CHARSET": "modify charset",
    "CHARACTER": "modify charset",
    "DEFAULT CHARSET": "modify charset",
    "DEFAULT CHARACTER": "modify charset",
    "CONVERT TO": "modify charset",
    "COLLATE": "modify collation",
    "DEFAULT COLLATE": "modify collation",
    "ENGINE": "modify storage engine",
}
_NO_COLUMN = {
    "DROP": frozenset({"FOREIGN", "CONSTRAINT", "CHECK", "PERIOD", "SYSTEM"}),
    "ALTER": frozenset({"INDEX", "KEY", "CHECK", "CONSTRAINT"}),
}


def dm_events(ddl: Ddl) -> tuple[str, ...]:
    """The names of the statement's operations, each once and sorted: an ALTER TABLE of DM has one for each part."""
    if ddl.kind is not Kind.ALTER_TABLE:
        return (ddl.kind.value,)
    return tuple(sorted({_action(action) for action in ddl.actions}))


def _action(action: str) -> str:
    verb, _, second = action.partition(" ")
    if action in _ACTIONS:
        return _ACTIONS[action]
    if verb == "DROP" and second not in _NO_COLUMN["DROP"]:
        return "drop column"
    if verb == "RENAME":
        return Kind.RENAME_TABLE.value
    if verb == "ALTER" and second not in _NO_COLUMN["ALTER"]:
        return "modify default value"
    return _ALTER
