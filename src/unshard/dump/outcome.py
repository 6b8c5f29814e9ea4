"""How the work of a Spark task comes back to the driver: a value or one of our errors, as JSON bytes.

An error that travels as a value reaches the user whole, and Spark does not repeat a task that can only fail again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from unshard.errors import UnshardError, error_from_dict


def enclose(work: Callable[[], Any]) -> bytes:
    """Run `work` inside a task; its JSON-ready value, or the UnshardError that it raised, as bytes."""
    try:
        return json.dumps({"value": work()}).encode()
    except UnshardError as error:
        return json.dumps({"error": error.to_dict()}, default=str).encode()


def disclose(outcome: bytes) -> Any:
    """On the driver: the value that `enclose` wrote. Raises the error if the task met one."""
    form = json.loads(outcome)
    if "error" in form:
        raise error_from_dict(form["error"])
    return form["value"]
