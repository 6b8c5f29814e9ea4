"""A first job that does nothing, so that the first real one need not wait for Spark to find its feet.

It costs a session's first job seconds to start Python processes, to import what tasks need and to load the JVM's
classes; all of that stays for the jobs to come.
"""

from __future__ import annotations

from importlib import import_module

from unshard.spark.jobs import run_tasks
from unshard.spark.session import Session, slots


def warm(session: Session) -> None:
    """One empty task for each slot. Raises EngineError as every job."""
    run_tasks(session, [b""] * slots(session), _imported)


def _imported(payload: bytes) -> bytes:
    import_module("unshard.spark.batches")
    return payload
