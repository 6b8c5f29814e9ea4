"""Foreign keys that a target checks: what they change there by themselves is not in MariaDB's binlog."""

from __future__ import annotations

import pytest

from support.foreign_keys import carry_families
from support.log_to_target import Way
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
WAYS = (Way(budget=20000), Way(multiple_rows=False), Way(compact=False, chunk_rows=50, twice=True))


def test_cascades_of_a_mariadb_end_as_on_the_source(
    source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    carry_families(source_server, target_server, schema, WAYS, foreign_keys=True)
