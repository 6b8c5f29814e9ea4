"""XA transactions in the log: prepared in one group of events, committed or rolled back by a later one.

| server | prepare | end |
|---|---|---|
| MySQL | GTID, QUERY `XA START …`, rows, QUERY `XA END …`, XA_PREPARE | GTID, QUERY `XA COMMIT …` or `XA ROLLBACK …` |
| MariaDB 10.5 | GTID flagged prepared, rows, QUERY `XA END …`, XA_PREPARE | GTID flagged completed, QUERY as above |

An XA_PREPARE of one phase is a commit (MySQL; MariaDB writes those as ordinary transactions).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from struct import unpack_from

from unshard.binlog.query import Damaged
from unshard.model.table import TableName

_FIXED = 13  # one phase 1, format 4, the lengths of both parts 4 each
_LONGEST_PART = 64
_TEXT = re.compile(
    r"XA (START|END|COMMIT|ROLLBACK) X'([0-9a-f]{0,128})',X'([0-9a-f]{0,128})',(-?\d{1,20})(?: ONE PHASE)?\s*", re.I
)


@dataclass(frozen=True, slots=True)
class PreparedStop:
    """The stop at an event group that prepares an XA transaction: bytes `start` to `end` are the whole group.

    `xid` identifies the transaction on its server, as `xid_text` writes it. Its row changes take effect when it is
    committed, and never if it is rolled back. `gtid` is that of the prepare, `timestamp` is in unix seconds,
    `partial_images` and `unpacked` are as in `TransactionRange`.
    """

    xid: str
    start: int
    end: int
    row_events: int
    tables: frozenset[TableName]
    timestamp: int
    gtid: str
    partial_images: bool = False
    unpacked: int = 0


@dataclass(frozen=True, slots=True)
class Completed:
    """The stop at the event group, bytes `start` to `end`, that commits or rolls back a prepared XA transaction."""

    xid: str
    committed: bool
    start: int
    end: int
    timestamp: int
    gtid: str


def xid_text(transaction: bytes, branch: bytes, format_id: int) -> str:
    """Return the three parts of an XA id as one text of at most 269 characters, equal for equal ids however written."""
    return f"{transaction.hex()},{branch.hex()},{format_id % 2**32}"


def read_prepare(body: bytes) -> tuple[str, bool]:
    """Return the xid of an XA_PREPARE event and whether it commits in one phase.

    `body` has no checksum. Raises Damaged.
    """
    if len(body) < _FIXED:
        raise Damaged(f"{len(body)} bytes are too few for an XA_PREPARE")
    one_phase, format_id, transaction, branch = unpack_from("<Biii", body)
    parts = (transaction, branch)
    if not all(0 <= part <= _LONGEST_PART for part in parts) or _FIXED + sum(parts) > len(body):
        raise Damaged(f"parts of {transaction} and {branch} bytes don't fit into {len(body)} bytes")
    middle = _FIXED + transaction
    return xid_text(body[_FIXED:middle], body[middle : middle + branch], format_id), bool(one_phase)


def read_statement(sql: str) -> tuple[str, str] | None:
    """Return the second word of an XA statement, in capitals, and its xid; None for a text that servers don't log."""
    match = _TEXT.fullmatch(sql)
    if match is None or len(match[2]) % 2 or len(match[3]) % 2:
        return None
    xid = xid_text(bytes.fromhex(match[2]), bytes.fromhex(match[3]), int(match[4]))
    return match[1].upper(), xid
