"""The block-allow lists by which a source has been followed, recorded in the target in the order of their first use.

A list is recorded in the transaction that moves the checkpoint for the first time under it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from unshard.errors import Where
from unshard.model.stored_form import stamped, version_of
from unshard.target.meta import MetaTables

Form = Mapping[str, Any]


def load_lists(connection: Any, meta: MetaTables, source: str) -> tuple[Form, ...]:
    """Return the lists of the source's checkpoint in JSON form; none where an earlier version, or DM, has written it.

    Without a checkpoint there are none: those of an earlier attempt mean nothing.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT lists FROM {meta.block_allow_list} WHERE source = %s"
            f" AND EXISTS (SELECT 1 FROM {meta.checkpoint} WHERE id = %s AND is_global)",
            (source, source),
        )
        found = cursor.fetchone()
    form = json.loads(found[0]) if found else {"lists": []}
    version_of(form, "the block-allow lists of the task", Where(source))
    return tuple(form["lists"])


def save_lists(cursor: Any, meta: MetaTables, source: str, lists: Sequence[Form]) -> None:
    """Record all lists of the source, in the caller's transaction. May run twice."""
    form = json.dumps(stamped({"lists": list(lists)}))
    cursor.execute(f"REPLACE INTO {meta.block_allow_list} (source, lists) VALUES (%s, %s)", (source, form))
