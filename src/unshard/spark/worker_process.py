"""Functions that Spark tasks call in their worker process: data of the job, barrier, counters, fewer collections."""

from __future__ import annotations

import gc
import pickle
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import Broadcast

_settled: set[int] = set()
"""In a worker process: the numbers of loaded modules at which `settle` has already run."""


@dataclass(frozen=True, slots=True)
class JobData:
    """The data that all tasks of a job have in common, pickled; a broadcast of that, where it is large."""

    pickled: bytes | Broadcast[bytes]

    def read(self) -> Any:
        """Return the data; called once in a task."""
        return pickle.loads(self.pickled if isinstance(self.pickled, bytes) else self.pickled.value)


def load(payload: bytes) -> bytes:
    """Task that only loads the modules of a batch's tasks; the payload comes back."""
    import_module("unshard.spark.batch_tasks")
    return payload


def wait() -> None:
    """Block until every task of the barrier stage has come here; about a second each time (Spark polls).

    Call only in a task.
    """
    from pyspark import BarrierTaskContext

    BarrierTaskContext.get().barrier()


def counted() -> bytes:
    """Return the counts of this worker process that it has not reported yet; called in a task."""
    if "unshard.metrics.events" not in sys.modules:
        return pickle.dumps({})
    from unshard.metrics.events import EVENTS

    return pickle.dumps(EVENTS.take())


def settle() -> None:
    """Exclude lasting objects of this process from later garbage collections, at the end of a task.

    pyspark collects all generations after every task, which takes longer than a small task. Does nothing unless modules
    were loaded since the last call.
    """
    loaded = len(sys.modules)
    if loaded not in _settled:
        gc.collect()
        gc.freeze()
        _settled.add(loaded)
