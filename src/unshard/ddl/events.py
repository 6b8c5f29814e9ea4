"""Names of statements: the words that `events` of a binlog event filter takes (reference of DM, section 5.3).

DM gives each part of an ALTER TABLE one name, which for many parts is `alter table`. DM's list also holds more exact
names that DM never gives. Here such a part has both names.

| part | DM's name | and |
|---|---|---|
| MODIFY, CHANGE | see `ddl.modified` | |
| ADD COLUMN | `alter table` | `add column` |
| ADD PRIMARY KEY, ADD … FOREIGN KEY | `modify constraint` | `add primary key`, `add foreign key` |
| DROP FOREIGN KEY | `alter table` | `drop foreign key` |
| DROP INDEX of a unique key, of PRIMARY | `drop index` | `drop unique key`, `drop primary key` |
| ALTER COLUMN … SET DEFAULT | `modify default value` | `set default value` |
| ALTER INDEX … | `alter table` | `alter index visibility` |
| ADD PARTITION | `alter table` | `add table partition` |
| PARTITION BY, REMOVE PARTITIONING | `alter table` | `alter table partitioning`, `remove table partitioning` |
| REORGANIZE PARTITION of one into several | `reorganize table partition` | `split table partition` |
| character set, collation | `modify charset`, `modify collation` | `modify table charset and collate` |
| COMMENT, AUTO_INCREMENT, TTL, REMOVE TTL | `alter table` | `modify table comment`, `rebase auto id`, `alter ttl …` |
| any part of several | its own | `multi schema change` |
| ALTER DATABASE | `alter database` | `modify schema charset and collate` |
"""

from __future__ import annotations

from collections.abc import Sequence

from unshard.config.event_names import EventName
from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.cursor import tokens_of
from unshard.ddl.modified import ALTER, BY_COLUMN, modified, named_column, new_column
from unshard.ddl.statement import Ddl, StatementKind
from unshard.model.table import Table
from unshard.schema.lex import Token

__all__ = ["BY_COLUMN", "dm_events", "event_of"]

_RENAMES = {"COLUMN": "rename column", "INDEX": "rename index", "KEY": "rename index"}
_PARTITIONS = {
    "TRUNCATE": "truncate table partition",
    "REBUILD": "rebuild table partition",
    "COALESCE": "coalesce table partition",
    "EXCHANGE": "exchange table partition",
}
_NEW_KEYS = frozenset({"CONSTRAINT", "INDEX", "KEY", "UNIQUE", "PRIMARY", "FOREIGN", "FULLTEXT", "SPATIAL", "VECTOR"})
_CONSTRAINT = "modify constraint"
_OPTIONS: tuple[tuple[str, EventName], ...] = (
    ("CHARSET", EventName("modify charset", frozenset({"modify table charset and collate"}))),
    ("CHARACTER", EventName("modify charset", frozenset({"modify table charset and collate"}))),
    ("COLLATE", EventName("modify collation", frozenset({"modify table charset and collate"}))),
    ("ENGINE", EventName("modify storage engine")),
    ("COMMENT", EventName(ALTER, frozenset({"modify table comment"}))),
    ("AUTO_INCREMENT", EventName(ALTER, frozenset({"rebase auto id"}))),
    ("TTL", EventName(ALTER, frozenset({"alter ttl info"}))),
)


def event_of(part: Ddl, before: Table | None, *, several: bool = False) -> EventName:
    """Return the names of one operation (`alter_parts` splits an ALTER into them).

    `before` is the tracked structure of its table before the statement; without it, DM's name of a MODIFY is `alter
    table`. `several` is whether the statement has other parts too.
    """
    if part.kind is StatementKind.ALTER_DATABASE:
        return EventName(part.kind.value, frozenset({"modify schema charset and collate"}))
    if part.kind is StatementKind.DROP_INDEX:
        return EventName(part.kind.value, _dropped_key(_index_name(tokens_of(part.text, part.context)), before))
    if part.kind is not StatementKind.ALTER_TABLE:
        return EventName(part.kind.value)
    found = _of_part(_own_tokens(part), before, mariadb=part.context.mariadb)
    return EventName(found.name, found.also | {"multi schema change"}) if several else found


def dm_events(ddl: Ddl) -> tuple[str, ...]:
    """Return DM's names of the statement's operations, each once and sorted, as far as the text determines them."""
    if ddl.kind is not StatementKind.ALTER_TABLE:
        return (ddl.kind.value,)
    return tuple(sorted({_name_by_text(part) for part in alter_parts(ddl)}))


def _name_by_text(part: Ddl) -> str:
    return BY_COLUMN if named_column(_own_tokens(part)) is not None else event_of(part, None).name


def _own_tokens(part: Ddl) -> list[Token]:
    """Return the tokens after ALTER TABLE and the table's name."""
    if part.parts_at is None:
        return []
    return [token for token in tokens_of(part.text, part.context) if token.start >= part.parts_at]


def _of_part(own: Sequence[Token], before: Table | None, *, mariadb: bool) -> EventName:
    first = own[0].word if own else ""
    second = own[1].word if len(own) > 1 else ""
    words = [token.word for token in own]
    column = named_column(own)
    if column is not None:
        return EventName(modified(before, column, new_column(own, mariadb=mariadb)))
    if first == "ADD":
        return _added(words)
    if first == "DROP":
        return _dropped(own, before)
    if first == "RENAME":
        return EventName(_RENAMES.get(second, StatementKind.RENAME_TABLE.value))
    if first == "ALTER":
        return _altered(words)
    if first in _PARTITIONS and second == "PARTITION":
        return EventName(_PARTITIONS[first])
    if first == "REORGANIZE":
        return EventName(
            "reorganize table partition", frozenset({"split table partition"}) if _splits(own) else frozenset()
        )
    if first == "PARTITION":
        return EventName(ALTER, frozenset({"alter table partitioning"}))
    if first == "REMOVE":
        return EventName(ALTER, frozenset({"alter ttl remove" if second == "TTL" else "remove table partitioning"}))
    if first == "CONVERT" and second == "TO":
        return EventName("modify charset", frozenset({"modify table charset and collate"}))
    return _of_options(words)


def _added(words: Sequence[str]) -> EventName:
    second = words[1] if len(words) > 1 else ""
    if second == "PARTITION":
        return EventName(ALTER, frozenset({"add table partition"}))
    if second not in _NEW_KEYS:
        return EventName(ALTER, frozenset() if second in ("CHECK", "PERIOD", "SYSTEM") else frozenset({"add column"}))
    if second == "CONSTRAINT":
        kind = next((word for word in words[2:] if word in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")), "")
    else:
        kind = second
    also = {"PRIMARY": "add primary key", "FOREIGN": "add foreign key"}.get(kind)
    return EventName(_CONSTRAINT, frozenset({also} if also else ()))


def _dropped(own: Sequence[Token], before: Table | None) -> EventName:
    second = own[1].word if len(own) > 1 else ""
    if second == "PARTITION":
        return EventName("drop table partition")
    if second == "PRIMARY":
        return EventName("drop primary key")
    if second in ("INDEX", "KEY"):
        return EventName("drop index", _dropped_key(_index_name(own), before))
    if second == "FOREIGN":
        return EventName(ALTER, frozenset({"drop foreign key"}))
    return EventName(ALTER if second in ("CONSTRAINT", "CHECK", "PERIOD", "SYSTEM") else "drop column")


def _altered(words: Sequence[str]) -> EventName:
    if words[1:2] in (["INDEX"], ["KEY"]):
        return EventName(ALTER, frozenset({"alter index visibility"}))
    if words[1:2] in (["CHECK"], ["CONSTRAINT"]):
        return EventName(ALTER)
    return EventName("modify default value", frozenset({"set default value"} if "SET" in words else ()))


def _splits(own: Sequence[Token]) -> bool:
    """Return whether a REORGANIZE PARTITION splits one partition into several."""
    into = next((place for place, token in enumerate(own) if token.word == "INTO"), len(own))
    made = sum(token.word == "PARTITION" for token in own[into:])
    return into > 2 and not any(token.is_symbol(",") for token in own[:into]) and made > 1


def _of_options(words: Sequence[str]) -> EventName:
    """Return the names of a list of table options. DM takes the first option that has a name of its own."""
    found = [event for word in words for option, event in _OPTIONS if option == word]
    named = [event for event in found if event.name != ALTER]
    name = named[0].name if named else ALTER
    return EventName(name, frozenset(also for event in found for also in event.also))


def _index_name(statement: Sequence[Token]) -> str:
    """Return the name of the index after DROP INDEX or DROP KEY."""
    at = next((place for place, token in enumerate(statement) if token.word in ("INDEX", "KEY")), len(statement)) + 1
    if [token.word for token in statement[at : at + 2]] == ["IF", "EXISTS"]:
        at += 2
    return statement[at].value if at < len(statement) else ""


def _dropped_key(name: str, before: Table | None) -> frozenset[str]:
    if name.upper() == "PRIMARY":
        return frozenset({"drop primary key"})
    unique = before.unique_keys if before is not None else ()
    return frozenset({"drop unique key"} if any(index.name.lower() == name.lower() for index in unique) else ())
