"""Tables that tests of bulk statements write in both ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from support.text_and_bulk import TextAndBulk
from unshard.testing.mariadb_server import MariadbServer


@pytest.fixture
def tables(source_server: MariadbServer, schema: str) -> Iterator[Callable[[str], TextAndBulk]]:
    made: list[TextAndBulk] = []

    def make(columns: str) -> TextAndBulk:
        made.append(TextAndBulk(source_server, schema, columns))
        return made[-1]

    yield make
    for one in made:
        one.connection.close()
        source_server.run(f"DROP DATABASE {one.schema}")
