"""The order in which the rows of a table are repaired, so that no unique value stands in the way.

A row whose new value of a unique key is held by another wrong row waits for that row. Rows that wait for each other in
a circle hold each other's values: these are written in one transaction, which deletes them all and inserts them again.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unshard.compare.executor.keys import Key
from unshard.compare.executor.repair_rows import RepairOrder
from unshard.compare.executor.unique_values import UniqueValue, UniqueValues
from unshard.compare.result import RowClass
from unshard.compare.tables import ComparedTable

MENDED = (RowClass.EXTRA, RowClass.CHANGED, RowClass.MISSING)
"""The classes that are repaired, in the order in which rows are written that do not wait for each other."""

ReadValues = Callable[[Sequence[RepairOrder]], Iterable[Sequence[UniqueValues]]]
"""Reads, for each order, the values of its rows in the table's further unique keys."""


@dataclass(frozen=True, slots=True)
class RepairStep:
    """The numbers of rows to write in one transaction, in order. `exchanged`: they hold each other's values."""

    rows: tuple[int, ...]
    exchanged: bool = False


def repair_steps(values: Sequence[UniqueValues], size: int) -> list[RepairStep]:
    """Return the steps in which the rows are to be written. Rows that need not wait keep their order.

    A step has at most `size` rows, or one circle of rows that hold each other's values, however many these are.
    """
    waits = _Waits.of(values)
    first = waits.free()
    rest = sorted(set(range(len(values))).difference(first))
    last = waits.among(rest).turned().free()
    circles = waits.among(sorted(set(rest).difference(last))).parts()
    return [
        *(RepairStep(rows) for rows in _slices(first, size)),
        *(RepairStep(rows, exchanged=True) for rows in _packed(circles, size)),
        *(RepairStep(rows) for rows in _slices(last[::-1], size)),
    ]


def orders_in_steps(
    table: ComparedTable, rows: Sequence[tuple[Key, RowClass]], size: int, values: ReadValues
) -> list[RepairOrder]:
    """Return the orders for rows of a table with a key, to be carried out one after the other.

    Raises what `values` raises; it is called only for a table where a row may wait for another. Without transactions
    no row is deleted to be inserted again, as it would be lost where the target refuses it.
    """
    ordered = [row for kind in MENDED for row in rows if row[1] is kind]
    orders = [RepairOrder(table, tuple(ordered[at : at + size])) for at in range(0, len(ordered), size)]
    changed = sum(kind is RowClass.CHANGED for _, kind in ordered)
    if not table.further_keys or not table.transactional or not changed or len(ordered) < 2:
        return orders
    found = [its for some in values(orders) for its in some]
    return [
        RepairOrder(table, tuple(ordered[row] for row in step.rows), step.exchanged)
        for step in repair_steps(found, size)
    ]


@dataclass(frozen=True, slots=True)
class _Waits:
    """The rows for which each row waits."""

    of_row: Mapping[int, frozenset[int]]
    _waited: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row, others in self.of_row.items():
            for other in others:
                self._waited.setdefault(other, []).append(row)

    @classmethod
    def of(cls, values: Sequence[UniqueValues]) -> _Waits:
        holders: dict[UniqueValue, list[int]] = {}
        for row, its in enumerate(values):
            for value in its.has - its.gets:
                holders.setdefault(value, []).append(row)
        return cls(
            {
                row: frozenset(other for value in its.gets for other in holders.get(value, ()) if other != row)
                for row, its in enumerate(values)
            }
        )

    def among(self, rows: Sequence[int]) -> _Waits:
        """Return the waits of these rows for each other."""
        these = frozenset(rows)
        return _Waits({row: self.of_row[row] & these for row in rows})

    def turned(self) -> _Waits:
        """Return the same pairs of rows, each waiting the other way round."""
        return _Waits({row: frozenset(self._waited.get(row, ())) for row in self.of_row})

    def free(self) -> list[int]:
        """Return the rows that have to wait for none but rows before them in this list."""
        left = {row: len(others) for row, others in self.of_row.items()}
        ready = [row for row, count in left.items() if not count]
        heapq.heapify(ready)
        found = []
        while ready:
            row = heapq.heappop(ready)
            found.append(row)
            for other in self._waited.get(row, ()):
                left[other] -= 1
                if not left[other]:
                    heapq.heappush(ready, other)
        return found

    def parts(self) -> list[tuple[int, ...]]:
        """Return the rows in groups; rows of two groups don't wait for each other."""
        left, found = set(self.of_row), []
        for row in self.of_row:
            if row not in left:
                continue
            part, new = {row}, [row]
            while new:
                one = new.pop()
                more = {*self.of_row[one], *self._waited.get(one, ())} - part
                part |= more
                new += more
            left -= part
            found.append(tuple(sorted(part)))
        return found


def _slices(rows: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    for at in range(0, len(rows), size):
        yield tuple(rows[at : at + size])


def _packed(groups: Sequence[tuple[int, ...]], size: int) -> Iterator[tuple[int, ...]]:
    """Yield the groups joined, as many together as `size` rows allow."""
    rows: tuple[int, ...] = ()
    for group in groups:
        if rows and len(rows) + len(group) > size:
            yield rows
            rows = ()
        rows += group
    if rows:
        yield rows
