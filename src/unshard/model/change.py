"""Row changes in Arrow: the output of decoding, and the rows of the exchange."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import pyarrow as pa


class ValuesList(NamedTuple):
    """The place of the VALUES list in the text of an INSERT, from `begin` to before `end`, and its number of columns.

    The list is as `kernels.literals` writes it: `(1,'x'),(2,NULL)`.
    """

    begin: int
    end: int
    columns: int


class Op(IntEnum):
    """The kind of a row image or a row change.

    UPDATE_BEFORE and UPDATE_AFTER are adjacent rows with the same `seq`. INSERT_SET and UPDATE_SET are an INSERT and
    an UPDATE whose `row` names its columns: `a`=1,`b`=2. UPDATE_OR_INSERT is an UPDATE of a row that the batch inserts,
    too, so a target that lacks the row gets it. SEEN is no change: in a shuffle it carries, in `key`, the counts of one
    range (`sync.batch.row_counts.Seen`, pickled).
    """

    SEEN = 0
    INSERT = 1
    UPDATE_BEFORE = 2
    UPDATE_AFTER = 3
    DELETE = 4
    UPDATE = 5
    INSERT_SET = 6
    UPDATE_SET = 7
    UPDATE_OR_INSERT = 8


IMAGE_FIELDS = (pa.field("op", pa.int8(), nullable=False), pa.field("seq", pa.int64(), nullable=False))
"""The first two columns of every batch of row images. The table's columns follow, by name and in order."""

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

`old_key` is the key before an UPDATE, null for other changes. In safe mode it may have several keys, one after the
other, also for an INSERT: their rows are deleted before the change.

`target` and `table` are the numbers of the target table and the source table in the batch's plan. An `ordered` change
keeps the binlog's order relative to the other ordered changes of its partition, and is not compacted. Other changes may
overtake each other, as long as changes of one key don't. `seq` is the number of the change in the log, as row images
have it. The DELETE and the INSERT to which an UPDATE of a key is encoded have one number.
"""

LOG_ORDER = [("seq", "ascending"), ("op", "descending")]
"""The columns that sort encoded changes by the order of the log. Of an UPDATE's two changes the DELETE comes first."""

ENCODED_SCHEMA = EXCHANGE_SCHEMA.append(pa.field("part", pa.int32(), nullable=False))
"""The exchange schema with the partition of each change."""
