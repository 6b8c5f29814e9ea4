"""Expressions of filters by a MariaDB: what isn't refused has the server's own answer for every row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.expression_cases import (
    LITERALS,
    MARIADB_TEXTS,
    NUMBERS,
    SIGNS,
    TEXTS,
    TIMES,
    names,
    of_numbers,
    of_texts,
    of_times,
)
from support.expression_rig import Rig
from support.folded_texts import comparisons, made_up
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.expressions.parse import Refused

ODD_MODE = "ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION"
_TESTS = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(names(NUMBERS)), st.sampled_from(SIGNS), st.sampled_from(LITERALS)),
    st.builds("{} % {} = {}".format, st.sampled_from(names(NUMBERS)), st.integers(-9, 9), st.integers(-3, 3)),
    st.builds("{} IN ({}, {})".format, st.sampled_from(names(NUMBERS)), st.integers(-9, 9), st.sampled_from(LITERALS)),
)
CONDITIONS = st.recursive(
    _TESTS,
    lambda inner: st.one_of(
        st.builds("{} AND {}".format, inner, inner),
        st.builds("{} OR {}".format, inner, inner),
        st.builds("NOT ({})".format, inner),
        st.builds("({}) = ({})".format, inner, inner),
        st.builds("({}) IS NULL".format, inner),
        st.builds("IF({}, {}, 0)".format, inner, inner),
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def numbers(source_server: MariadbServer) -> Iterator[Rig]:
    yield Rig.fill(source_server, "expression_numbers", NUMBERS)
    source_server.run("DROP DATABASE expression_numbers")


@pytest.mark.storms
def test_numbers(numbers: Rig) -> None:
    answered, _ = numbers.compare(of_numbers())
    assert answered > 2500


def test_numbers_under_another_sql_mode(numbers: Rig) -> None:
    numbers.ask_under(ODD_MODE)
    answered, _ = numbers.compare(expression for n, expression in enumerate(of_numbers()) if n % 5 == 0)
    assert answered > 500


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(condition=CONDITIONS)
def test_conditions_made_up(numbers: Rig, condition: str) -> None:
    try:
        here = numbers.here(condition)
    except Refused:
        return
    assert here == numbers.there(condition)


@pytest.mark.storms
def test_texts(source_server: MariadbServer, schema: str) -> None:
    columns = {**TEXTS, **MARIADB_TEXTS}
    answered, _ = Rig.fill(source_server, schema, columns).compare(of_texts(names(columns)))
    assert answered > 2500


@pytest.mark.parametrize("mode", ["", "NO_ZERO_DATE,NO_ZERO_IN_DATE,STRICT_ALL_TABLES"])
def test_times(source_server: MariadbServer, schema: str, mode: str) -> None:
    rig = Rig.fill(source_server, schema, TIMES)
    rig.ask_under(mode)
    answered, _ = rig.compare(of_times())
    assert answered > 250


@pytest.mark.parametrize("collation", ["utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_uca1400_ai_ci"])
def test_characters_that_are_equal_to_others(source_server: MariadbServer, schema: str, collation: str) -> None:
    values, literals = made_up(collation, 300, 7)
    rig = Rig.fill(source_server, schema, {f"v varchar(60) character set utf8mb4 collate {collation}": values})
    answered, refused = rig.compare(comparisons(literals))
    assert answered > 500
    assert refused == 0
