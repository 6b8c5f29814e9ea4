"""What TiDB would refuse for what its table has, or lacks, is refused before anything of a plan is run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import MySQLdb
import pytest

from unshard.ddl.context import Context
from unshard.ddl.intent import Intent
from unshard.ddl.parse import classify_ddl
from unshard.ddl.plan import plan_intent
from unshard.ddl.sandbox import ScratchPlace
from unshard.errors import DdlError
from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

AT = Position("b.000001", 4)
TABLE = """
CREATE TABLE {}.t (
  id INT PRIMARY KEY NONCLUSTERED, a INT, b INT, UNIQUE KEY ua (a), KEY kb (b),
  CONSTRAINT own FOREIGN KEY (b) REFERENCES p (id)
)
"""


@contextmanager
def made(tidb: TidbServer, schema: str) -> Iterator[str]:
    tidb.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.p (id INT PRIMARY KEY)", TABLE.format(schema))
    yield schema
    tidb.run(f"DROP DATABASE {schema}")


@pytest.fixture(scope="module")
def unchanged(tidb: TidbServer) -> Iterator[str]:
    """The schema of a table that no test changes."""
    with made(tidb, f"t{os.getpid()}_unchanged") as schema:
        yield schema


@pytest.fixture
def at(tidb: TidbServer, schema: str) -> Iterator[str]:
    with made(tidb, schema) as found:
        yield found


def planned(tidb: TidbServer, schema: str, *changes: str) -> Intent:
    statements = [classify_ddl(f"ALTER TABLE `{schema}`.`t` {change}", Context(schema)) for change in changes]
    with session(tidb.endpoint, "target") as connection:
        return plan_intent(connection, ScratchPlace("dm_meta", "task", "s1"), statements, AT, AT, ["t"])


def answer(tidb: TidbServer, schema: str, change: str) -> Any:
    """TiDB's own answer: the number of its error, None where it takes the change."""
    with closing(tidb.connection(schema)) as connection, connection.cursor() as cursor:
        try:
            cursor.execute(f"ALTER TABLE t {change}")
        except MySQLdb.Error as error:
            return error.args[0]
    return None


REFUSED = {
    "ADD COLUMN A INT": "the table has column a already",
    "CHANGE a B INT": "the table has column b already",
    "RENAME COLUMN a TO b": "the table has column b already",
    "DROP COLUMN c": "the table has no column c",
    "MODIFY c INT": "the table has no column c",
    "ADD COLUMN c INT AFTER d": "the table has no column d",
    "ALTER COLUMN c SET DEFAULT 1": "the table has no column c",
    "ADD KEY KB (a)": "the table has key kb already",
    "ADD PRIMARY KEY (a)": "the table has key primary already",
    "DROP KEY kc": "the table has no key kc",
    "RENAME KEY kc TO kd": "the table has no key kc",
    "RENAME KEY kb TO ua": "the table has key ua already",
    "ADD CONSTRAINT own FOREIGN KEY (b) REFERENCES p (id)": "the table has foreign key own already",
    "DROP FOREIGN KEY other": "the table has no foreign key other",
}
TAKEN = [
    "ADD COLUMN IF NOT EXISTS a INT",
    "DROP COLUMN IF EXISTS c",
    "RENAME COLUMN a TO c, RENAME KEY kb TO kc",
    "DROP KEY ua, ADD COLUMN ua INT",
    "ADD KEY (a)",
    "ADD KEY IF NOT EXISTS kb (a)",
    "DROP PRIMARY KEY",
]


@pytest.mark.parametrize("change", REFUSED)
def test_a_change_that_does_not_fit_the_table(change: str, tidb: TidbServer, unchanged: str) -> None:
    before = tidb.query(f"SHOW CREATE TABLE {unchanged}.t")
    with pytest.raises(DdlError) as caught:
        planned(tidb, unchanged, "COMMENT = 'one before it'", change)
    assert (caught.value.code, caught.value.cause) == ("DDL-040", REFUSED[change])
    assert answer(tidb, unchanged, change) is not None
    assert tidb.query(f"SHOW CREATE TABLE {unchanged}.t") == before


@pytest.mark.parametrize("change", TAKEN)
def test_a_change_that_fits(change: str, tidb: TidbServer, at: str) -> None:
    (step,) = planned(tidb, at, change).steps
    assert answer(tidb, at, change) is None
    ((_, behind),) = tidb.query(f"SHOW CREATE TABLE {at}.t")
    assert set(step.after) == {f"`{at}`.`t`"}
    assert behind.count(" KEY ") == str(step.after[f"`{at}`.`t`"]).count(" KEY ")


def test_a_statement_that_fits_behind_the_one_before_it(tidb: TidbServer, unchanged: str) -> None:
    changes = ("ADD COLUMN c INT", "ADD KEY kc (c)", "DROP COLUMN a", "ADD COLUMN a INT")
    assert len(planned(tidb, unchanged, *changes).steps) == len(changes)
    with pytest.raises(DdlError, match="DDL-040"):
        planned(tidb, unchanged, "ADD COLUMN c INT", "DROP COLUMN a", "ADD COLUMN c BIGINT")
