"""What Spark's Python workers are started with."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

from unshard.spark.daemon import _compiled
from unshard.spark.jobs import run_tasks


@pytest.mark.spark
def test_arrow_and_the_interpreter_share_one_heap(spark: SparkSession) -> None:
    def heap(_: bytes) -> bytes:
        import os

        import pyarrow as pa

        return f"{pa.default_memory_pool().backend_name} {os.environ['MALLOC_ARENA_MAX']}".encode()

    assert run_tasks(spark, [b""], heap) == [b"system 1"]


@pytest.mark.spark
def test_what_stays_is_left_out_of_the_collection_behind_every_task(spark: SparkSession) -> None:
    def objects(_: bytes) -> bytes:
        import gc
        import os

        return f"{os.getpid()} {gc.get_freeze_count()} {len(gc.get_objects())}".encode()

    known: set[int] = set()
    again: list[tuple[int, int]] = []
    while not again:  # a process that has done a task before
        told = [tuple(map(int, one.split())) for one in run_tasks(spark, [b"", b""], objects)]
        again = [(frozen, collected) for pid, frozen, collected in told if pid in known]
        known |= {pid for pid, _, _ in told}
    assert all(frozen > 3 * collected for frozen, collected in again)


@pytest.mark.spark
def test_what_tasks_need_is_loaded_before_they_are_forked(spark: SparkSession) -> None:
    def parent(_: bytes) -> bytes:
        import os
        from pathlib import Path

        import pyspark

        return Path(f"/proc/{os.getppid()}/cmdline").read_bytes() + str(pyspark.__file__).encode()

    (told,) = run_tasks(spark, [b""], parent)
    assert b"unshard.spark.daemon" in told, "it was not sure to have one thread only"
    assert b".zip" not in told


@pytest.mark.spark
def test_pandas_is_loaded_for_no_array_but_is_there(spark: SparkSession) -> None:
    def loaded(_: bytes) -> bytes:
        import sys
        from importlib import import_module

        import pyarrow as pa

        pa.array([b"", None])
        before = "pandas" in sys.modules
        return f"{before} {import_module('pandas').__name__}".encode()

    assert run_tasks(spark, [b""], loaded) == [b"False pandas"]


def test_only_the_pyspark_that_the_interpreter_has_is_loaded_from_its_folder() -> None:
    """A Spark of another folder may be of another release: its own pyspark stays."""
    spark = str(Path(pyspark.__file__).parent)
    site = str(Path(spark).parent)
    zipped = f"{spark}/python/lib/pyspark.zip"
    assert _compiled([zipped, "/mine.zip", site], spark) == ["/mine.zip", site]
    other = ["/opt/spark/python/lib/pyspark.zip", site]
    assert _compiled(other, "/opt/spark") == other
    assert _compiled([zipped], spark) == [zipped]
