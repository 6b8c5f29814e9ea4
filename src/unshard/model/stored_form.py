"""The version of what is stored as JSON in a target, and what a process does with one that it does not know.

| version | what differs |
|---|---|
| 1 | records have no `version`; the shape and ranges of a batch are lists, its digests are of Python's own texts |
| 2 | every stored object has its fields by name |

Records of every version up to `VERSION` are read. Each is written in the form of `VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unshard.errors import SyncError, Where

VERSION = 2


def stamped(form: Mapping[str, Any]) -> dict[str, Any]:
    """The form with the version in which it is written."""
    return {"version": VERSION, **form}


def version_of(form: Mapping[str, Any], what: str, where: Where | None = None) -> int:
    """The version of a stored form. `what` names it for people: "the open batch".

    Raises SyncError SYNC-075 for one that a later version of Unshard has written.
    """
    version = int(form.get("version", 1))
    if version > VERSION:
        raise SyncError("SYNC-075", where or Where(), values={"what": what, "found": version, "known": VERSION})
    return version
