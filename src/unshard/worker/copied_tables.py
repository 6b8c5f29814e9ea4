"""The full-load progress of a subtask's tables, as it was last reported.

Each change has a revision, so that a caller gets only what is new since its last call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from secrets import token_hex
from threading import Lock

from unshard.api.status import CopyProgress, TableCopy
from unshard.errors import ConfigError
from unshard.model.progress import TableProgress
from unshard.model.table import TableName


@dataclass(slots=True)
class CopiedTables:
    """The full-load progress of one subtask's tables, as it was last reported. Any thread may ask.

    `route` gives the target of a table.
    """

    route: Callable[[TableName], TableName]
    _life: str = field(default_factory=lambda: token_hex(8))
    _revision: int = 0
    _told: dict[TableName, tuple[TableProgress, TableCopy, int]] = field(default_factory=dict)
    _targets: dict[TableName, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def since(self, tables: Iterable[TableProgress], life: str, revision: int) -> CopyProgress:
        """Return those of `tables`, which are all tables now, that have changed after the revision of that process."""
        with self._lock:
            there = {one.table: one for one in tables}
            if self._told.keys() - there.keys():  # a dump that has begun anew, with other tables
                self._life, self._told = token_hex(8), {}
            changed = [one for one in there.values() if one != self._told.get(one.table, (None,))[0]]
            self._revision += bool(changed)
            for one in changed:
                self._told[one.table] = one, self._form(one), self._revision
            whole = life != self._life
            found = tuple(form for _, form, at in self._told.values() if whole or at > revision)
            return CopyProgress(life=self._life, revision=self._revision, whole=whole, tables=found)

    def _form(self, one: TableProgress) -> TableCopy:
        if one.table not in self._targets:
            try:
                self._targets[one.table] = str(self.route(one.table))
            except ConfigError:  # two rules match; the task has stopped with it
                self._targets[one.table] = ""
        return TableCopy(
            table=str(one.table),
            target=self._targets[one.table],
            stage=one.stage,
            rows=one.rows,
            rows_about=one.rows_about,
            size=one.size,
        )
