"""Transactions that repair rows between the batches of a task; each leaves a receipt.

Every batch is opened and closed by an update of its source's row in `T_apply_batch`. A repair locks these rows of all
sources of a table before it reads their checkpoints:

| what is found | then |
|---|---|
| the checkpoint is at or after the position at which the repair read the source | the target has all changes up to \
that position; the open batch, if there is one, has only later changes |
| the checkpoint is before that position, or a DDL is under way | the rows can't be repaired now |

Until the repair commits, no process can close a batch or open another, and no process can claim the source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unshard.model.position import Position
from unshard.model.table import quote_name
from unshard.mysql.connection import rows
from unshard.target.checkpoint import load_checkpoint
from unshard.target.meta import MetaTables
from unshard.target.upstream import load_upstream

_REPAIR = """
CREATE TABLE IF NOT EXISTS {name} (
    repair_id VARCHAR(32) NOT NULL,
    number INT NOT NULL,
    target VARCHAR(160) NOT NULL,
    places LONGTEXT NOT NULL,
    inserted BIGINT NOT NULL,
    updated BIGINT NOT NULL,
    deleted BIGINT NOT NULL,
    repair_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (repair_id, number)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""


@dataclass(frozen=True, slots=True)
class AppliedPlace:
    """The position up to which a source's binlog is applied: the target has all before it, and nothing after it."""

    server: str
    position: Position


@dataclass(frozen=True, slots=True)
class NoTurn:
    """The reason why rows of a source can't be repaired now. `lasting`: waiting does not change it."""

    source: str
    fault: str
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class RepairReceipt:
    """The receipt of one repair transaction.

    It has the repair and the transaction's number in it, the row counts, and the sources' positions it read at
    (`places`).
    """

    repair_id: str
    number: int
    target: str
    places: Mapping[str, str]
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


def create_repairs(connection: Any, meta: MetaTables) -> None:
    """Create the table of receipts; idempotent. Not in a transaction."""
    rows(connection, f"CREATE DATABASE IF NOT EXISTS {quote_name(meta.schema)}")
    rows(connection, _REPAIR.format(name=meta.named("repair")))


def take_turn(cursor: Any, meta: MetaTables, sources: Sequence[str]) -> Mapping[str, AppliedPlace] | NoTurn:
    """Lock the batches of these sources until the caller's transaction ends, and return what the target has of each.

    The transaction must be a pessimistic one, at READ COMMITTED. Raises MySQLdb.Error.
    """
    if not sources:
        return {}
    marks = ", ".join(["%s"] * len(sources))
    cursor.execute(
        f"SELECT source, state, plan FROM {meta.batch} WHERE source IN ({marks}) ORDER BY source FOR UPDATE",
        tuple(sources),
    )
    found = {source: (state, json.loads(plan)) for source, state, plan in cursor.fetchall()}
    places = {}
    for source in sources:
        if source not in found:
            return NoTurn(source, "the task has no record of batches of this source", lasting=True)
        state, plan = found[source]
        if state == "open" and plan.get("kind") != "rows":
            return NoTurn(source, "the task carries a DDL out")
        checkpoint = load_checkpoint(cursor.connection, meta, source, tables_too=False)
        server = load_upstream(cursor.connection, meta, source)
        if checkpoint is None or server is None:
            return NoTurn(source, "the task has no checkpoint of this source", lasting=True)
        if not checkpoint.exact:
            fault = "the task delivers at least once, so no record tells when it writes"
            return NoTurn(source, fault, lasting=True)
        if checkpoint.held is not None:
            return NoTurn(source, "the task waits with a DDL of merged tables")
        places[source] = AppliedPlace(server, checkpoint.location.position)
    return places


def receipt_of(cursor: Any, meta: MetaTables, repair_id: str, number: int) -> RepairReceipt | None:
    """Return the receipt of a transaction whose COMMIT may have been lost; None: it has none."""
    cursor.execute(
        f"SELECT target, places, inserted, updated, deleted FROM {meta.named('repair')}"
        " WHERE repair_id = %s AND number = %s",
        (repair_id, number),
    )
    found = cursor.fetchone()
    if found is None:
        return None
    return RepairReceipt(repair_id, number, str(found[0]), json.loads(found[1]), *map(int, found[2:]))


def write_receipt(cursor: Any, meta: MetaTables, receipt: RepairReceipt) -> None:
    """Write it, in the transaction that it is for. A second one of the same number fails as a duplicate."""
    cursor.execute(
        f"INSERT INTO {meta.named('repair')} (repair_id, number, target, places, inserted, updated, deleted)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
        (
            receipt.repair_id,
            receipt.number,
            receipt.target[:160],
            json.dumps(receipt.places),
            receipt.inserted,
            receipt.updated,
            receipt.deleted,
        ),
    )
