"""MariaDB's TIME beyond 838:59:59 into MySQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.late_times import carry_late_times, follow_after_deaths, stop_at_late_keys, validate_late_times
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_the_task_stops_and_goes_on_as_it_says(
    source_server: MariadbServer, mysql_target: MysqlServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    carry_late_times(source_server, mysql_target, schema, tmp_path, spark)


def test_values_of_a_key_stop_it(
    source_server: MariadbServer, mysql_target: MysqlServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    stop_at_late_keys(source_server, mysql_target, schema, tmp_path, spark)


def test_a_batch_that_is_open_is_finished(
    source_server: MariadbServer,
    mysql_target: MysqlServer,
    schema: str,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    follow_after_deaths(source_server, mysql_target, schema, tmp_path, spark, monkeypatch)


def test_it_is_no_difference_to_the_validator(
    source_server: MariadbServer, mysql_target: MysqlServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    validate_late_times(source_server, mysql_target, schema, tmp_path, spark)
