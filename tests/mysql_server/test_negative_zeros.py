"""MySQL keeps the sign of a zero, MariaDB does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.negative_zeros import carry_negative_zeros
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_into_mysql(
    mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    carry_negative_zeros(mysql_source, mysql_target, schema, tmp_path, spark, kept=True)


def test_into_mariadb(
    mysql_source: MysqlServer, target_server: MariadbServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    carry_negative_zeros(mysql_source, target_server, schema, tmp_path, spark, kept=False)
