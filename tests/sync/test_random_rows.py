"""Random changes of random tables on a real source, carried over in every way: the target ends as the source."""

from __future__ import annotations

import os
import random
import sys
import time

import pytest

from support.random_rows_rounds import carry_random_rows
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.storms]
SEEDS = 6


def test_random_changes_end_as_on_the_source(source_server: MariadbServer, target_server: MariadbServer) -> None:
    """With UNSHARD_FUZZ_SECONDS new seeds for so long; a finding tells its seed."""
    seconds = float(os.environ.get("UNSHARD_FUZZ_SECONDS", "0"))
    seeds = list(range(SEEDS))
    until = time.monotonic() + seconds
    while seeds or time.monotonic() < until:
        seed = seeds.pop(0) if seeds else random.randrange(1 << 40)
        told = carry_random_rows(source_server, target_server, seed)
        sys.stdout.write(f"seed {seed}: {told}\n")
