"""For tests that allow both a value and a refusal, where `pytest.raises` would ask for the refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

E = TypeVar("E", bound=Exception)
P = ParamSpec("P")


def refusal(kind: type[E], work: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> E | None:
    """Return the error of that kind that `work` raises; None if it returns. Other errors pass through."""
    try:
        work(*args, **kwargs)
    except kind as error:
        return error
    return None
