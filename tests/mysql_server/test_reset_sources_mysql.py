"""A MySQL source whose log was reset while its task stood still and lost its relay folder: told, not passed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pytest
from pyspark.sql import SparkSession

from support.advice_walks import Walk
from unshard.testing.mysql_server import MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

RESET = "RESET BINARY LOGS AND GTIDS"


@pytest.fixture
def walk(mysql_target: MysqlServer, schema: str, spark: SparkSession, tmp_path: Path) -> Iterator[Walk]:
    with MysqlServer() as source:
        yield Walk.begin(source, mysql_target, schema, spark, tmp_path)


def test_a_new_log_that_goes_on_in_the_next_file(walk: Walk) -> None:
    walk.source.run(RESET)
    walk.write([f"INSERT INTO {{0}} VALUES ({number}, REPEAT('x', 20))" for number in range(1000, 1020)])
    walk.followed()
    walk.source.run(RESET)
    walk.write(["INSERT INTO {0} VALUES (100, 'new')", "FLUSH BINARY LOGS", "INSERT INTO {0} VALUES (102, 'new')"])
    rmtree(walk.relay)
    assert walk.fails() == "RELAY-009"
    walk.reset()
    walk.ends_equal(late=5000)
