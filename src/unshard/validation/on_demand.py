"""The validator of a subtask, created on demand.

It is created if the task's settings or the record in the target ask for validation, or as soon as a command does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from unshard.validation.validator import ValidationReading, Validator


@dataclass(slots=True)
class OnDemandValidator:
    """The validator of a subtask, which is created when it is first needed.

    `begin` and `end` are called by the subtask's thread, the other methods by any. `recorded` asks the target whether a
    verb has started the validation, and raises TargetError.
    """

    build: Callable[[], Validator]
    recorded: Callable[[], bool]
    built: Validator | None = None
    _active: bool = False
    _lock: Lock = field(default_factory=Lock)

    def begin(self) -> None:
        """Start the validator where the settings or the target's record say so. Raises TargetError."""
        self._active = True
        if self.built is None and not self.recorded():
            return
        with self._lock:
            validator = self._get()
        validator.begin()

    def look(self) -> None:
        """Let the validator read its record again, which a verb has changed. Returns at once."""
        with self._lock:
            if not self._active:
                return
            known, validator = self.built is not None, self._get()
            if not known:
                validator.activate()
            validator.look()

    def end(self) -> None:
        """Stop the validator and wait for its end."""
        self._active = False
        if self.built is not None:
            self.built.end()

    def reading(self) -> ValidationReading | None:
        """Return the last reading; None where this process has never validated the source."""
        return self.built.reading() if self.built is not None else None

    def _get(self) -> Validator:
        if self.built is None:
            self.built = self.build()
        return self.built
