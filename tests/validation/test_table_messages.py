"""What `validation status` tells of a table stays until the table's plan is another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import MySQLdb
import pytest

from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint, session
from unshard.target.meta import MetaTables
from unshard.target.validation import RUNNING, STOPPED, load_table_statuses
from unshard.target.validation_tables import create_validation
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.validation.verdicts import Verdicts

pytestmark = pytest.mark.server

NAMES = TableName("a", "t"), TableName("b", "t")


@dataclass
class Records:
    """The validator's records of source s1."""

    endpoint: Endpoint
    meta: MetaTables

    def verdicts(self) -> Verdicts:
        """Those of a process that has just been started."""
        found = Verdicts("s1", self.endpoint, self.meta)
        found.recall()
        return found

    @property
    def told(self) -> tuple[str, str]:
        with session(self.endpoint, "target") as connection:
            ((_, _, stage, message),) = load_table_statuses(connection, self.meta, "s1")
        return stage, message


@pytest.fixture
def records(target_server: ThrowawayServer, schema: str) -> Iterator[Records]:
    target_server.run(f"CREATE DATABASE {schema}")
    found = Records(Endpoint("127.0.0.1", target_server.port, "root", ""), MetaTables(schema, "task"))
    with session(found.endpoint, "target") as connection:
        create_validation(connection, found.meta)
    yield found
    target_server.run(f"DROP DATABASE {schema}")


def planned(verdicts: Verdicts, stage: str, message: str = "") -> None:
    verdicts.in_one(lambda cursor: verdicts.tell_planned(cursor, *NAMES, stage, message))


def test_a_message_about_rows_outlasts_the_next_look_and_a_restart(records: Records) -> None:
    first = records.verdicts()
    planned(first, RUNNING)
    first.in_one(lambda cursor: first.tell_status(cursor, *NAMES, RUNNING, "seven rows are not judged"))
    planned(first, RUNNING)
    assert records.told == (RUNNING, "seven rows are not judged")
    again = records.verdicts()
    planned(again, RUNNING)
    assert records.told == (RUNNING, "seven rows are not judged")
    planned(again, STOPPED, "no key")
    assert records.told == (STOPPED, "no key")
    planned(again, RUNNING)
    assert records.told == (RUNNING, "")
    again.in_one(lambda cursor: again.tell_status(cursor, *NAMES, STOPPED, "no privilege"))
    planned(again, RUNNING)
    assert records.told == (RUNNING, ""), "a table that can be read again is told of"


def test_a_transaction_that_runs_again_tells_it_again(records: Records) -> None:
    verdicts = records.verdicts()
    lost: list[int] = []

    def write(cursor: Any) -> None:
        verdicts.tell_planned(cursor, *NAMES, RUNNING, "a column is left out")
        if not lost:
            lost.append(1)
            raise MySQLdb.OperationalError(2013, "Lost connection to server during query")

    verdicts.in_one(write)
    assert records.told == (RUNNING, "a column is left out")
