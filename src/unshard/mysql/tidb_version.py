"""TiDB's own version, in the text that a server greets with."""

from __future__ import annotations

import re

_VERSION = re.compile(r"-TiDB-v?(\d+)\.(\d+)\.(\d+)", re.IGNORECASE)


def tidb_version(version_text: str) -> tuple[int, int, int] | None:
    """TiDB's own version in the text of `VERSION()` (`8.0.11-TiDB-v7.5.4`); None for a text without one."""
    found = _VERSION.search(version_text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None
