"""Subtasks in threads, without orders: a test has them in hand before they begin, and may change what they call."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event, Lock, Thread

from unshard.errors import UnshardError
from unshard.worker.status import SubtaskStatus
from unshard.worker.subtask import Subtask
from unshard.worker.subtask_runner import WAIT_ON_STOP_SECONDS

_LOOK_SECONDS = 0.5


@dataclass(slots=True)
class SubtaskThreads:
    """The threads of a run. The first failure stops the others; each has `wait_on_stop` seconds to end its batch."""

    subtasks: tuple[Subtask, ...]
    wait_on_stop: float = WAIT_ON_STOP_SECONDS
    stop: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)
    errors: list[BaseException] = field(default_factory=list)
    _threads: list[Thread] = field(default_factory=list)
    _left: int = 0
    _count: Lock = field(default_factory=Lock)

    def start(self) -> None:
        self._left = len(self.subtasks)
        for subtask in self.subtasks:
            thread = Thread(target=self._run, args=(subtask,), name=f"subtask {subtask.source}")
            self._threads.append(thread)
            thread.start()
        Thread(target=self._cancel, name="canceller", daemon=True).start()

    def join(self) -> None:
        """Wait for all threads. Raises the first failure; those of other sources are in the log."""
        for thread in self._threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def readings(self) -> list[SubtaskStatus]:
        return [subtask.status() for subtask in self.subtasks]

    def _cancel(self) -> None:
        """From a stop on, end dumps and loads, and batches when their time is over.

        Again and again, for one may just be about to begin.
        """
        self.stop.wait()
        waited = 0.0
        while not self.ended.wait(_LOOK_SECONDS):
            waited += _LOOK_SECONDS
            for subtask in self.subtasks:
                subtask.cancel_copy()
                if waited >= self.wait_on_stop:
                    subtask.cancel_sync()

    def _run(self, subtask: Subtask) -> None:
        try:
            subtask.run(self.stop)
        except UnshardError as error:
            self.errors.append(error)
            self.stop.set()
        except BaseException as error:
            self.errors.append(error)
            self.stop.set()
            raise
        finally:
            with self._count:
                self._left -= 1
                if not self._left:
                    self.ended.set()
