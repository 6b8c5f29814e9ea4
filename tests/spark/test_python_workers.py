"""What Spark's Python workers are started with."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from unshard.spark.jobs import run_tasks


@pytest.mark.spark
def test_arrow_and_the_interpreter_share_one_heap(spark: SparkSession) -> None:
    def heap(_: bytes) -> bytes:
        import os

        import pyarrow as pa

        return f"{pa.default_memory_pool().backend_name} {os.environ['MALLOC_ARENA_MAX']}".encode()

    assert run_tasks(spark, [b""], heap) == [b"system 1"]
