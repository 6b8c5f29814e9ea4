"""Reads from the target how the sources of a task will start: from scratch or from a checkpoint, in safe mode or not.

Only the checks use it; the sync unit reads its own checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import MySQLdb

from unshard.config.subtask import SubtaskConfig
from unshard.dump.metadata import read_header
from unshard.load.checkpoint import FINISHED
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.structure import NO_SUCH_TABLE
from unshard.target.checkpoint import Checkpoint, load_checkpoint
from unshard.target.meta import MetaTables

_NOT_READ = NO_SUCH_TABLE | {1044, 1142, 1227, 1054}
"""Error numbers of records that are not there, that the account may not read, or that lack columns."""


def fresh_sources(endpoint: Endpoint, configs: Sequence[SubtaskConfig]) -> dict[str, bool]:
    """Return, by source, whether the target has neither a checkpoint nor a finished load of it."""
    meta = MetaTables(configs[0].meta_schema, configs[0].name)
    known: set[str] = set()
    with session(endpoint, "target") as connection:
        for statement in (
            f"SELECT DISTINCT id FROM {meta.checkpoint}",
            f"SELECT source_name FROM {meta.named('lightning_checkpoint_list')} WHERE status = '{FINISHED}'",
        ):
            try:
                known |= {str(row[0]) for row in rows(connection, statement)}
            except MySQLdb.Error as error:
                if error.args[0] not in _NOT_READ:
                    raise
    return {config.source_id: config.source_id not in known for config in configs}


def safe_mode_of(connection: Any, config: SubtaskConfig, *, fresh: bool) -> str:
    """Return the reason in words, "" if safe mode is off; on a connection to the target.

    `fresh`: the source has no checkpoint, and no load of it is finished.
    """
    if config.mode not in ("incremental", "all"):
        return ""
    if config.syncer.safe_mode:
        return "`safe-mode: true`"
    if config.delivery == "at-least-once":
        return "`delivery: at-least-once`"
    checkpoint = _checkpoint(connection, config)
    if checkpoint is None:
        header = read_header(Path(config.loader.directory)) if config.mode == "all" else None
        without_lock = header.consistency == "none" if header else fresh and config.dumper.consistency == "none"
        return "the dump without a lock (`--consistency none`)" if config.mode == "all" and without_lock else ""
    ends = checkpoint.exit_point
    if ends is not None and ends.location.position > checkpoint.location.position:
        return f"a checkpoint with safe mode until {ends.location.position}"
    if checkpoint.exact or ends is not None:
        return ""
    return "a checkpoint that DM or `delivery: at-least-once` has written"


def _checkpoint(connection: Any, config: SubtaskConfig) -> Checkpoint | None:
    try:
        meta = MetaTables(config.meta_schema, config.name)
        return load_checkpoint(connection, meta, config.source_id, tables_too=False)
    except MySQLdb.Error as error:
        if error.args[0] not in _NOT_READ:
            raise
        return None
