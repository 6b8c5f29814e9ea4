"""Checkpoints and open batches in the target, read from outside of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import MySQLdb

from unshard.cli.demo.scene import META, TASK
from unshard.model.position import Position
from unshard.testing.throwaway_server import ThrowawayServer

_NOT_YET = frozenset({1146, 1049})  # no such table, no such schema
_OPEN = f"""
SELECT b.source, b.batch_id, b.begin_name, b.begin_pos, b.end_name, b.end_pos, p.part, p.chunk
FROM {META}.{TASK}_apply_batch b JOIN {META}.{TASK}_apply_partition p USING (source, batch_id)
WHERE b.state = 'open' AND b.plan LIKE '%"kind": "rows"%' ORDER BY source, part
"""
_CHECKPOINT = f"SELECT id, binlog_name, binlog_pos FROM {META}.{TASK}_syncer_checkpoint WHERE is_global"


@dataclass(frozen=True, slots=True)
class OpenBatchCount:
    """A batch that is planned and not closed; `chunks` has the number of applied chunks of each partition."""

    source: str
    batch_id: int
    begin: Position
    end: Position
    chunks: tuple[int, ...]

    @property
    def halfway(self) -> bool:
        """True if some partition has applied chunks and another has not come to its first."""
        return any(self.chunks) and not all(self.chunks)


class Watch:
    """A connection to the target that reads the meta tables. A context manager: it is closed at the end."""

    def __init__(self, target: ThrowawayServer) -> None:
        self._connection = target.connection()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def open_batches(self) -> list[OpenBatchCount]:
        """Return the open batches, with the chunks that each part has applied."""
        found: dict[tuple[str, int], OpenBatchCount] = {}
        for source, batch, begin, begin_at, end, end_at, _, chunk in self._rows(_OPEN):
            known = found.get((source, batch))
            found[source, batch] = OpenBatchCount(
                source,
                int(batch),
                Position(begin, int(begin_at)),
                Position(end, int(end_at)),
                (*(known.chunks if known else ()), int(chunk)),
            )
        return list(found.values())

    def checkpoints(self) -> dict[str, Position]:
        """Return the checkpoint of each source."""
        return {source: Position(file, int(offset)) for source, file, offset in self._rows(_CHECKPOINT)}

    def connections(self) -> int:
        """Return how many connections the target has beside this one: none once it has noticed a kill."""
        return sum(1 for row in self._rows("SHOW PROCESSLIST") if row[1] == "root") - 1

    def _rows(self, statement: str) -> list[Any]:
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(statement)
            except MySQLdb.Error as error:
                if error.args[0] not in _NOT_YET:
                    raise
                return []
            return list(cursor.fetchall())
