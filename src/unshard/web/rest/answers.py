"""How REST answers: a list with its length, and what a verb refuses as an error of HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from unshard.errors import ClusterError
from unshard.master.answers import Answer


def listed(items: Iterable[Any]) -> dict[str, Any]:
    """DM's lists: `total` and `data`."""
    data = list(items)
    return {"total": len(data), "data": data}


def readable(form: Callable[[], dict[str, Any]], name: dict[str, str]) -> dict[str, Any]:
    """An item of a list; of one whose kept file can't be read its name, and why."""
    try:
        return form()
    except ClusterError as error:
        if error.code != "CLUSTER-091":
            raise
        return {**name, "error_msg": str(error)}


def done(answer: Answer) -> Answer:
    """The answer of a verb that went well. Raises ClusterError CLUSTER-016 with what it says else."""
    if answer["result"]:
        return answer
    told = [
        answer["msg"],
        *(f"{one['source']}: {one['msg']}" for one in answer.get("sources", ()) if not one["result"]),
    ]
    raise ClusterError("CLUSTER-016", cause="\n       ".join(filter(None, told)))
