"""Plans how the tables that change are compared: at the first key of a table, and again after a DDL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from unshard.compare.plan import plan_comparison
from unshard.compare.sides import SourceSide, TableWish
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.errors import CompareError, UnshardError
from unshard.model.table import Table, TableName
from unshard.mysql.connection import Endpoint

_NOTHING_TO_COMPARE = "COMPARE-007"
NO_KEY = (
    "not validated: the target's table has no primary key and no unique key without NULL; `unshard compare` compares"
    " its rows by how often each is there"
)
OTHER_KEY = "not validated: the key by which rows are written is none by which they can be compared"
OLD_KEY = "rows that changed before the table got another key are not judged"
GONE = "not validated: the source has no such table any more"


@dataclass(frozen=True, slots=True)
class ValidatedTable:
    """A target table with the source's tables that are routed to it, or the reason why it can't be compared.

    `note` names columns that are not compared.
    """

    table: ComparedTable | None
    fault: str = ""
    note: str = ""

    def of_shard(self, name: TableName) -> ComparedTable | None:
        """Return the table with one source table alone; None where the source has dropped that one."""
        assert self.table is not None, "a table with a fault is not looked at"
        shards = tuple(shard for shard in self.table.shards if shard.table.name == name)
        return replace(self.table, shards=shards) if shards else None


@dataclass(slots=True)
class ValidatedTables:
    """The comparison plans of the target tables, made when they are first needed.

    `version` returns the number of statements that were applied; when it changes, all plans are made anew. `fast`: only
    the existence of rows is compared.
    """

    side: SourceSide
    target: Endpoint
    version: Callable[[], int]
    fast: bool = False
    _known: dict[TableName, ValidatedTable] = field(default_factory=dict)
    _version: int = -1

    def get(self, name: TableName) -> ValidatedTable:
        """Return the plan of a target table. Raises SourceError or TargetError where a server can't be asked now."""
        if self._version != self.version():
            self._version, self._known = self.version(), {}
        if name not in self._known:
            self._known[name] = self._plan(name)
        return self._known[name]

    def forget(self, name: TableName) -> None:
        """Drop the plan; the next `get` plans the table again."""
        self._known.pop(name, None)

    def _plan(self, name: TableName) -> ValidatedTable:
        side = replace(self.side, takes=lambda one: self.side.takes(one) and self.side.route(one) == name)
        recorded: dict[str, frozenset[TableName] | None] = {side.source: frozenset()}
        try:
            plan = plan_comparison((side,), self.target, recorded, lambda one: one == name, lambda one: TableWish())
        except CompareError as error:
            if error.code != _NOTHING_TO_COMPARE:
                raise
            return ValidatedTable(None, GONE)
        for fault in plan.faults:
            if fault.table is None or fault.error.retryable:
                raise fault.error
        told = "; ".join(_in_short(fault.error) for fault in plan.faults)
        table = next((one for one in plan.tables if one.name == name), None)
        if table is None:
            return ValidatedTable(None, f"not validated: {told}")
        if not table.key:
            return ValidatedTable(None, NO_KEY)
        return ValidatedTable(_keys_only(table) if self.fast else table, "", told)


def _in_short(error: UnshardError) -> str:
    return f"{error.code}: {error.message}"


def _keys_only(table: ComparedTable) -> ComparedTable:
    """Return the table with the columns of its key alone: two rows are equal where both exist."""
    names = {name.lower() for name in table.key}
    columns = tuple(column for column in table.columns if column.name.lower() in names)
    shards = tuple(_read_keys(shard, names) for shard in table.shards)
    return replace(table, columns=columns, read=_only(table.read, names), shards=shards)


def _read_keys(shard: ComparedShard, names: set[str]) -> ComparedShard:
    mapping = shard.mapping
    mapped = {mapping.source_column.lower(), mapping.target_column.lower()} if mapping is not None else set()
    return replace(shard, read=_only(shard.read, names | mapped))


def _only(table: Table, names: set[str]) -> Table:
    return replace(table, columns=tuple(column for column in table.columns if column.name.lower() in names))
