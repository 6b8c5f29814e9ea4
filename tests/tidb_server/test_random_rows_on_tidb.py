"""Random changes of random tables on a real source, carried into TiDB in every way: it ends as the source."""

from __future__ import annotations

import os
import random
import sys
from itertools import chain

import pytest

from support.random_rows_rounds import carry_random_rows
from support.seeds import rounds
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server
SEEDS = 4
COLLATIONS = ("utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_bin", "latin1_bin", "gbk_chinese_ci", "utf8_bin")
"""Collations that TiDB has, or has one for that makes the same texts equal."""


def test_random_changes_end_in_tidb_as_on_the_source(source_server: MariadbServer, tidb: TidbServer) -> None:
    """With UNSHARD_FUZZ_SECONDS new seeds for so long; a finding tells its seed."""
    seconds = float(os.environ.get("UNSHARD_FUZZ_SECONDS", "0"))
    fixed = range(SEEDS)
    for seed in chain(fixed, (random.randrange(1 << 40) for _ in rounds(seconds)) if seconds else ()):
        told = carry_random_rows(source_server, tidb, seed, COLLATIONS)
        sys.stdout.write(f"seed {seed}: {told}\n")
