"""Row changes in Arrow: what decoding yields and what crosses the exchange."""

from __future__ import annotations

from enum import IntEnum

import pyarrow as pa


class Op(IntEnum):
    """What an image or a change is. UPDATE_BEFORE and UPDATE_AFTER stand side by side with one `seq`.

    INSERT_SET is an INSERT whose `row` names its columns itself: `a`=1,`b`=2.

    SEEN is no change: across a shuffle it carries, in `key`, what was seen in a range (`sync.ledger.Seen`, pickled).
    """

    SEEN = 0
    INSERT = 1
    UPDATE_BEFORE = 2
    UPDATE_AFTER = 3
    DELETE = 4
    UPDATE = 5
    INSERT_SET = 6


IMAGE_FIELDS = (pa.field("op", pa.int8(), nullable=False), pa.field("seq", pa.int64(), nullable=False))
"""The first two columns of every batch of row images; the table's own columns follow, by name and in order."""

EXCHANGE_SCHEMA = pa.schema(
    [
        pa.field("target", pa.int32(), nullable=False),
        pa.field("table", pa.int32(), nullable=False),
        pa.field("op", pa.int8(), nullable=False),
        pa.field("seq", pa.int64(), nullable=False),
        pa.field("key", pa.binary(), nullable=False),
        pa.field("old_key", pa.binary()),
        pa.field("row", pa.binary()),
        pa.field("ordered", pa.bool_(), nullable=False),
    ]
)
"""Changes of all tables in one flat schema. `key`, `old_key` and `row` are SQL text: `(5,'x'),`.

`target` and `table` are the numbers that the batch's plan gives to target and source tables.

An `ordered` change keeps the order of the log among the ordered ones of its partition, uncompacted; the others may pass
each other as long as changes of one key don't.
"""

ENCODED_SCHEMA = EXCHANGE_SCHEMA.append(pa.field("part", pa.int32(), nullable=False))
"""The exchange schema with the partition that a change belongs to."""
