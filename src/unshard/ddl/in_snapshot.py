"""Sharding DDL that the snapshots of some merged tables contain and others don't.

The module decides which DDL that may be, and which statements remain to be run.

The target takes the rows of all copies, so it has every column that any of them has. Operation by operation:

| operation | a copy that contains it | on the target, when all tables have it |
|---|---|---|
| ADD COLUMN | may be any | nothing where a copy has brought the column, else run |
| DROP COLUMN | must lack the column: one that it got again would lose its values | run where the target has it |
| a key with a name, added or dropped | may be any | run where the target lacks the key, or still has it |
| the rows of a partition | refused: it has rows from behind the operation | run, as the partition of all rows |
| any other | must be the same with and without the operation | run |

Any other operation (RENAME COLUMN, a primary key, a key without a name) that would change the copy is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.cursor import tokens_of
from unshard.ddl.partition_rows import takes_partition
from unshard.ddl.statement import Ddl, StatementKind
from unshard.model.table import Table, TableName

_KEYS = frozenset({"INDEX", "KEY"})
_KINDS_OF_KEYS = frozenset({"UNIQUE", "FULLTEXT", "SPATIAL"})
_NO_COLUMN = frozenset({"CONSTRAINT", "PRIMARY", "FOREIGN", "CHECK", "PARTITION", "PERIOD", "SYSTEM", "VECTOR"})
_BESIDES = frozenset({"UNIQUE", "PRIMARY", "KEY", "REFERENCES"})
"""Words of a column's definition that add a key or a constraint beside the column."""


@dataclass(frozen=True, slots=True)
class DdlInSnapshot:
    """The sharding DDL that the snapshot of one source contains.

    Args:
        met: by table, the operations of each statement between the begin of the copy and the table's own snapshot.
        ahead: merged tables of which a copy, of any source, contains a DDL that has not run on the target yet.
        joined: in optimistic mode, by merged table whose shards differ, the structure that takes the rows of all
            shards, in the source's words.
    """

    met: Mapping[TableName, tuple[tuple[Ddl, ...], ...]] = field(default_factory=dict)
    ahead: frozenset[TableName] = frozenset()
    joined: Mapping[TableName, Table] = field(default_factory=dict)

    def count(self, name: TableName) -> int:
        """Return how many statements the table's snapshot contains."""
        return len(self.met.get(name, ()))

    def columns(self, name: TableName) -> tuple[frozenset[str], frozenset[str]]:
        """Return the columns that the table got, and those that it lost, before its snapshot; names in lower case."""
        effects = [_effect(part) for parts in self.met.get(name, ()) for part in parts]
        columns = [one for one in effects if one is not None and one.column]
        added, dropped = (frozenset(one.name for one in columns if one.adds is adds) for adds in (True, False))
        return added, dropped


@dataclass(frozen=True, slots=True)
class _Effect:
    """The effect of an operation: it adds (`adds`) or drops a column or, unless `column` is set, a key.

    `name` is in lower case.
    """

    adds: bool
    column: bool
    name: str

    def is_done(self, table: Table) -> bool:
        names = (one.name for one in (table.columns if self.column else table.indexes))
        return (self.name in {name.lower() for name in names}) is self.adds


def is_kept(part: Ddl, copy: Table, leaves_as_it_is: Callable[[Ddl], bool]) -> bool:
    """Return whether a copy that contains this operation can be merged with one that does not.

    `leaves_as_it_is` is asked about operations other than adding or dropping a column or a named key.
    """
    effect = _effect(part)
    if takes_partition(part):
        return False
    if effect is None:
        return leaves_as_it_is(part)
    return effect.adds or not effect.column or effect.is_done(copy)


def left_to_run(statements: Iterable[Ddl], table: Table) -> tuple[Ddl, ...]:
    """Return the operations that copies have not already brought to the target's table.

    A statement of which nothing is there is returned whole.
    """
    return tuple(left for ddl in statements for left in _left(ddl, table))


def _left(ddl: Ddl, table: Table) -> Sequence[Ddl]:
    parts = alter_parts(ddl)
    left = [part for part in parts if (effect := _effect(part)) is None or not effect.is_done(table)]
    return (ddl,) if len(left) == len(parts) else left


def _effect(part: Ddl) -> _Effect | None:
    own = [token for token in tokens_of(part.text, part.context) if token.start >= (part.parts_at or 0)]
    words = [token.word for token in own]
    verb = words[0] if words else ""
    if verb not in ("CREATE", "ADD", "DROP") or len(own) < 2 or words[1] in _NO_COLUMN:
        return None
    at = 1 + (words[1] in _KINDS_OF_KEYS)
    key = at > 1 or words[at] in _KEYS or part.kind is not StatementKind.ALTER_TABLE
    if part.kind is not StatementKind.ALTER_TABLE:
        at = next(place for place, word in enumerate(words) if word == "INDEX") + 1
    else:
        at += words[at] in (_KEYS if key else ("COLUMN",))
    while at < len(own) and words[at] in ("IF", "NOT", "EXISTS"):
        at += 1
    if at >= len(own) or own[at].is_symbol("(") or words[at] == "USING" or own[at].value.upper() == "PRIMARY":
        return None
    if not key and verb == "ADD" and _BESIDES.intersection(words[at + 1 :]):
        return None
    return _Effect(verb != "DROP", not key, own[at].value.lower())
