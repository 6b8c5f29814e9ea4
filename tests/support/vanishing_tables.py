"""A table that somebody drops or renames at the worst moment: right before a statement that needs it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pytest


@dataclass
class Vanishing:
    """Does `act` once, before the first statement that `module` sends by its `function` and that holds `words`."""

    words: str
    act: Callable[[], None]
    done: bool = False

    def before(self, monkeypatch: pytest.MonkeyPatch, module: ModuleType, function: str) -> Vanishing:
        real = getattr(module, function)

        def asked(connection: Any, statement: str, *values: Any) -> Any:
            if self.words in statement and not self.done:
                self.done = True
                self.act()
            return real(connection, statement, *values)

        monkeypatch.setattr(module, function, asked)
        return self
