"""Passwords and tokens in texts: what a server, a library or a user put there is replaced before it is shown."""

from __future__ import annotations

import re

_QUOTED = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\""
_CREDENTIALS = (
    re.compile(
        rf"(\bidentified\s+(?:(?:with|via)\s+\S+\s+)?(?:by|as|using)\s+(?:password\s*\(?\s*)?)(?:{_QUOTED})", re.I
    ),
    re.compile(rf"(\bpassword\s*\(\s*)(?:{_QUOTED})", re.I),
    re.compile(rf"(\b(?:password|passwd|secret|token)\b[\"']?\s*[=:]\s*)(?:{_QUOTED}|[^\s,;)}}\"']+)", re.I),
    re.compile(r"(\bauthorization[\"']?\s*[=:]\s*(?:[\"']?bearer\s+)?)[^\s,;)}\"']+", re.I),
    re.compile(r"(\w://[^\s:/@]*:)\S+(?=@)"),  # up to the last @: a password may have an @ or a / in it
)


def without_credentials(text: str) -> str:
    """Return a text with each password and token in it, in a URL too, replaced by `******`."""
    for pattern in _CREDENTIALS:
        text = pattern.sub(r"\1******", text)
    return text
