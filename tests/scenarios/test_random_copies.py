"""Copies without a lock while the source lives on, by seed: equal, once, and each end is one that a start gets past."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.copy_storm import CopyStorm
from support.seeds import seeds
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.storms]
SEEDS = (1, 2, 3)
KILLED_SEEDS = tuple(range(21, 21 + int(os.environ.get("UNSHARD_KILLED_SEEDS", "1"))))
LIVES = 3


def test_random_copies(
    spark: SparkSession,
    source_server: ThrowawayServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of fixed seeds, or those that the environment asks for (`support.seeds`); a finding tells its seed."""
    for seed in seeds(SEEDS):
        name = f"{schema}_{seed}"
        storm = CopyStorm(seed, name, source_server, target_server, tmp_path / name)
        try:
            storm.run(spark, monkeypatch, LIVES)
        except BaseException as error:
            error.add_note(f"seed {seed}: {storm.told}")
            raise
        sys.stderr.write(f"seed {seed}: {storm.told}\n")


@pytest.mark.recovery
@pytest.mark.parametrize("seed", KILLED_SEEDS)
def test_random_copies_of_commands_that_are_killed(
    seed: int, source_server: ThrowawayServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> None:
    storm = CopyStorm(seed, schema, source_server, target_server, tmp_path / schema)
    try:
        storm.run_commands(LIVES)
    except BaseException as error:
        error.add_note(f"seed {seed}: {storm.told}")
        raise
    sys.stderr.write(f"seed {seed}: {storm.told}\n")
