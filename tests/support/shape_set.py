"""Every shape of table at once, each in a schema of its own, and their comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from unshard.testing.compare import assert_equal
from unshard.testing.shapes import SHAPES, SYSBENCH, TYPES, TableShape
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.workload import Workload, WorkPlan


def _folded(random: Random) -> tuple[Any, ...]:
    return random.choice("abAB") + random.choice(("", " ", "é", "e")), random.randint(0, 9)


def _regional(random: Random) -> tuple[Any, ...]:
    return random.choice(("north", "süd", "o'west")), f"{random.randint(0, 10**6)}.{random.randrange(100):02d}"


STRING_KEY = TableShape(
    "string_key",
    "(id VARCHAR(40) NOT NULL PRIMARY KEY, word VARCHAR(20), n INT)",
    ("id", "word", "n"),
    ("word", "n"),
    _folded,
)
COMPOSITE_KEY = TableShape(
    "composite_key",
    "(region CHAR(8) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, id BIGINT NOT NULL, amount DECIMAL(12,2),"
    " PRIMARY KEY (region, id))",
    ("id", "region", "amount"),
    ("region", "amount"),  # the first is part of the key, so every other UPDATE moves a row
    _regional,
)
ALL_SHAPES = {**SHAPES, "string_key": STRING_KEY, "composite_key": COMPOSITE_KEY}
BEFORE_JSON = {
    **ALL_SHAPES,
    "types": replace(
        TYPES,
        definition=TYPES.definition.replace(", document JSON", ""),
        columns=TYPES.columns[:-1],
        changeable=TYPES.changeable[:-1],
        values=lambda random: TYPES.values(random)[:-1],
    ),
}
"""For a server without a type JSON, as MySQL before 5.7."""
KEY_CHANGES = (("small", 30), ("several_tables", 10), ("key_change", 60), ("rollback", 5))


@dataclass(frozen=True, slots=True)
class ShapeSet:
    """Workloads of all shapes on one server; tables `<schema>_<shape>_1.table_<n>`."""

    server: ThrowawayServer
    works: tuple[Workload, ...]

    @classmethod
    def create(
        cls,
        server: ThrowawayServer,
        schema: str,
        *,
        rows: int,
        seed: int,
        shapes: Mapping[str, TableShape] = ALL_SHAPES,
    ) -> ShapeSet:
        plans = [WorkPlan(f"{schema}_{name}", shape, seed=seed, threads=1) for name, shape in shapes.items()]
        plans.append(WorkPlan(f"{schema}_moved", SYSBENCH, seed=seed, threads=1, kinds=KEY_CHANGES))
        works = tuple(Workload(server, plan) for plan in plans)
        for work in works:
            work.create()
            work.fill(rows)
        return cls(server, works)

    @property
    def schemas(self) -> tuple[str, ...]:
        return tuple(name.schema for work in self.works for name in work.plan.names[:1])

    @property
    def transactions(self) -> int:
        return sum(work.report.transactions for work in self.works)

    def assert_equal(self, target: ThrowawayServer) -> None:
        for work in self.works:
            for name in work.plan.names:
                assert_equal([(self.server, name)], (target, name))
