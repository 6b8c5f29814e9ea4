"""The tables that an earlier block-allow list of the task left out, so that their changes from then are missing.

The target has the lists by which the source has been followed up to its checkpoint (`target.block_allow_lists`).

| a followed table of which the checkpoint has no structure | its rows |
|---|---|
| each of those lists takes it | are in the target: without a copy, or where the dump's flags left it out, by the user |
| one of them leaves it out | are missing (SYNC-084), unless the log makes the table |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from unshard.model.table import TableName
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.block_allow_lists import load_lists
from unshard.transform.source_rules import TableSelection


@dataclass(slots=True)
class EarlierLists:
    """The lists of one source's checkpoint, and the present one. Used by the sync unit's thread."""

    store: CheckpointStore
    present: TableSelection
    _takes: tuple[Callable[[TableName], bool], ...] = field(default=(), repr=False)

    def restore(self) -> None:
        """Read the lists. The next checkpoint records the present one where that is another one."""
        store, present = self.store, self.present.to_dict()
        found = store.on_target(lambda connection: load_lists(connection, store.meta, store.source))
        self._takes = tuple(TableSelection.from_dict(form).takes() for form in found)
        store.lists = () if present in found else (*found, present)

    def leave_out(self, name: TableName) -> bool:
        """Return whether one of the lists leaves the table out."""
        return not all(takes(name) for takes in self._takes)
