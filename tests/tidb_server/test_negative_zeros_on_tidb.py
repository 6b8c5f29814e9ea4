"""TiDB stores MySQL's -0 as 0."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.mysql_server import MysqlServer
from support.negative_zeros import carry_negative_zeros
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


def test_a_negative_zero(tidb: TidbServer, schema: str, tmp_path: Path, spark: SparkSession) -> None:
    with MysqlServer() as source:
        carry_negative_zeros(source, tidb, schema, tmp_path, spark, kept=False)
