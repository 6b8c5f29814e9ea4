"""MySQL's JSON with values that JSON text has no words for, into TiDB: the task stops, and goes on as it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.json_values import go_on_with_conversion, go_on_with_text
from unshard.testing.mysql_server import MysqlServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.parametrize("go_on", [go_on_with_conversion, go_on_with_text])
def test_it_goes_on_as_the_error_says(
    go_on: Callable[..., None], tidb: TidbServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    with MysqlServer() as source:
        go_on(source, tidb, schema, spark, tmp_path)
