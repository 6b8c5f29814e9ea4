"""The barrier inside a task of a barrier stage."""

from __future__ import annotations


def wait() -> None:
    """Block until every task of the stage is here; about a second each time (Spark polls). Call in a task only."""
    from pyspark import BarrierTaskContext

    BarrierTaskContext.get().barrier()
