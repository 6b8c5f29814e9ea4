"""The version of the JSON records that are stored in a target, and the error for an unknown one.

| version | difference |
|---|---|
| 1 | records have no `version`; a batch's shape and ranges are lists, its digests are over Python's `repr` texts |
| 2 | every stored object has its fields by name |
| 3 | a batch's shape has `range_digits`, without which its partitions would be others |
| 4 | a batch's digests have its columns' character sets; rules that leave out UPDATEs order some tables' changes |
| 5 | a batch's changes of float keys, and in safe mode of merged tables, are in another order |

Records of every version up to `VERSION` are read. All records are written in the form of `VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unshard.errors import SyncError, Where

VERSION = 5


def stamped(form: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form with the version in which it is written."""
    return {"version": VERSION, **form}


def version_of(form: Mapping[str, Any], what: str, where: Where | None = None) -> int:
    """Return the version of a stored form. `what` names the record in the error: "the open batch".

    Raises SyncError SYNC-075 for a record of a later version of Unshard.
    """
    version = int(form.get("version", 1))
    if version > VERSION:
        raise SyncError("SYNC-075", where or Where(), values={"what": what, "found": version, "known": VERSION})
    return version
