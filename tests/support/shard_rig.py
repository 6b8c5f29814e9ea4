"""What a test of sharding runs on: the servers of the run, its Spark session, names and a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from support.shard_runs import Shards
from support.task_runs import TaskRun
from unshard.testing.throwaway_server import ThrowawayServer


@dataclass(frozen=True, slots=True)
class ShardRig:
    """`servers` are by source, the first of them `source`."""

    name: str
    servers: Mapping[str, ThrowawayServer]
    target: ThrowawayServer
    folder: Path
    spark: SparkSession

    @property
    def source(self) -> ThrowawayServer:
        return self.servers["s1"]

    def shards(self, sources: int = 1, **given: Any) -> Shards:
        """In so many of the sources; `given` are fields of `Shards`."""
        return Shards(self.name, dict(list(self.servers.items())[:sources]), self.target, self.folder, **given)

    def run(self, shards: Shards) -> TaskRun:
        """The task that merges them, not started yet."""
        return TaskRun(shards.files(), self.spark)
