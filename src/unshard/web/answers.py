"""How a request is answered that an error ended: DM's two forms in one, never with what the caller had sent."""

from __future__ import annotations

from starlette.responses import JSONResponse

from unshard.errors import UnshardError

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
    """The answer for an error: 400, or the status that its code has. `result` and `msg` are for ctl, the others for
    the REST of DM."""
    status = _STATUS.get(error.code, 400)
    body = {"result": False, "msg": str(error), "error_code": error.code, "error_msg": str(error)}
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status in (408, 413):
        headers["Connection"] = "close"
    return JSONResponse(body, status, headers)
