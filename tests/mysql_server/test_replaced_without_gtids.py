"""A MySQL source without GTIDs is replaced by another server: each advice on the way leads to its end."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.advice_walks import Walk
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

WITHOUT = {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}


def test_the_task_begins_anew_with_the_new_server(
    mysql_target: MysqlServer, schema: str, spark: SparkSession, tmp_path: Path
) -> None:
    with MysqlServer(WITHOUT) as first, MysqlServer(WITHOUT) as second:
        first.run(*("FLUSH BINARY LOGS",) * 4)
        walk = Walk.begin(first, mysql_target, schema, spark, tmp_path)
        walk.followed()
        Walk.begin(second, mysql_target, schema, spark, tmp_path)
        walk.source = second
        walk.change(sources={"s1": second})
        assert walk.fails() == "RELAY-008"
        walk.change(source={"enable-gtid": True})
        assert walk.fails() == "RELAY-032"
        walk.reset()
        walk.ends_equal()
