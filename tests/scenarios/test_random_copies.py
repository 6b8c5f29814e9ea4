"""Copies without a lock while the source lives on, by seed: equal, once, and each end is one that a start gets past."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.copy_storm import CopyStorm
from support.waiting import rounds
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.storms]
SEEDS = (1, 2, 3)
KILLED_SEEDS = tuple(range(21, 21 + int(os.environ.get("UNSHARD_KILLED_SEEDS", "1"))))
LIVES = 3


def test_random_copies(
    spark: SparkSession,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With UNSHARD_FUZZ_SECONDS new seeds for so long, from UNSHARD_FUZZ_SEED on; a finding tells its seed."""
    seconds = float(os.environ.get("UNSHARD_FUZZ_SECONDS", "0"))
    first = int(os.environ.get("UNSHARD_FUZZ_SEED", "0")) or int(time.time())
    for seed in (first + number for number in rounds(seconds)) if seconds else SEEDS:
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
    seed: int, source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    storm = CopyStorm(seed, schema, source_server, target_server, tmp_path / schema)
    try:
        storm.run_commands(LIVES)
    except BaseException as error:
        error.add_note(f"seed {seed}: {storm.told}")
        raise
    sys.stderr.write(f"seed {seed}: {storm.told}\n")
