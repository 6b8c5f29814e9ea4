"""The shapes of DM's answers: `result`, `msg` and a list of sources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Answer = dict[str, Any]


def answer(sources: Iterable[Answer] = (), msg: str = "", **more: Any) -> Answer:
    """An answer over sources: good where each is. Keys of `more` stand before them, as DM has `op`."""
    listed = list(sources)
    good = all(source["result"] for source in listed)
    return {**more, "result": good, "msg": msg, "sources": listed}


def plain(msg: str = "", **more: Any) -> Answer:
    """An answer that went well and is of no source."""
    return {"result": True, "msg": msg, **more}


def refused(error: Exception) -> Answer:
    """An answer that went wrong as a whole."""
    return {"result": False, "msg": str(error)}


def of_source(source: str, worker: str = "", msg: str = "", *, good: bool = True) -> Answer:
    return {"result": good, "msg": msg, "source": source, "worker": worker}
