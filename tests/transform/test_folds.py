"""The tables of what characters are equal to are those of the server."""

from __future__ import annotations

import pytest

from support.folds import read_folds
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.expressions.texts import folds_of

COLLATIONS = ["utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_uca1400_ai_ci"]


@pytest.mark.parametrize("collation", COLLATIONS)
def test_the_first_plane(source_server: MariadbServer, collation: str) -> None:
    connection = source_server.connection()
    try:
        found = read_folds(connection, collation, range(1))
    finally:
        connection.close()
    for text, known in folds_of(collation).items():
        mine = [part for part in known.split() if len(part.partition("-")[0]) <= 4]
        assert found.pop(text, "").split() == mine, text
    assert found == {}
