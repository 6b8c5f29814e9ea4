"""The error for a row that is refused by a unique key that not all of the merged tables have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from unshard.errors import LoadError, UnshardError, some_of
from unshard.load.structure import Way
from unshard.model.table import Table, TableName

_KEY = re.compile(r"for key '(?:[^']*\.)?([^'.]+)'")  # MySQL puts the table's name before it
_NAMED = 5


def unlike_keys(error: UnshardError, ways: Mapping[TableName, Way]) -> UnshardError:
    """Return LOAD-022 for a LOAD-005 on a unique key that not all of the source's merged tables have; else the error.

    `ways` are those of one source. A key that none of its tables has is another source's, or the target's alone.
    """
    found = _KEY.search(error.cause) if error.code == "LOAD-005" else None
    if found is None:
        return error
    key, target = found[1], str(error.values["target"])
    merged = {name: way.source for name, way in ways.items() if str(way.target) == target}
    have = [str(name) for name, table in sorted(merged.items()) if _has(table, key)]
    lack = [str(name) for name, table in sorted(merged.items()) if not _has(table, key)]
    if not lack:
        return error
    values = {
        "target": target,
        "key": key,
        "have": some_of(have, _NAMED) or "none of this source",
        "lack": some_of(lack, _NAMED),
    }
    return LoadError("LOAD-022", error.where, error.cause, values)


def _has(table: Table, key: str) -> bool:
    return any(index.unique and index.name.lower() == key.lower() for index in table.indexes)
