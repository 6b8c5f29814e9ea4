"""The tables of what characters are equal to are those of MySQL, all planes of Unicode."""

from __future__ import annotations

import pytest

from support.folds import read_folds
from unshard.testing.mysql_server import MysqlServer
from unshard.transform.expressions.texts import folds_of


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci"])
def test_all_characters(mysql_source: MysqlServer, collation: str) -> None:
    connection = mysql_source.connection()
    try:
        assert read_folds(connection, collation) == folds_of(collation)
    finally:
        connection.close()


def test_latin1(mysql_source: MysqlServer) -> None:
    connection = mysql_source.connection()
    try:
        assert read_folds(connection, "latin1_swedish_ci", range(1)) == folds_of("latin1_swedish_ci")
    finally:
        connection.close()
