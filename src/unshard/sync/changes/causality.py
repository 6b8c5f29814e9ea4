"""Step *causality*: find the changes of a table that must keep the order of the log.

It runs for tables with several unique keys, or with a key of a folding collation: there the key alone does not decide
which changes may be reordered.

Two rows are tied when they share a value of any unique key, before or after a change. The rows of a batch (or of a
slice) fall into connected components. A row that is a component of its own is *free*: its changes may be compacted, and
reordered with those of all others. The rows of a larger component are *ordered*: they are in one partition, in the
order of the log, and not compacted.

Values are compared by hashes of a form that is coarser than the server's equality: two values that the server may treat
as equal have the same hash. A hash that two values share by chance, or a form that is too coarse, only makes more
changes ordered.

| column of the key | form |
|---|---|
| numbers, bytes, DECIMAL, temporal values, ENUM | exact; -0.0 is 0.0 |
| text with a binary collation | without trailing blanks |
| text with any other | without blanks, upper case, J and Y as I, V and W as U |

Anything but plain ASCII in a column of the last kind makes all of its values equal. A NULL ties nothing; of a prefix
key only the prefix of the value counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.kernels.components import join_equal, join_pairs, settle
from unshard.kernels.literals import hash_of, render
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.sync.batch.plan import BatchPlan, ConflictKey, TablePlan
from unshard.sync.changes.decode import Images
from unshard.sync.changes.encode import Ties, first_is_insert, keys_of, partitions_of

_CLASSES = (("[JY]", "I"), ("[VW]", "U"))
_PLAIN = "^[ -_a-}]*$"
"""Printable ASCII but ` and ~, which some collations treat as a blank, an E or a Y."""


Batches = Sequence[tuple[TablePlan, pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class _Images:
    """The images of all source tables of one target, one table after the other."""

    op: np.ndarray
    seq: np.ndarray
    key: pa.Array
    batches: Batches


def find_ties(batches: Batches, partitions: int, range_digits: int = 0) -> list[Ties]:
    """Return the ties among all images of one target, by batch. Every task of a batch finds the same. Pure.

    `batches` are all that the batch (or its slice) has of the target, whose plan has `ties`.
    """
    keys = [keys_of(plan, batch) for plan, batch in batches]
    images = _Images(
        np.concatenate([batch.column(0).to_numpy(zero_copy_only=False) for _, batch in batches]),
        np.concatenate([batch.column(1).to_numpy(zero_copy_only=False) for _, batch in batches]),
        pa.concat_arrays(keys),
        batches,
    )
    encoded = images.key.dictionary_encode()
    identity = np.ascontiguousarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int32)
    component = _components(images, identity, len(encoded.dictionary))
    ordered = (np.bincount(component, minlength=len(component))[component] > 1)[identity]
    part = partitions_of(batches[0][0].target, encoded.dictionary, partitions, range_digits)[component][identity]
    born = _born(images, identity)
    found, start = [], 0
    for key in keys:
        end = start + len(key)
        found.append(Ties(key, part[start:end], ordered[start:end], born[start:end]))
        start = end
    return found


def _components(images: _Images, identity: np.ndarray, count: int) -> np.ndarray:
    """Return, by identity, the smallest identity of its component."""
    parents = np.arange(count, dtype=np.int32)
    before = np.flatnonzero(images.op == Op.UPDATE_BEFORE)
    join_pairs(parents, identity[before], identity[before + 1])
    target = images.batches[0][0].target
    for tie in target.ties:
        if tie.exact and tie.columns == target.key and not _floating(tie, images.batches):
            continue  # the identity itself
        hashes, known = _hashes(tie, images.batches)
        join_equal(parents, identity, hashes, known)
    settle(parents)
    return parents


def _floating(tie: ConflictKey, batches: Batches) -> bool:
    """Return whether a column of the key is a float in any of the tables: 0.0 and -0.0 are equal, their texts not."""
    names = {name.lower() for name in tie.columns}
    return any(
        pa.types.is_floating(batch.column(len(IMAGE_FIELDS) + place).type)
        for plan, batch in batches
        for place, column in enumerate(plan.table.columns)
        if column.name.lower() in names
    )


def _born(images: _Images, identity: np.ndarray) -> np.ndarray:
    """Return, by image, whether its table's first change of the row is an INSERT."""
    numbers = [plan.id for plan, _ in images.batches]
    if len(set(numbers)) == 1:
        return first_is_insert(images.op, identity, images.seq)
    table = np.repeat(numbers, [len(batch) for _, batch in images.batches])
    return first_is_insert(images.op, identity.astype(np.int64) * (max(numbers) + 1) + table, images.seq)


def _hashes(tie: ConflictKey, batches: Batches) -> tuple[np.ndarray, np.ndarray]:
    """Return the hash of every image's value of one key, and 1 where it has one, 0 where a column of it is NULL."""
    hashes, known = [], []
    readable = True
    for plan, batch in batches:
        places = {column.name.lower(): place for place, column in enumerate(plan.table.columns)}
        values = [batch.column(len(IMAGE_FIELDS) + places[name.lower()]) for name in tie.columns]
        forms = [
            _form(value, prefix, form) for value, prefix, form in zip(values, tie.prefixes, tie.forms, strict=True)
        ]
        there = np.ones(len(batch), dtype=bool)
        for value in values:
            there &= value.is_valid().to_numpy(zero_copy_only=False)
        known.append(there)
        if readable and all(form is not None for form in forms):
            hashes.append(hash_of(render(forms, [b","] * len(forms), b"")))
        else:
            readable = False
    all_known = np.concatenate(known).astype(np.uint8)
    return (np.concatenate(hashes) if readable else np.zeros(len(all_known), dtype=np.uint64)), all_known


def _form(values: Any, prefix: int, form: str) -> Any:
    """Return a column's values in a form that is coarser than the server's equality; None where there is none."""
    if pa.types.is_floating(values.type):
        return pc.add(values.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0
    if prefix:
        text = values.type == pa.string()
        values = pc.utf8_slice_codeunits(values, 0, prefix) if text else pc.binary_slice(values, 0, prefix)
    if form == "trimmed":
        return pc.utf8_rtrim(values, characters=" ")
    return folded(values) if form == "folded" else values


def folded(values: Any) -> Any:
    """Return text in a form coarser than any collation that the plan allows; None where some isn't plain ASCII.

    `sync.planning.table_plans` has these collations.
    """
    if not pc.all(pc.match_substring_regex(values, pattern=_PLAIN), min_count=0).as_py():
        return None
    values = pc.replace_substring(pc.ascii_upper(values), pattern=" ", replacement="")
    for pattern, letter in _CLASSES:
        values = pc.replace_substring_regex(values, pattern=pattern, replacement=letter)
    return values


def tie_rows(plan: BatchPlan, images: Sequence[Images], hidden: frozenset[int] = frozenset()) -> list[Ties | None]:
    """Step *causality*: return the ties of each table's rows.

    None where the table needs none, and for the targets `hidden`, whose images don't show all values that a row had:
    all of their changes keep the order of the log then.
    """
    found: list[Ties | None] = [None] * len(images)
    tied: dict[int, list[int]] = {}
    for place, (table, batch) in enumerate(images):
        if table.target.tied and table.target.id not in hidden and isinstance(batch, pa.RecordBatch):
            tied.setdefault(table.target.id, []).append(place)
    for places in tied.values():
        batches = [(table, batch) for table, batch in (images[place] for place in places)]
        shape = plan.shape
        for place, ties in zip(places, find_ties(batches, shape.partitions, shape.range_digits), strict=True):
            found[place] = ties
    return found
