"""Random life of shards under a task whose subtasks end at any durable write: nothing lost, doubled or altered."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.shard_hosts import Hosts
from support.shard_processes import Processes
from support.shard_storm import STEPS, Life, Storm
from support.shard_terms import Terms
from support.task_runs import TaskFiles
from support.waiting import rounds
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.storms]
FEW = 9
TERMS = {
    396: Terms(schemas=2, ghosts=True),
    395: Terms("at-least-once", folded=True, compact=True, safe=True),
}


@pytest.mark.parametrize("seed", TERMS, ids=lambda seed: TERMS[seed].delivery)
def test_random_shards(
    seed: int,
    spark: SparkSession,
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """With UNSHARD_FUZZ_SECONDS new seeds for so long, from UNSHARD_FUZZ_SEED on; a finding tells its seed.

    With UNSHARD_FUZZ_PROCESSES too, each source has a process of its own.
    """
    seconds = float(os.environ.get("UNSHARD_FUZZ_SECONDS", "0"))
    sources = {"s1": source_server, "s2": second_source}
    if not seconds:
        Storm(seed, schema, sources, target_server, tmp_path, TERMS[seed], FEW).run(
            lambda files: Hosts(files, spark, seed), 0.3
        )
        return
    processes = bool(os.environ.get("UNSHARD_FUZZ_PROCESSES"))
    first = int(os.environ.get("UNSHARD_FUZZ_SEED", "0")) or int(time.time())
    for seed in (first + number for number in rounds(seconds)):
        name, terms = f"{schema}_{seed}", Terms.drawn(random.Random(seed))
        try:
            storm = Storm(seed, name, sources, target_server, tmp_path / name, terms, STEPS)
            life: Callable[[TaskFiles], Life] = partial(Hosts, spark=spark, seed=seed)
            if processes:
                life = partial(Processes, seed=seed)
            told = storm.run(life, 0.3 if processes else 0.12)
        except BaseException as error:
            error.add_note(f"seed {seed} {terms}")
            raise
        sys.stderr.write(f"seed {seed} {terms}: {told}\n")
