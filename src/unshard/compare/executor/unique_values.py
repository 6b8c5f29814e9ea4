"""The values of rows that differ in the table's further unique keys: what the target has, and what a repair writes.

Values that the target takes for equal have one spelling here. Few other values may share it, so a row may be taken for
one that waits for another though it need not.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from unshard.compare.executor.keys import weights_of_values
from unshard.compare.executor.repair_rows import RepairOrder, RepairRow, keys_to_ask, read_sources, rows_by_key
from unshard.compare.executor.rows import SideConnections, asked_again
from unshard.compare.tables import ComparedTable
from unshard.errors import enclose
from unshard.model.table import Column

UniqueValue = tuple[str, ...]
"""The name of a unique key, and the values of its columns."""

_NULL = "NULL"


@dataclass(frozen=True, slots=True)
class UniqueValues:
    """The values of a row in the unique keys beside its own: those that it `has` in the target, and those it `gets`."""

    has: frozenset[UniqueValue] = frozenset()
    gets: frozenset[UniqueValue] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {"has": sorted(self.has), "gets": sorted(self.gets)}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> UniqueValues:
        """Read the form of `to_dict`."""
        return cls(*(frozenset(map(tuple, form[side])) for side in ("has", "gets")))


def read_unique_values(payload: bytes) -> bytes:
    """Spark task: as `unique_values`, of a pickled RepairOrder, in the JSON form. Safe to run again."""
    order: RepairOrder = pickle.loads(payload)
    return enclose(lambda: asked_again(lambda: [one.to_dict() for one in unique_values(order)]))


def unique_values(order: RepairOrder) -> list[UniqueValues]:
    """Return the values of each row of an order, in its order; none of a row that one of its keys stands for.

    Reads without locks. Raises SourceError, TargetError, and what mapping and reading raise.
    """
    wide = replace(order, table=order.table.with_generated())
    with SideConnections() as connections:
        source = read_sources(wide, keys_to_ask(wide), connections)
        found = {one.key: one for one in rows_by_key(wide, source, connections)}
        has = {key: list(_in_keys(wide.table, one.target)) for key, one in found.items()}
        gets = {key: list(_in_keys(wide.table, *one.source[:1])) for key, one in found.items()}
        alike = _spelled_alike(
            wide.table, {value for side in (has, gets) for its in side.values() for value in its}, connections
        )
    return [
        UniqueValues(*(frozenset(alike[value] for value in side.get(key, ())) for side in (has, gets)))
        for key, _ in order.rows
    ]


def _in_keys(table: ComparedTable, row: RepairRow | None = None) -> Iterator[UniqueValue]:
    """Yield the row's values in the table's further keys. One with a NULL stands in no other row's way."""
    if row is None:
        return
    texts = dict(zip((column.name.lower() for column in table.columns), row.compared, strict=True))
    for index in table.further_keys:
        values = [texts[name.lower()] for name in index.columns]
        if _NULL not in values:
            yield (index.name, *values)


def _spelled_alike(
    table: ComparedTable, values: Iterable[UniqueValue], connections: SideConnections
) -> dict[UniqueValue, UniqueValue]:
    """Return each value with the target's weights for the texts in it, and for what a key has the beginning of."""
    columns = {
        index.name: [(table.read.column(name), size) for name, size in zip(index.columns, index.prefixes, strict=True)]
        for index in table.further_keys
    }
    found = {value: list(zip(columns[value[0]], value[1:], strict=True)) for value in values}
    asked = {part for parts in found.values() for part in parts if _is_weighed(*part[0])}
    weights = weights_of_values(connections, table, list(asked))
    return {value: (value[0], *(weights.get(part, part[1]) for part in parts)) for value, parts in found.items()}


def _is_weighed(column: Column, prefix: int) -> bool:
    return column.text_with_collation or prefix > 0
