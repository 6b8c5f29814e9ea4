"""Secrets by reference: what the user wrote in place of one, and the secret itself."""

from __future__ import annotations

import os
from pathlib import Path

from unshard.config.cipher import PREFIX, decrypt, decrypt_dm, encrypt, has_key, is_of_dm
from unshard.errors import ConfigError

HIDDEN = "******"
"""What is shown in place of a secret."""


def read_secret(reference: str) -> str:
    """The secret that `env:NAME`, `file:PATH`, an encrypted or a plain text stands for, as it is now.

    Raises ConfigError CONFIG-004 when it can't be read, CONFIG-023, 024 or 028 when it can't be decrypted.
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
    if reference.startswith(PREFIX):
        return decrypt(reference)
    return decrypt_dm(reference) if is_of_dm(reference) else reference


def sealed(reference: str) -> str:
    """What is to be stored in place of a secret: a plain one encrypted where there is a key, all else as it is."""
    plain = reference and not reference.startswith(("env:", "file:", PREFIX)) and not is_of_dm(reference)
    return encrypt(reference) if plain and has_key() else reference
