"""The call by which a unit has its tasks run on Spark's executors, without an import of Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol


class RunTasks(Protocol):
    """A function that runs one Spark task per payload: `spark.jobs.run_tasks` with its session bound."""

    def __call__(
        self, payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False
    ) -> list[bytes]:
        """Run `task` on each payload and return the results in the payloads' order.

        `barrier`: all tasks run at the same time.
        """
