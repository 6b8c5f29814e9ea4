"""The target's structures as the incremental part has read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from unshard.model.table import Table, TableName
from unshard.sync.batch.plan import TablePlan


@dataclass(slots=True)
class TargetTables:
    """A cache of the target's structures. Each is read once until `forget`: many shards ask for the same one.

    `read` returns a table's structure; `read_families` returns, by table, the name of its group of foreign keys.
    """

    read: Callable[[TableName], Table | None]
    read_families: Callable[[], Mapping[TableName, TableName]] = dict
    _known: dict[TableName, Table | None] = field(default_factory=dict)
    _families: Mapping[TableName, TableName] | None = None

    def get(self, name: TableName) -> Table | None:
        """Return the structure of a target table; None if there is no such table."""
        if name not in self._known:
            self._known[name] = self.read(name)
        return self._known[name]

    def forget(self, names: Iterable[TableName]) -> None:
        """Drop what is cached of these tables, and of all foreign keys."""
        for name in names:
            self._known.pop(name, None)
        self._families = None

    def connected(self, name: TableName) -> tuple[TableName, ...]:
        """Return the other tables that checked foreign keys connect with a target table, directly or not."""
        families = self._read_families()
        family = families.get(name)
        return tuple(sorted(other for other, one in families.items() if one == family and other != name))

    def in_family(self, plan: TablePlan) -> TablePlan:
        """Return the plan, ordered together with the tables that checked foreign keys connect with its target."""
        family = self._read_families().get(plan.target.name)
        if family is None:
            return plan
        why = "foreign keys, which the target checks, connect it with others: all changes of these tables keep order"
        return replace(plan, target=replace(plan.target, ordered=True, family=family, why=why))

    def _read_families(self) -> Mapping[TableName, TableName]:
        if self._families is None:
            self._families = self.read_families()
        return self._families
