"""Jobs whose tasks run all at the same time: Spark does not run such a stage again, so we do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from unshard.errors import EngineError
from unshard.spark.jobs import BARRIER_ATTEMPTS, run_tasks

pytestmark = pytest.mark.spark


def dying(folder: Path, deaths: int) -> Callable[[bytes], bytes]:
    """A task of which the process dies that many times, in the first partition; it notes each time that it begins."""
    place = str(folder)

    def task(payload: bytes) -> bytes:
        import os
        import signal
        from pathlib import Path

        if payload == b"0":
            begun = len(list(Path(place).iterdir()))
            (Path(place) / str(begun)).touch()
            if begun < deaths:
                os.kill(os.getpid(), signal.SIGKILL)
        return payload

    return task


def test_a_process_that_dies_costs_one_more_run_of_all_tasks(spark: SparkSession, tmp_path: Path) -> None:
    assert run_tasks(spark, [b"0", b"1"], dying(tmp_path, 1), barrier=True) == [b"0", b"1"]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_job_whose_processes_always_die_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="ENGINE-002"):
        run_tasks(spark, [b"0", b"1"], dying(tmp_path, 99), barrier=True)
    assert len(list(tmp_path.iterdir())) == BARRIER_ATTEMPTS


def test_an_exception_of_a_task_is_not_tried_again(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path)

    def failing(payload: bytes) -> bytes:
        import uuid
        from pathlib import Path

        if payload == b"0":
            (Path(place) / uuid.uuid4().hex).touch()
            raise ValueError("of the task itself")
        return payload

    with pytest.raises(EngineError, match="of the task itself"):
        run_tasks(spark, [b"0", b"1"], failing, barrier=True)
    assert len(list(tmp_path.iterdir())) == 1
