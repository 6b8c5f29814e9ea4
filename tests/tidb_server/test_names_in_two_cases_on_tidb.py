"""TiDB takes table names that differ only in case for one; a MariaDB or MySQL source may tell them apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.operated_tasks import copied_task, stopped_run
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]


@pytest.mark.parametrize("statement", ["CREATE TABLE T LIKE t", "DROP TABLE IF EXISTS T"])
def test_a_statement_on_the_other_name_is_refused(
    statement: str, source_server: MariadbServer, tidb: TidbServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    files = copied_task(spark, source_server, tidb, schema, tmp_path)
    source_server.run(f"USE {schema}", statement)
    error = stopped_run(files, spark)
    assert isinstance(error, UnshardError)
    assert (error.code, error.where.table) == ("DDL-049", f"{schema}.T")
    assert tidb.query(f"SELECT * FROM {schema}.t") == [(1, "one")]
