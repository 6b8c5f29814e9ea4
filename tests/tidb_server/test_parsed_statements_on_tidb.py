"""Each statement that the tests of the parser know, run on a source, carried out on a TiDB, and both compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from support.followed_on_tidb import OnTidb
from support.parsed_statements import statements
from support.refusals import refusal
from unshard.errors import DdlError
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

STARTS = (
    (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(20) NOT NULL, d INT, s DATE NOT NULL,"
        " e DATE NOT NULL, k INT, KEY i (a), KEY j (d), KEY k (k))",
        "CREATE TABLE u (id INT PRIMARY KEY, i INT UNIQUE)",
        "CREATE TABLE `on` (a INT)",
    ),
    (
        "CREATE TABLE t (id INT PRIMARY KEY, c INT, `rename` INT, d INT, KEY a (c), CONSTRAINT `on` UNIQUE (c))",
        "CREATE TABLE v (id INT PRIMARY KEY)",
    ),
    (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT) PARTITION BY RANGE (id)"
        " (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (9))",
        "CREATE TABLE u (id INT PRIMARY KEY, a INT)",
        "CREATE TABLE tmp2 (id INT)",
    ),
    ("CREATE TABLE t (id INT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 4",),
    ("CREATE TABLE t (a TEXT, b INT, c TEXT, v VARCHAR(9))", "CREATE TABLE `t``x` (i INT PRIMARY KEY)"),
    ("CREATE TABLE t (x INT)", "CREATE TABLE u (i INT PRIMARY KEY)", "CREATE TABLE `table` (x INT)"),
    ("CREATE TABLE t (a INT, b INT, c INT, KEY i (a), KEY j (b), KEY f (c))", "CREATE TABLE v (i INT PRIMARY KEY)"),
    (),
)
"""Tables that a source may have before: a statement runs on the first of these that let it run."""


LACKING = ("DDL-002", "DDL-037", "DDL-038")
"""Of statements that no target can have, or TiDB has nothing for."""
_OTHER_SCHEMA = re.compile(r"(?<![\w`])(`?)e\1(?=\s*(/\*.*?\*/)?\s*\.)")
NOT_RUN: frozenset[str] = frozenset()
"""Statements that a source refuses on all of these tables: words of other servers, or of tables that can't be here."""


@pytest.fixture
def followed(source_server: ThrowawayServer, tidb: TidbServer, schema: str) -> Iterator[Iterator[OnTidb]]:
    """Schemas of both servers, one after the other, each with some of the tables in `STARTS`."""
    made: list[OnTidb] = []

    def started() -> Iterator[OnTidb]:
        for number, start in enumerate(STARTS):
            made.append(OnTidb(source_server, tidb, f"{schema}_{number}"))
            made[-1].run(*start)
            yield made[-1]

    yield started()
    for one in made:
        one.close()


@pytest.mark.parametrize("sql", [sql for sql in statements() if "engine=merge" not in sql])
def test_the_target_becomes_what_the_source_becomes(sql: str, followed: Iterator[OnTidb]) -> None:
    """A name in the schema `e` stands for one in the schema of the test. A MERGE table without others is unreadable."""
    taken: list[bool] = []
    for one in followed:
        text = _OTHER_SCHEMA.sub(one.schema, sql)
        refused = refusal(DdlError, lambda one=one, text=text: taken.append(one.taken(text)))  # type: ignore[misc]
        assert refused is None or refused.code in LACKING, refused
        if refused is None and taken[-1]:
            one.assert_equal()
        if refused is not None or taken[-1]:
            assert sql not in NOT_RUN
            return
    assert sql in NOT_RUN
