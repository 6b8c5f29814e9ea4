"""`expression-filter`: rules that leave out inserted, updated or deleted rows by their values.

=========  ==================================================================================
an INSERT  is left out where `insert-value-expr` is true of the new row
a DELETE   where `delete-value-expr` is true of the old row
an UPDATE  where `update-old-value-expr` is true of the old row and `update-new-value-expr` of
           the new one; one that isn't set counts as true
=========  ==================================================================================

FALSE and NULL keep the row. Several rules for one table are asked one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.config.rules import ExpressionFilterRule
from unshard.errors import ConfigError, SyncError, Where
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Table, TableName
from unshard.mysql.types import zero_text
from unshard.transform.expressions import texts
from unshard.transform.expressions.compile import Unknown, columns_of, compile_condition
from unshard.transform.expressions.moments import Clock
from unshard.transform.expressions.parse import Node, Refused, parse
from unshard.transform.expressions.values import ImageRows

SECTION = "expression-filter"
KINDS = {
    "insert-value-expr": Op.INSERT,
    "update-old-value-expr": Op.UPDATE_BEFORE,
    "update-new-value-expr": Op.UPDATE_AFTER,
    "delete-value-expr": Op.DELETE,
}
"""The key of an expression, and the images that it is evaluated on."""


def expressions_of(rule: ExpressionFilterRule) -> dict[Op, str]:
    """Return the expressions that a rule sets, by the images that they are for."""
    found = {op: getattr(rule, key.replace("-", "_")) for key, op in KINDS.items()}
    return {op: text for op, text in found.items() if text}


@dataclass(frozen=True, slots=True)
class ExpressionFilter:
    """One rule of an expression filter, for one table.

    `moments` are the local times in its expressions, each with its time in UTC.
    """

    rule: str
    expressions: tuple[tuple[Op, str], ...]
    moments: tuple[tuple[str, str | None], ...] = ()

    @property
    def hides_values(self) -> bool:
        """As `RowFilter.hides_values`."""
        return any(op in (Op.UPDATE_BEFORE, Op.UPDATE_AFTER) for op, _ in self.expressions)

    def to_dict(self) -> dict[str, Any]:
        """As `RowFilter.to_dict`."""
        asked = [[int(op), text] for op, text in self.expressions]
        return {"rule": self.rule, "expressions": asked, "moments": self.moments}

    def dropped(self, table: Table, images: pa.RecordBatch, absent: frozenset[str]) -> np.ndarray:
        """As `RowFilter.dropped`. Raises SyncError SYNC-019 for an image without a column of its expression."""
        ops = images.column(0).to_numpy(zero_copy_only=False)
        found = np.zeros(len(ops), dtype=bool)
        updates = [(op, text) for op, text in self.expressions if op in (Op.UPDATE_BEFORE, Op.UPDATE_AFTER)]
        for op, text in self.expressions:
            places = np.flatnonzero(ops == op)
            if not len(places):
                continue
            true = self._true(text, table, images, places, absent)
            if not updates:
                found[places] = true
                continue
            # the two images of an UPDATE are neighbours
            before = places - (op == Op.UPDATE_AFTER)
            both = true if (op, text) == updates[0] else true & found[before]
            found[before] = found[before + 1] = both
        return found

    def _true(
        self, text: str, table: Table, images: pa.RecordBatch, places: np.ndarray, absent: frozenset[str]
    ) -> np.ndarray:
        node, run = _compiled(text, table, self.moments)
        used = columns_of(node)
        if missing := sorted(name for name in absent if name.lower() in used):
            values = {"rule": self.rule, "columns": ", ".join(missing)}
            raise SyncError("SYNC-019", Where(table=str(table.name)), values=values)
        fields = len(IMAGE_FIELDS)
        kept = [n for n, name in enumerate(images.schema.names) if n >= fields and name.lower() in used]
        chosen = _as_shown(images.select(kept), table)
        if len(places) < len(images):
            chosen = chosen.take(pa.array(places)) if kept else chosen
        return texts.mask(run(ImageRows(chosen, len(places))), len(places))


def _as_shown(images: pa.RecordBatch, table: Table) -> pa.RecordBatch:
    """Return the images with an ENUM's number 0 as the empty text that an expression of the source sees."""
    for place, name in enumerate(images.schema.names):
        column = table.column(name)
        if column.type == "enum" and column.members and (zero := zero_text(column)):
            values = images.column(place)
            images = images.set_column(place, name, pc.if_else(pc.equal(values, zero), "", values))
    return images


class ExpressionFilters:
    """The expression filter rules of one source. `clock` returns a local time of the source in UTC."""

    def __init__(self, rules: Mapping[str, ExpressionFilterRule], case_sensitive: bool, clock: Clock) -> None:
        """Compile `rules`, by name.

        Raises ConfigError CONFIG-020 for an expression that is refused whatever the table.
        """
        self._rules, self._case_sensitive, self._clock = dict(rules), case_sensitive, cache(clock)
        for name, rule in self._rules.items():
            for text in expressions_of(rule).values():
                with_error(name, text, Where(), partial(parse, text))

    def of_table(self, table: Table) -> tuple[ExpressionFilter, ...]:
        """Return its rules, in order. Raises ConfigError CONFIG-020 and CONFIG-021 (a column that the table lacks)."""
        return tuple(self._made(name, rule, table) for name, rule in self.matching(table.name))

    def tables(self) -> list[tuple[str, TableName]]:
        """Return each rule and the table that it names, as they are written."""
        return [(name, TableName(rule.schema_, rule.table)) for name, rule in self._rules.items()]

    def matching(self, name: TableName) -> Iterator[tuple[str, ExpressionFilterRule]]:
        """Yield the rules for the table, in order, each with its name."""
        for rule_name, rule in self._rules.items():
            own, other = (rule.schema_, rule.table), (name.schema, name.table)
            if own == other or (not self._case_sensitive and _lower(own) == _lower(other)):
                yield rule_name, rule

    def _made(self, name: str, rule: ExpressionFilterRule, table: Table) -> ExpressionFilter:
        moments: dict[str, str | None] = {}

        def clock(local: str) -> str | None:
            if local not in moments:
                moments[local] = self._clock(local)
            return moments[local]

        expressions = expressions_of(rule)
        for text in expressions.values():
            with_error(name, text, Where(table=str(table.name)), _check(text, table, clock))
        return ExpressionFilter(f"{SECTION}.{name}", tuple(expressions.items()), tuple(sorted(moments.items())))


def _check(text: str, table: Table, clock: Clock) -> Callable[[], Any]:
    return lambda: compile_condition(parse(text), table, clock)


def with_error(rule: str, text: str, where: Where, make: Callable[[], Any]) -> None:
    """Call `make`; turn Refused into a ConfigError."""
    try:
        make()
    except Refused as refused:
        code = "CONFIG-021" if isinstance(refused, Unknown) else "CONFIG-020"
        values = {"rule": rule, "expression": text, "part": refused.part}
        raise ConfigError(code, where, refused.why, values) from None


def _lower(names: tuple[str, str]) -> tuple[str, str]:
    return names[0].lower(), names[1].lower()


@lru_cache(maxsize=1024)
def _compiled(
    text: str, table: Table, moments: tuple[tuple[str, str | None], ...]
) -> tuple[Node, Callable[[ImageRows], Any]]:
    """Compile once a process: a plan carries texts, which pickle and hold everything that decides."""
    node = parse(text)
    return node, compile_condition(node, table, dict(moments).__getitem__)
