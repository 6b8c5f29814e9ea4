"""Rows that only the full load has written are compared too, range by range."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.numbers import numbers
from support.validated_tasks import ValidatedShop, validated
from support.waiting import wait_until
from unshard.api.verbs import Validation
from unshard.config.files import load_source, load_task
from unshard.operate.subject import Subject
from unshard.operate.validation import answer_validation
from unshard.target.validation import pending_size
from unshard.target.validation_errors import ErrorKind, ErrorState
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.validation import full_load
from unshard.validation.validator import Validator

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_loaded_rows_that_differ_are_found_and_resolve_themselves(shop: ValidatedShop, spark: SparkSession) -> None:
    shop.change(
        "CREATE TABLE {shop}.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO {shop}.t SELECT seq, seq FROM " + numbers(1, 10000),
        "CREATE TABLE {shop}.u (a VARCHAR(20), b INT, v INT, PRIMARY KEY (a, b))",
        "INSERT INTO {shop}.u SELECT CONCAT('k', seq MOD 7), seq, seq FROM " + numbers(1, 3000),
        "CREATE TABLE {shop}.plain (v INT)",
        "INSERT INTO {shop}.plain VALUES (1)",
    )
    files = shop.files(validator={"full-load-rows-per-second": 5000})
    spoilt = (
        "UPDATE {shop}.t SET v = 0 WHERE id IN (1, 9999)",
        "DELETE FROM {shop}.t WHERE id = 5000",
        "INSERT INTO {shop}.t VALUES (40000, 0)",
        "UPDATE {shop}.u SET v = 0 WHERE a = 'k3' AND b = 10",
    )
    with shop.validating(spark, files, *spoilt, at_rest=False) as one:
        found = {one.key: one for one in one.records.new_errors(5)}
        one.settle()
        assert {key: error.kind for key, error in found.items()} == {
            ("1",): ErrorKind.CHANGED,
            ("9999",): ErrorKind.CHANGED,
            ("5000",): ErrorKind.MISSING,
            ("40000",): ErrorKind.EXTRA,
            ("'k3'", "10"): ErrorKind.CHANGED,
        }
        assert found[("1",)].row == {"id": "1", "v": "1"}
        assert found[("1",)].found == {"id": "1", "v": "0"}
        progress = one.records.loaded()
        assert (progress.tables_done, progress.tables, progress.rows_done) == (3, 3, 13000)
        assert progress.rows_about == 13000
        stages = {name.table: stage for name, _, stage, _ in one.records.statuses()}
        assert stages == {"t": "Running", "u": "Running", "plain": "Stopped"}
        (reading,) = one.run.crew.readings()
        assert reading.validation is not None
        assert reading.validation.full_load == progress
        shop.spoil("UPDATE {shop}.t SET v = id WHERE id IN (1, 9999)")
        one.records.new_errors(3)
        assert {error.key for error in one.records.errors(ErrorState.RESOLVED)} == {("1",), ("9999",)}


def test_loaded_rows_have_their_turn_while_changes_keep_coming(
    shop: ValidatedShop, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that is written faster than the changed keys are looked at always has more of them."""
    look, looks = Validator._look_first, list[bool]()

    def has_more(*args: Any) -> bool:
        looks.append(look(*args))
        return True

    monkeypatch.setattr(Validator, "_look_first", has_more)
    shop.change("CREATE TABLE {shop}.t (id INT PRIMARY KEY, v INT)", "INSERT INTO {shop}.t VALUES (1, 1), (2, 2)")
    with shop.validating(spark, shop.files(), "UPDATE {shop}.t SET v = 0 WHERE id = 1", at_rest=False) as one:
        assert [error.key for error in one.records.new_errors(1)] == [("1",)]
    assert looks


@pytest.mark.scenarios
def test_a_restart_goes_on_behind_the_ranges_that_were_compared(shop: ValidatedShop, spark: SparkSession) -> None:
    shop.change(
        "CREATE TABLE {shop}.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO {shop}.t SELECT seq, seq FROM " + numbers(1, 40000),
    )
    files = shop.files(validator={"full-load-rows-per-second": 1000})
    with shop.validating(spark, files, at_rest=False) as one:
        wait_until(lambda: 0 < one.records.loaded().rows_done < 40000, "in the middle", told=one.records.told)
    before = one.records.loaded()
    assert before.tables_done == 0
    shop.spoil("UPDATE {shop}.t SET v = 0 WHERE id IN (1, 40000)")
    with shop.validating(spark, shop.files()) as one:
        assert [error.key for error in one.records.errors()] == [("40000",)], "the first range is not read again"
        assert one.records.loaded().rows_done == 40000


def test_a_start_right_after_a_stop_compares_all_anew(shop: ValidatedShop, spark: SparkSession) -> None:
    """The validator's thread has not seen that it was stopped."""
    shop.change("CREATE TABLE {shop}.t (id INT PRIMARY KEY, v INT)", "INSERT INTO {shop}.t VALUES (1, 1), (2, 2)")
    files = shop.files(validator={"check-interval": "1h", "validate-interval": "1h"})
    with shop.validating(spark, files, at_rest=False) as one:
        wait_until(lambda: one.records.loaded().rows_done == 2, "all compared", told=one.records.told)
        shop.spoil("UPDATE {shop}.t SET v = 0 WHERE id = 1")
        sources = [load_source(path) for path in files.source_paths]
        subject = Subject.of_files(load_task(files.task_path), sources)
        for verb in ("stop", "start"):
            answer_validation([subject], Validation(op=verb, task=files.name), "test", lambda task, source: "later")
        (subtask,) = one.run.crew.subtasks
        assert subtask.validation is not None
        subtask.validation.look()
        differing = partial(one.records.ask, lambda c: pending_size(c, one.records.meta, "s1").rows)
        wait_until(lambda: differing() == 1, "the row is found to differ", told=one.records.told)


@pytest.mark.scenarios
def test_many_rows_that_differ_are_all_found(
    shop: ValidatedShop, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a range may have: it is cut, though the target has no row to cut it by."""
    monkeypatch.setattr(full_load, "MOST_KEYS", 100)
    shop.change(
        "CREATE TABLE {shop}.t (id INT PRIMARY KEY, v INT)",
        "INSERT INTO {shop}.t SELECT seq, seq FROM " + numbers(1, 250),
    )
    files = shop.files()
    with shop.validating(spark, files, "DELETE FROM {shop}.t WHERE id > 10", at_rest=False) as one:
        wait_until(lambda: one.records.loaded().tables_done == 1, "all compared", told=one.records.told)
        one.records.new_errors(240)


def test_loaded_rows_are_left_alone_where_the_task_says_so(shop: ValidatedShop, spark: SparkSession) -> None:
    shop.change("CREATE TABLE {shop}.t (id INT PRIMARY KEY, v INT)", "INSERT INTO {shop}.t VALUES (1, 1), (2, 2)")
    files = shop.files(validator={"full-load-rows-per-second": 0})
    with shop.validating(spark, files, "UPDATE {shop}.t SET v = 0 WHERE id = 1", at_rest=False) as one:
        shop.change("UPDATE {shop}.t SET v = 3 WHERE id = 2")
        one.settle()
        assert one.records.errors() == []
        assert one.records.loaded().tables == 0


@pytest.mark.scenarios
def test_each_source_of_a_merged_table_compares_its_own_rows(
    shop: ValidatedShop, second_source: MariadbServer, spark: SparkSession
) -> None:
    sources: dict[str, ThrowawayServer] = {"s1": shop.source, "s2": second_source}
    second_source.run(f"CREATE DATABASE {shop.name}")
    for place, server in enumerate(sources.values()):
        first, last = 1 + place * 1000, 500 + place * 1000
        server.run(
            f"CREATE TABLE {shop.name}.t_{place} (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {shop.name}.t_{place} SELECT seq, seq FROM {numbers(first, last)}",
        )
    rule = {"schema-pattern": shop.name, "table-pattern": "t_*", "target-schema": shop.name, "target-table": "t"}
    files = validated(shop.folder, shop.name, sources, shop.target, {"routes": {"merge": rule}})
    try:
        spoilt = "UPDATE {shop}.t SET v = 0 WHERE id = 1400", "DELETE FROM {shop}.t WHERE id = 7"
        with shop.validating(spark, files, *spoilt, at_rest=False) as one:
            found = {(error.source, error.key): error.kind for error in one.records.new_errors(2)}
            assert found == {("s1", ("7",)): ErrorKind.MISSING, ("s2", ("1400",)): ErrorKind.CHANGED}
            one.settle()
            assert len(one.records.errors()) == 2, "no row of the other source is told of"
            assert [one.records.loaded(source).rows_done for source in sources] == [500, 500]
            assert one.records.status()["msg"].startswith("rows of the full load that only the target has are not")
    finally:
        second_source.run(f"DROP DATABASE {shop.name}")
