"""Builds the HTTP answers: errors, lists, and the results of commands.

The answer to an error has both of DM's forms in one, and never the caller's data. In REST a list has its length, and a
command that refuses becomes an error of HTTP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from starlette.responses import JSONResponse

from unshard.api.verbs import Answer
from unshard.errors import ClusterError, UnshardError

SIGNED = frozenset({"binlog", "shard-ddl-lock-unlock", "validation"})
"""Verbs whose caller stands in the records that they write."""

_STATUS = {
    "CLUSTER-053": 401,
    "CLUSTER-054": 403,
    "CLUSTER-055": 413,
    "CLUSTER-056": 408,
    "CLUSTER-057": 504,
    "CLUSTER-058": 503,
    "CLUSTER-059": 422,
    "CLUSTER-060": 403,
    "CLUSTER-087": 504,
}


def refusal(error: UnshardError) -> JSONResponse:
    """Return the answer for an error: 400, or the status of its code.

    `result` and `msg` are for ctl, the other keys for DM's REST.
    """
    status = _STATUS.get(error.code, 400)
    body = {"result": False, "msg": str(error), "error_code": error.code, "error_msg": str(error)}
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status in (408, 413):
        headers["Connection"] = "close"
    return JSONResponse(body, status, headers)


def listed(items: Iterable[Any]) -> dict[str, Any]:
    """Return a list in DM's form: `total` and `data`."""
    data = list(items)
    return {"total": len(data), "data": data}


def readable(form: Callable[[], dict[str, Any]], name: dict[str, str]) -> dict[str, Any]:
    """Return an item of a list; its name and the error where its stored file can't be read."""
    try:
        return form()
    except ClusterError as error:
        if error.code != "CLUSTER-091":
            raise
        return {**name, "error_msg": str(error)}


def done(answer: Answer) -> Answer:
    """Return the answer of a verb that succeeded.

    Raises ClusterError CLUSTER-016 with the messages of one that failed.
    """
    if answer["result"]:
        return answer
    told = [
        answer["msg"],
        *(f"{one['source']}: {one['msg']}" for one in answer.get("sources", ()) if not one["result"]),
    ]
    raise ClusterError("CLUSTER-016", cause="\n       ".join(filter(None, told)))
