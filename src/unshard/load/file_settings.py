"""The SET statements before the rows of an SQL file, and what they say of the file's values.

| tool | text in the file | TIMESTAMP in the file | SET statements |
|---|---|---|---|
| Unshard | UTF-8 | UTC | `NAMES utf8mb4`, `TIME_ZONE='+00:00'` |
| mydumper | the bytes of its column's character set | UTC | `NAMES binary`, `TIME_ZONE='+00:00'` |
| mydumper `--skip-tz-utc` | the same | the server's zone | `NAMES binary` |
| dumpling | UTF-8 | the zone of its session, mostly the server's | `NAMES binary` all the same |

The last two differ by the quotes of their texts only: `"` of mydumper, `'` of dumpling (mydumper.c; dumpling's
export/sql_type.go and export/ir_impl.go).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from unshard.load.file_text import Bytes

_SET = re.compile(rb"(?:/\*!\d*\s*)?SET\s+(.*?)(?:\*/)?\s*;\Z", re.DOTALL | re.IGNORECASE)
_NAMES = re.compile(rb"(?:NAMES|CHARACTER\s+SET)\b", re.IGNORECASE)
_BINARY = re.compile(rb"(?:NAMES|CHARACTER\s+SET)\s+['\"]?BINARY\b", re.IGNORECASE)
_ZONE = re.compile(rb"(?:@@|SESSION\s+|@@SESSION\.)?\s*TIME_ZONE\b", re.IGNORECASE)
_KEYS = re.compile(rb"FOREIGN_KEY_CHECKS\b", re.IGNORECASE)
_FIRST_QUOTE = re.compile(rb"(?:[^'\"`]++|`[^`]*+`)*(['\"])")


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The meaning of an SQL file's values, and the statements that a session needs to read them so.

    Args:
        statements: the SET statements to run before the rows, in a session with utf8mb4 and UTC.
        of_bytes: text has the bytes of its column's character set in the source, and is to be written as bytes.
        zoned: the file says in which time zone its values of TIMESTAMP are.
    """

    statements: tuple[bytes, ...] = ()
    of_bytes: bool = False
    zoned: bool = True


def is_setting(sql: bytes) -> bool:
    """Return whether a statement is a SET."""
    return _SET.match(sql) is not None


def file_settings(sets: Sequence[bytes], data: Bytes, first: int) -> FileSettings:
    """Return what the SET statements of a file, and its rows from the offset `first` on, say of its values.

    Only character set and time zone are kept, which change the meaning of values; the load sets all others.
    """
    texts = [found[1].strip() for found in map(_SET.match, sets) if found is not None]
    kept = [text for text in texts if _NAMES.match(text) or _ZONE.match(text)]
    of_bytes = any(map(_BINARY.match, kept))
    if of_bytes and _is_dumpling(texts, _FIRST_QUOTE.match(data, first)):
        kept, of_bytes = [], False
    zoned = any(map(_ZONE.match, kept))
    return FileSettings(tuple(b"SET " + text for text in kept), of_bytes, zoned)


def _is_dumpling(texts: Sequence[bytes], quote: re.Match[bytes] | None) -> bool:
    plain = all(_BINARY.match(text) or _KEYS.match(text) for text in texts)
    return plain and quote is not None and quote[1] == b"'"
