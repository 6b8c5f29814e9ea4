"""UPDATEs of tables with several unique keys as upserts, into MySQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support import locked_upserts
from support.row_batches import Target
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def target(mysql_target: MysqlServer) -> Iterator[Target]:
    found = locked_upserts.place(mysql_target)
    yield found
    found.connection.close()


@pytest.mark.parametrize("walk", locked_upserts.WALKS)
def test_no_other_row_is_hit(target: Target, walk: Callable[[Target], None]) -> None:
    walk(target)
