"""The helper tables of gh-ost and pt-online-schema-change, recognized by their names (reference of DM, section 6.4).

| part | what it is | names by default |
|---|---|---|
| ghost | the copy that gets the new structure and replaces the table | `_t_gho`, `_t_new` |
| trash | change logs, sentries and the table as it was before | `_t_ghc`, `_t_del`, `_t_old` |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from unshard.model.table import TableName


class OnlineTablePart(StrEnum):
    """The role of a table in an online schema change: the real table, its ghost, or a leftover to be dropped."""

    REAL = "real"
    GHOST = "ghost"
    TRASH = "trash"


class TableClassification(NamedTuple):
    """The role of a table in an online schema change, the real table that it belongs to, and the rule that decides it.

    A real table belongs to itself.
    """

    part: OnlineTablePart
    table: TableName
    rule: str = ""


@dataclass(frozen=True, slots=True)
class OnlineTables:
    """The compiled rules that recognize ghost tables and leftovers. Without rules every table is real. Picklable."""

    ghosts: tuple[re.Pattern[str], ...] = ()
    trash: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def compile(cls, ghosts: Sequence[str], trash: Sequence[str]) -> OnlineTables:
        """Compile regular expressions with one capture group each, as a loaded task has them."""
        return cls(tuple(map(re.compile, ghosts)), tuple(map(re.compile, trash)))

    def told(self, name: TableName) -> TableClassification:
        """Classify a table by the first rule that matches, ghosts before trash."""
        for part, key, rules in (
            (OnlineTablePart.GHOST, "shadow-table-rules", self.ghosts),
            (OnlineTablePart.TRASH, "trash-table-rules", self.trash),
        ):
            for place, rule in enumerate(rules):
                if found := rule.search(name.table):
                    return TableClassification(part, TableName(name.schema, found[1]), f"{key}[{place}]")
        return TableClassification(OnlineTablePart.REAL, name)

    def is_real(self, name: TableName) -> bool:
        """Return whether the table is no ghost or leftover."""
        return self.told(name).part is OnlineTablePart.REAL
