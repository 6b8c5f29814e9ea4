"""The errors of Unshard: each says what failed, where, why, and what to do next.

Every error that a user can see is one `UnshardError`::

    UnshardError
     ├─ ConfigError     a task or source file
     ├─ CheckError      a check before the start
     ├─ SourceError     the upstream server
     ├─ TargetError     the downstream server
     ├─ BinlogError     bytes of a binlog or relay file
     ├─ RelayError      the relay log on disk
     ├─ DumpError       dump files, written or read
     ├─ LoadError       the full load
     ├─ SyncError       planning and applying batches
     ├─ DdlError        a DDL statement that can't be carried out
     ├─ ShardError      sharding DDL over the tables that are merged
     ├─ CompareError    comparison of rows of source and target
     ├─ ClusterError    master, workers, ctl, and requests between them
     └─ EngineError     Spark itself

Codes, texts and hints are in one table, `unshard.error_catalogue.CATALOGUE`. A function that runs in Spark returns its
error to the driver as a value (`to_dict`, or `enclose` and `disclose`). It raises none: Spark would run it again, which
could only fail again, and would show a traceback in place of the error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from unshard.error_catalogue import CatalogueEntry

LONGEST_TEXT = 8_000
"""Characters of an error's text that is sent or kept: a master takes no request of any length, a target no packet."""


@dataclass(frozen=True, slots=True)
class Where:
    """The place that an error is about; parts that don't apply stay None.

    `position` is `file:offset` of the binlog, `table` is `schema.table` as the user knows it.
    """

    source: str | None = None
    table: str | None = None
    position: str | None = None
    file: str | None = None

    def __str__(self) -> str:
        named = (("source", self.source), ("table", self.table), ("binlog", self.position), ("file", self.file))
        return ", ".join(f"{name} {value}" for name, value in named if value)

    def to_dict(self) -> dict[str, str | None]:
        """Return the JSON form, which `from_dict` reads."""
        return {"source": self.source, "table": self.table, "position": self.position, "file": self.file}

    @classmethod
    def from_dict(cls, form: Mapping[str, str | None]) -> Where:
        """Read the form of `to_dict`."""
        return cls(form["source"], form["table"], form["position"], form["file"])


def _entry(code: str) -> CatalogueEntry:
    from unshard.error_catalogue import CATALOGUE  # few of Spark's worker processes ever make an error

    return CATALOGUE[code]


@dataclass(slots=True, eq=False)
class UnshardError(Exception):
    """One failure, complete enough to act on.

    `code` is a key of `CATALOGUE`; `values` fill its text and hint. `cause` is the lower-level message,
    kept as text so that the error pickles; it must hold no credentials.
    """

    code: str
    where: Where = field(default_factory=Where)
    cause: str = ""
    values: dict[str, Any] = field(default_factory=dict)

    scope: ClassVar[str] = "bug"

    def __post_init__(self) -> None:
        Exception.__init__(self, self.code)
        _entry(self.code)  # KeyError for a code that the catalogue lacks

    @property
    def message(self) -> str:
        """Text of the catalogue for the code, with the values filled in."""
        return _entry(self.code).message.format_map(self.values)

    @property
    def hint(self) -> str:
        """The remedy. Names in its commands come from `values` where they are known."""
        known = {"task_file": "TASK.yaml", "source_id": self.where.source or "SOURCE", **self.values}
        return _entry(self.code).hint.format_map(known)

    @property
    def retryable(self) -> bool:
        """True if the same call may succeed when it is made again with nothing changed by a human."""
        return _entry(self.code).retryable

    def __str__(self) -> str:
        place = f" [{self.where}]" if str(self.where) else ""
        cause = f"\n  why: {self.cause}" if self.cause else ""
        return f"{self.code}{place}: {self.message}{cause}\n  what to do: {self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.code, self.where, self.cause, self.values))

    def at(self, **place: str | None) -> UnshardError:
        """Return the same error with further parts of its place; parts that are set stay."""
        known = {name: value for name, value in self.where.to_dict().items() if value is not None}
        return type(self)(self.code, Where(**{**place, **known}), self.cause, self.values)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `error_from_dict` reads."""
        return {
            "kind": type(self).__name__,
            "code": self.code,
            "where": self.where.to_dict(),
            "cause": self.cause,
            "values": self.values,
        }


class ConfigError(UnshardError):
    """An error in a task or source file."""

    scope = "config"


class CheckError(UnshardError):
    """A check before the start has failed."""

    scope = "config"


class SourceError(UnshardError):
    """An error of the upstream server, or of the connection to it."""

    scope = "source"


class TargetError(UnshardError):
    """An error of the downstream server, or of the connection to it."""

    scope = "target"


class BinlogError(UnshardError):
    """An error in the bytes of a binlog or relay file."""

    scope = "source"


class RelayError(UnshardError):
    """An error of the relay log on disk."""

    scope = "source"


class DumpError(UnshardError):
    """An error in writing or reading dump files."""

    scope = "source"


class LoadError(UnshardError):
    """An error of the full load."""

    scope = "target"


class SyncError(UnshardError):
    """An error in planning or applying batches."""

    scope = "target"


class DdlError(UnshardError):
    """A DDL statement that can't be carried out."""

    scope = "target"


class ShardError(UnshardError):
    """An error of sharding DDL over the tables that are merged."""

    scope = "target"


class CompareError(UnshardError):
    """An error in comparing the rows of both ends."""

    scope = "target"


class ClusterError(UnshardError):
    """An error of a master, worker or ctl, or of a message between them."""

    scope = "cluster"


class EngineError(UnshardError):
    """An error of Spark itself."""

    scope = "engine"


KINDS: dict[str, type[UnshardError]] = {kind.__name__: kind for kind in UnshardError.__subclasses__()}


def error_from_dict(form: dict[str, Any]) -> UnshardError:
    """Return the error that `UnshardError.to_dict` wrote."""
    return KINDS[form["kind"]](form["code"], Where.from_dict(form["where"]), form["cause"], form["values"])


def is_retryable(error: Exception) -> bool:
    """Return whether the failed call may be made again as it was. `retry.retrying` asks it."""
    return isinstance(error, UnshardError) and error.retryable


def bounded(text: str) -> str:
    """Return the text, without its middle where it is very long: a statement may have any length."""
    more = len(text) - LONGEST_TEXT
    if more <= 0:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]} [… {more} characters more …] {text[-half:]}"


def some_of(names: Sequence[object], most: int = 3) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - most
    return ", ".join(map(str, names[:most])) + (f" and {more:,} more" if more > 0 else "")


def told_together(group: ExceptionGroup[Exception]) -> str:
    """Return the errors of a group, one below the other. One that is no UnshardError is raised as it is."""
    _, others = group.split(UnshardError)
    if others is not None:
        raise others
    return "\n".join(str(error) for error in group.exceptions)


def enclose(work: Callable[[], Any]) -> bytes:
    """Run `work` inside a task; return its JSON-ready value, or the UnshardError that it raised, as bytes."""
    try:
        return json.dumps({"value": work()}).encode()
    except UnshardError as error:
        return json.dumps({"error": error.to_dict()}, default=str).encode()


def disclose(outcome: bytes) -> Any:
    """Return, on the driver, the value that `enclose` wrote. Raises the error if the task met one."""
    form = json.loads(outcome)
    if "error" in form:
        raise error_from_dict(form["error"])
    return form["value"]
