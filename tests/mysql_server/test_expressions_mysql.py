"""Expressions of filters by a MySQL: what isn't refused has the server's own answer for every row."""

from __future__ import annotations

import pytest

from support.expression_cases import MYSQL_TEXTS, NUMBERS, TEXTS, TIMES, names, of_numbers, of_texts, of_times
from support.expression_rig import Rig
from support.folded_texts import comparisons, made_up
from unshard.testing.mysql_server import MysqlServer


@pytest.mark.parametrize("mode", ["", "NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE,ANSI_QUOTES"])
def test_numbers(mysql_source: MysqlServer, schema: str, mode: str) -> None:
    rig = Rig.fill(mysql_source, schema, NUMBERS)
    rig.ask_under(mode)
    answered, _ = rig.compare(of_numbers())
    assert answered > 2500


def test_texts(mysql_source: MysqlServer, schema: str) -> None:
    columns = {**TEXTS, **MYSQL_TEXTS}
    answered, _ = Rig.fill(mysql_source, schema, columns).compare(of_texts(names(columns)))
    assert answered > 2500


@pytest.mark.parametrize("mode", ["", "NO_ZERO_DATE,NO_ZERO_IN_DATE,STRICT_ALL_TABLES"])
def test_times(mysql_source: MysqlServer, schema: str, mode: str) -> None:
    rig = Rig.fill(mysql_source, schema, TIMES)
    rig.ask_under(mode)
    answered, _ = rig.compare(of_times())
    assert answered > 250


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_0900_ai_ci"])
def test_characters_that_are_equal_to_others(mysql_source: MysqlServer, schema: str, collation: str) -> None:
    values, literals = made_up(collation, 300, 7)
    rig = Rig.fill(mysql_source, schema, {f"v varchar(60) character set utf8mb4 collate {collation}": values})
    answered, refused = rig.compare(comparisons(literals))
    assert answered > 500
    assert refused == 0
