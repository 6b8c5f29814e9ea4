"""Whether Spark is still there, and what becomes of a job's exception."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from unshard.errors import EngineError

_LOST = re.compile(
    r"UNAVAILABLE|INVALID_HANDLE\.|SESSION_(?:CLOSED|CHANGED|NOT_FOUND)"
    r"|NO_ACTIVE_SESSION|closed channel|RETRIES_EXCEEDED"
)
_BARRIER = re.compile(r"barrier.*dynamic|dynamic.*barrier", re.IGNORECASE | re.DOTALL)


def is_connect(session: SparkSession) -> bool:
    """Whether it is a session of a Spark Connect server: there is no JVM of ours then."""
    return not isinstance(session, SparkSession)


def lives(session: SparkSession) -> bool:
    """Whether Spark still answers. Without its JVM, or its server, every call fails, `stop` too."""
    try:
        session.conf.get("spark.master", "")  # the version is kept by the session, this is asked for
    except Exception:  # noqa: BLE001 - whatever py4j or gRPC says of an end that is gone
        return False
    return True


def setting(session: SparkSession, name: str) -> str:
    """A setting of the session, "" where it has none. Raises EngineError, as `failure` makes it: Spark is asked."""
    try:
        return str(session.conf.get(name, ""))
    except Exception as error:
        raise failure(session, f"look up {name}", error) from error


def failure(session: SparkSession, task: str, error: Exception) -> EngineError:
    """What a job's exception becomes: ENGINE-003 or 009 where Spark itself is gone, 010 for a barrier that it doesn't
    have, else ENGINE-002."""
    text = str(error)
    cause, values = root_cause(text), {"task": task}
    if is_connect(session):
        if _LOST.search(text):
            return EngineError("ENGINE-009", cause=cause, values=values)
    elif not lives(session):
        return EngineError("ENGINE-003", values=values)
    if _BARRIER.search(text):
        return EngineError("ENGINE-010", cause=cause)
    return EngineError("ENGINE-002", cause=cause, values=values)


def root_cause(text: str) -> str:
    """The last line of the Python traceback that Spark wraps into its own error."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("\tat ", "  File"))]
    errors = [line for line in lines if "Error" in line or "Exception" in line]
    return (errors or lines or [""])[-1].strip()[:500]
