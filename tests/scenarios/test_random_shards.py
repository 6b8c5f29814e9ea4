"""Random life of shards under a task whose subtasks end at any durable write: nothing lost, doubled or altered."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.seeds import seeds
from support.shard_hosts import Hosts
from support.shard_processes import Processes
from support.shard_storm import STEPS, Life, Storm
from support.shard_terms import Terms
from support.task_runs import TaskFiles
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.storms]
FEW = 9
SEEDS = (7,)
TERMS = {
    396: Terms(schemas=2, ghosts=True),
    395: Terms("at-least-once", folded=True, compact=True, safe=True),
}


@pytest.mark.parametrize("seed", TERMS, ids=lambda seed: TERMS[seed].delivery)
def test_random_shards_of_fixed_terms(
    seed: int,
    spark: SparkSession,
    source_server: ThrowawayServer,
    second_source: ThrowawayServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
) -> None:
    sources = {"s1": source_server, "s2": second_source}
    storm = Storm(seed, schema, sources, target_server, tmp_path, TERMS[seed], FEW)
    storm.run(lambda files: Hosts(files, spark, seed), 0.3)


def test_random_shards(
    spark: SparkSession,
    source_server: ThrowawayServer,
    second_source: ThrowawayServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """Of terms that the seed draws; with UNSHARD_FUZZ_PROCESSES each source has a process of its own.

    The environment may ask for other seeds (`support.seeds`); a finding tells its seed.
    """
    sources = {"s1": source_server, "s2": second_source}
    processes = bool(os.environ.get("UNSHARD_FUZZ_PROCESSES"))
    for seed in seeds(SEEDS):
        name, terms = f"{schema}_{seed}", Terms.drawn(random.Random(seed))
        life: Callable[[TaskFiles], Life] = partial(Hosts, spark=spark, seed=seed)
        if processes:
            life = partial(Processes, seed=seed)
        try:
            storm = Storm(seed, name, sources, target_server, tmp_path / name, terms, STEPS)
            told = storm.run(life, 0.3 if processes else 0.12)
        except BaseException as error:
            error.add_note(f"seed {seed} {terms}")
            raise
        sys.stderr.write(f"seed {seed} {terms}: {told}\n")
