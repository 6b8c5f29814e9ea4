"""Secrets by reference: a user writes a reference in place of a secret, which is resolved here."""

from __future__ import annotations

import os
from pathlib import Path

from unshard.config.encryption import PREFIX, decrypt, decrypt_dm, encrypt, has_key, is_of_dm
from unshard.errors import ConfigError

HIDDEN = "******"
"""The text that is shown in place of a secret."""


def read_secret(reference: str) -> str:
    """Return the secret for `env:NAME`, `file:PATH`, an encrypted or a plain text, as it is now.

    Raises ConfigError CONFIG-004 if it can't be read, CONFIG-023, 024 or 028 if it can't be decrypted.
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
    """Return the form in which a secret is stored: a plain one encrypted if there is a key, anything else unchanged."""
    plain = reference and not reference.startswith(("env:", "file:", PREFIX)) and not is_of_dm(reference)
    return encrypt(reference) if plain and has_key() else reference
