"""Secrets by reference: what the user wrote in place of one, and the secret itself."""

from __future__ import annotations

import os
from pathlib import Path

from unshard.errors import ConfigError


def read_secret(reference: str) -> str:
    """The secret that `env:NAME`, `file:PATH` or a plain text stands for, as it is now.

    Raises ConfigError CONFIG-004 when it can't be read.
    """
    kind, _, name = reference.partition(":")
    if kind == "env" and name:
        value = os.environ.get(name)
        if value is None:
            raise ConfigError("CONFIG-004", cause="no such variable", values={"reference": reference})
        return value
    if kind == "file" and name:
        try:
            return Path(name).read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            fault = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise ConfigError("CONFIG-004", cause=fault or "", values={"reference": reference}) from None
    return reference
