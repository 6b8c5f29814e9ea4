"""Rows of tables that get another key, or that are dropped, while they are validated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.validated_tasks import ValidatedShop
from support.waiting import wait_until
from unshard.model.table import TableName
from unshard.target.pending_keys import PendingKey
from unshard.target.validation_errors import ErrorState
from unshard.target.validation_questions import RowQuestion, ask_others, questions_to
from unshard.validation.tables import GONE, OLD_KEY

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_an_error_under_another_key_is_not_resolved(shop: ValidatedShop, spark: SparkSession) -> None:
    """The values of the old key may be those of another row's new one."""
    shop.change(
        "CREATE TABLE {shop}.t (a INT, b INT NOT NULL, v INT, PRIMARY KEY (a))",
        "INSERT INTO {shop}.t VALUES (1, 100, 1), (2, 1, 2)",
    )
    with shop.validating(spark, None, "UPDATE {shop}.t SET v = 9 WHERE a = 1") as one:
        (error,) = one.records.new_errors(1)
        assert error.key_columns == ("a",)
        shop.change("ALTER TABLE {shop}.t DROP PRIMARY KEY, ADD PRIMARY KEY (b)")
        one.run.catch_up()
        wait_until(lambda: OLD_KEY in str(one.records.statuses()), "the error is looked at", told=one.records.told)
        (error,) = one.records.errors()
        assert (error.state, error.settled_by) == (ErrorState.NEW, "")


def test_errors_of_a_dropped_table_are_resolved(shop: ValidatedShop, spark: SparkSession) -> None:
    shop.change("CREATE TABLE {shop}.t (id INT PRIMARY KEY, v INT)", "INSERT INTO {shop}.t VALUES (1, 1), (2, 2)")
    with shop.validating(spark, None, "UPDATE {shop}.t SET v = 9 WHERE id = 1") as one:
        one.records.new_errors(1)
        shop.change("DROP TABLE {shop}.t")
        one.run.catch_up()
        one.records.new_errors(0)
        (error,) = one.records.errors()
        assert (error.state, error.settled_by) == (ErrorState.RESOLVED, "the table is gone")


@pytest.mark.scenarios
def test_errors_of_a_table_that_can_not_be_seen_stay(shop: ValidatedShop, spark: SparkSession) -> None:
    """The account has lost its rights: to it the table looks dropped."""
    shop.change(
        "CREATE TABLE {shop}.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO {shop}.t VALUES (1, 1), (2, 2)",
        "CREATE USER {shop}@'%'",
        "GRANT ALL ON *.* TO {shop}@'%'",
    )
    files = shop.files()
    path = files.folder / "s1.yaml"
    path.write_text(path.read_text().replace("user: root", f"user: {shop.name}"))
    try:
        with shop.validating(spark, files, "UPDATE {shop}.t SET v = 9 WHERE id = 1") as one:
            one.records.new_errors(1)
            with one.held:
                shop.change("REVOKE ALL ON *.* FROM {shop}@'%'", "GRANT REPLICATION SLAVE ON *.* TO {shop}@'%'")
                shop.change("GRANT REPLICATION CLIENT ON *.* TO {shop}@'%'")
                one.run.catch_up()
            wait_until(lambda: GONE in str(one.records.statuses()), "the error is looked at", told=one.records.told)
            assert [error.state for error in one.records.errors()] == [ErrorState.NEW]
    finally:
        shop.change("DROP USER {shop}@'%'")


@pytest.mark.scenarios
def test_questions_have_the_columns_of_their_key(shop: ValidatedShop, spark: SparkSession) -> None:
    """Those of an earlier version have its values alone."""
    shop.change("CREATE TABLE {shop}.t (id INT PRIMARY KEY)")
    with shop.validating(spark) as one:
        target = TableName(shop.name, "t")
        pending = PendingKey(target, target, ("1",), 2, 0.0, columns=("id",))

        def asked(connection: Any) -> list[RowQuestion]:
            with connection.cursor() as cursor:
                ask_others(cursor, one.records.meta, "s1", ["other"], pending)
            return questions_to(connection, one.records.meta, "other", 10)

        (question,) = one.records.ask(asked)
        assert (question.key, question.columns) == (("1",), ("id",))
        rewritten = f"UPDATE {one.records.meta.named('validator_question')} SET row_key = '{json.dumps(['1'])}'"
        shop.target.run(rewritten)
        (question,) = one.records.ask(lambda c: questions_to(c, one.records.meta, "other", 10))
        assert (question.key, question.columns) == (("1",), ())


@pytest.mark.scenarios
def test_an_error_of_an_earlier_version_is_judged(shop: ValidatedShop, spark: SparkSession) -> None:
    shop.change("CREATE TABLE {shop}.t (id INT PRIMARY KEY, v INT)", "INSERT INTO {shop}.t VALUES (1, 1)")
    with shop.validating(spark, None, "UPDATE {shop}.t SET v = 9 WHERE id = 1") as one:
        one.records.new_errors(1)
        with one.held:
            name = one.records.meta.named("validator_error_change")
            shop.target.run(f"UPDATE {name} SET data = JSON_REMOVE(data, '$.key_columns')")
            assert one.records.errors()[0].key_columns == ()
            shop.spoil("UPDATE {shop}.t SET v = 1 WHERE id = 1")
        one.records.new_errors(0)
        assert one.records.errors()[0].state is ErrorState.RESOLVED
