"""Rows that several processes write first: a duplicate that TiDB tells of in place of an update."""

from __future__ import annotations

from typing import Any

import MySQLdb
import pytest

from unshard.target.transactions import upsert


class Cursor:
    """Meets these errors, one a statement."""

    def __init__(self, *errors: MySQLdb.Error) -> None:
        self.errors = list(errors)
        self.run: list[tuple[str, Any]] = []

    def execute(self, statement: str, values: Any) -> None:
        self.run.append((statement, values))
        if self.errors:
            raise self.errors.pop(0)


DUPLICATE = MySQLdb.IntegrityError(1062, "Duplicate entry 's1' for key 't.PRIMARY'")


def test_a_duplicate_is_met_by_the_same_statement_again() -> None:
    cursor = Cursor(DUPLICATE)
    upsert(cursor, "INSERT", ("s1",))
    assert cursor.run == [("INSERT", ("s1",))] * 2


@pytest.mark.parametrize(
    "error", [MySQLdb.OperationalError(1205, "lock wait"), MySQLdb.IntegrityError(1048, "cannot be null")]
)
def test_any_other_error_ends_it(error: MySQLdb.Error) -> None:
    cursor = Cursor(error)
    with pytest.raises(type(error)):
        upsert(cursor, "INSERT", ())
    assert len(cursor.run) == 1


def test_a_duplicate_that_stays_is_told() -> None:
    with pytest.raises(MySQLdb.IntegrityError):
        upsert(Cursor(*[DUPLICATE] * 9), "INSERT", ())
