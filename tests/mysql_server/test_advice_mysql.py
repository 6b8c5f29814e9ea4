"""Errors that only MySQL's log leads to, and whose advice is to begin anew, followed to its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.advice_walks import Walk
from unshard.error_catalogue import CATALOGUE
from unshard.error_catalogue.entry import ANEW
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]


def test_a_change_of_a_document_without_the_document(
    mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    walk = Walk.begin(mysql_source, mysql_target, schema, spark, tmp_path)
    walk.also("docs", "(id INT PRIMARY KEY, d JSON)")
    walk.write(["INSERT INTO {1} VALUES (1, '[1, 2, \"a long enough text for a change of a part of it\"]')"])
    walk.followed()
    walk.write(
        [
            "SET SESSION binlog_row_image = MINIMAL",
            "SET SESSION binlog_row_value_options = PARTIAL_JSON",
            "UPDATE {1} SET d = JSON_REPLACE(d, '$[0]', 7)",
        ]
    )
    assert walk.fails() == "BINLOG-038"
    assert ANEW.removeprefix("begin ") in CATALOGUE["BINLOG-038"].hint
    walk.reset()
    walk.ends_equal()
