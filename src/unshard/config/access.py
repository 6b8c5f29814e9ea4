"""Access to the API of a process: roles, and the file of tokens.

The file has the callers and their roles. It holds only hashes, so reading it gives nobody access.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import date
from enum import StrEnum

from pydantic import Field, field_validator, model_validator

from unshard.config.section import Section

_HASH = re.compile(r"[0-9a-f]{64}\Z")
_PREFIX = "unshard_"


class Role(StrEnum):
    """The role of a caller.

    Viewer, operator and admin form a ladder: each may do what the ones before it may. The two roles of the cluster's
    own links are separate: a worker may only send heartbeats; a master may call workers and forward requests of others.
    """

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"
    MASTER = "master"

    def covers(self, needed: Role) -> bool:
        """Return whether a caller in this role may do what `needed` may."""
        if self in _HUMAN and needed in _HUMAN:
            return _HUMAN.index(self) >= _HUMAN.index(needed)
        return self is needed


_HUMAN = (Role.VIEWER, Role.OPERATOR, Role.ADMIN)


class TokenEntry(Section):
    """One caller, identified by a token's hash or by the common name of its client certificate."""

    name: str = Field(min_length=1, max_length=64, description="Who it is; the audit log shows it.")
    role: Role = Field(description="viewer, operator, admin, worker or master.")
    sha256: str = Field(default="", description="SHA-256 of the token, in hex; `unshard ctl token` makes both.")
    certificate: str = Field(default="", description="Common name of the client certificate, in place of a token.")
    expires: date | None = Field(default=None, description="Last day that it counts, in UTC.")

    @field_validator("sha256")
    @classmethod
    def _digest(cls, text: str) -> str:
        if text and not _HASH.match(text.lower()):
            raise ValueError("write the SHA-256 of the token as 64 hex digits, never the token itself")
        return text.lower()

    @model_validator(mode="after")
    def _one(self) -> TokenEntry:
        if bool(self.sha256) == bool(self.certificate):
            raise ValueError("write either sha256 or certificate")
        return self


class AccessFile(Section):
    """The callers and their roles."""

    tokens: tuple[TokenEntry, ...] = Field(min_length=1, description="The callers.")

    @model_validator(mode="after")
    def _apart(self) -> AccessFile:
        for what in ("name", "sha256", "certificate"):
            given = [value for entry in self.tokens if (value := getattr(entry, what))]
            if len(set(given)) < len(given):
                raise ValueError(f"two of the callers have the same {what}")
        return self


def new_token() -> tuple[str, str]:
    """Return a new token of 256 random bits, and its hash for the file. A secret that long needs no slow hash."""
    token = _PREFIX + secrets.token_urlsafe(32)
    return token, token_hash(token)


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token in hex, the form in which it is stored."""
    return hashlib.sha256(token.encode()).hexdigest()
