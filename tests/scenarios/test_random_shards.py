"""Random life of shards under a task whose subtasks die at any durable write: nothing lost, doubled or altered."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from shard_storm import STEPS, Storm
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_random_shards(
    spark: SparkSession,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """With UNSHARD_FUZZ_SECONDS new seeds for so long; a finding tells its seed."""
    seconds = float(os.environ.get("UNSHARD_FUZZ_SECONDS", "0"))
    seed = int(os.environ.get("UNSHARD_FUZZ_SEED", "0")) or (int(time.time()) if seconds else 7)
    ended = time.monotonic() + seconds
    while True:
        sources = {"s1": source_server, "s2": second_source}
        name = f"{schema}_{seed}"
        try:
            deaths = Storm(seed, name, sources, target_server, tmp_path / name, STEPS if seconds else 20).run(spark)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        sys.stderr.write(f"seed {seed} died at {deaths}\n")
        if time.monotonic() >= ended:
            return
        seed += 1
