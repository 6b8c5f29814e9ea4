"""The kinds of binlog events as the kernels distinguish them, by event code (`binlog.events`)."""

from __future__ import annotations

from unshard.binlog.events import BY_CODE, REFUSED
from unshard.kernels.scan import KINDS

KIND_TABLE = bytes(KINDS[BY_CODE[code].kind if code in BY_CODE else REFUSED] for code in range(256))
"""The number of the kind of each of the 256 event codes, one byte each."""
