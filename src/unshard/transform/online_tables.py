"""The helper tables of gh-ost and pt-online-schema-change, told by their names (reference of DM, section 6.4).

| part | what it is | names by default |
|---|---|---|
| ghost | the copy that gets the new structure and takes the table's place | `_t_gho`, `_t_new` |
| trash | change logs, sentries and the table as it was before | `_t_ghc`, `_t_del`, `_t_old` |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from unshard.model.table import TableName


class Part(StrEnum):
    REAL = "real"
    GHOST = "ghost"
    TRASH = "trash"


@dataclass(frozen=True, slots=True)
class OnlineTables:
    """The compiled rules; without any, every table is a real one. Pickles."""

    ghosts: tuple[re.Pattern[str], ...] = ()
    trash: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def compile(cls, ghosts: Sequence[str], trash: Sequence[str]) -> OnlineTables:
        """Of regular expressions with one capture group each, as a loaded task has them."""
        return cls(tuple(map(re.compile, ghosts)), tuple(map(re.compile, trash)))

    def part(self, name: TableName) -> tuple[Part, TableName]:
        """What the table is, and the real table that it belongs to: itself for a real one."""
        for part, rules in ((Part.GHOST, self.ghosts), (Part.TRASH, self.trash)):
            for rule in rules:
                if found := rule.search(name.table):
                    return part, TableName(name.schema, found[1])
        return Part.REAL, name

    def is_real(self, name: TableName) -> bool:
        return self.part(name)[0] is Part.REAL
