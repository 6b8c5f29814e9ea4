"""Random changes of random tables on a real source, carried over in every way: the target ends as the source."""

from __future__ import annotations

import os
import random
import sys
from itertools import chain

import pytest

from support.random_rows_rounds import carry_random_rows
from support.seeds import rounds
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.storms]
SEEDS = 6


def test_random_changes_end_as_on_the_source(source_server: MariadbServer, target_server: MariadbServer) -> None:
    """With UNSHARD_FUZZ_SECONDS new seeds for so long; a finding tells its seed."""
    seconds = float(os.environ.get("UNSHARD_FUZZ_SECONDS", "0"))
    fixed = range(SEEDS)
    for seed in chain(fixed, (random.randrange(1 << 40) for _ in rounds(seconds)) if seconds else ()):
        told = carry_random_rows(source_server, target_server, seed)
        sys.stdout.write(f"seed {seed}: {told}\n")
