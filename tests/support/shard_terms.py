"""What a task with random shards is like, and its files."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.task_runs import TaskFiles
from unshard.model.table import TableName
from unshard.testing.throwaway_server import ThrowawayServer


@dataclass(frozen=True)
class Terms:
    """`folded`: `case-sensitive: false`, and names in either case. `schemas` is how many each source has.

    `mapped`: `partition id`, so that no shard may change its name. `ghosts`: some statements come by gh-ost. `safe`:
    `safe-mode`, so that a row which has moved may be written over; no key holds texts that a target may take for equal,
    which is told by `target_keys`.
    """

    delivery: str = "exactly-once"
    folded: bool = False
    schemas: int = 1
    mapped: bool = False
    ghosts: bool = False
    compact: bool = False
    safe: bool = False

    @classmethod
    def drawn(cls, chosen: random.Random) -> Terms:
        yes = [chosen.random() < share for share in (0.7, 0.4, 0.5, 0.3, 0.4)]
        delivery = "exactly-once" if yes[0] else "at-least-once"
        compact, safe = (chosen.random() < share for share in (0.4, 0.3))
        return cls(delivery, yes[1], 1 + yes[2], yes[3], yes[4], compact=compact or not yes[0], safe=safe or not yes[0])

    @property
    def exact(self) -> bool:
        """Whether the target's log has each change of the sources' once."""
        return self.delivery == "exactly-once" and not self.compact and not self.safe

    def bits(self, sources: Sequence[str], source: str, name: TableName) -> int:
        """What stands in front of the ids of that shard in the target."""
        target, _, number = name.table.lower().rpartition("_")
        if not self.mapped or target not in ("t", "u"):
            return 0
        return (sources.index(source) + 1) << 59 | int(name.schema.rpartition("_")[2]) << 52 | int(number) << 44

    def files(
        self, folder: Path, name: str, sources: Mapping[str, ThrowawayServer], target: ThrowawayServer
    ) -> TaskFiles:
        """Of shards `<name>_<i>.t_<j>` and `u_<j>`, into `<name>_all`; written."""
        routes: dict[str, Any] = {}
        mappings: dict[str, Any] = {}
        for table in "tu":
            place = {"schema-pattern": f"{name}_?", "table-pattern": f"{table}_*"}
            routes[table] = {**place, "target-schema": f"{name}_all", "target-table": table}
            ids = {**place, "expression": "partition id", "source-column": "id", "target-column": "id"}
            for number, source in enumerate(sources, 1):
                mappings[f"{source}-{table}"] = {**ids, "arguments": [str(number), name, table, "_"]}
        keys = {
            "shard-mode": "pessimistic",
            "delivery": self.delivery,
            "case-sensitive": not self.folded,
            "online-ddl": self.ghosts,
            "routes": routes,
            **({"column-mappings": mappings} if self.mapped else {}),
            **({"ignore-checking-items": ["target_keys"]} if self.safe else {}),
        }
        own = {source: {"column-mapping-rules": [f"{source}-{table}" for table in "tu"]} for source in sources}
        return TaskFiles(
            folder,
            name,
            sources,
            target,
            tuple(f"{name}_{number}" for number in range(1, self.schemas + 1)),
            keys,
            {"route-rules": ["t", "u"]},
            own if self.mapped else {},
            syncer={"compact": self.compact, "batch": 3, "safe-mode": self.safe},
        ).write()
