r"""Backslashes in the texts of another tool's SQL file: whether they begin escapes.

| written by | `it's` | `C:\temp` | a line feed, a double quote |
|---|---|---|---|
| dumpling, mydumper | `it\'s` | `C:\\temp` | `\n`, `\"` |
| dumpling with `--escape-backslash=false` | `it''s` | `C:\temp` | as they are |

Nothing in a dump names the form. Both tools escape the same seven bytes (dumpling's export/sql_type.go,
mysql_real_escape_string of MySQL's client library), so a text that has one of them as it is, or a backslash in front of
any other byte of ASCII, was not escaped; mydumper also escapes bytes above ASCII that do not belong to a character of
its session. A file without a backslash means the same in both forms.
"""

from __future__ import annotations

import re

from unshard.errors import LoadError, Where
from unshard.load.file_text import Bytes
from unshard.load.sql_dump import COMMENT

_BODY = rb"(?:[^'\"\\\0\n\r\x1a]++|\\[0nrZ'\"\\\x80-\xff])*+"
_END = rb"(?=[\s,);*]|\Z)"
"""A look ahead for the bytes that may stand behind the closing quote of a text."""
_ESCAPED = re.compile(
    rb"(?:[^'\"`/#\-]++|'%s'%s|\"%s\"%s|`[^`]*+`|%s|[-/#]){1,4096}" % (_BODY, _END, _BODY, _END, COMMENT), re.DOTALL
)
_ESCAPED_BODY = re.compile(_BODY)
_PLAIN = re.compile(rb"(?:[^'`/#\-]++|'[^']*+'(?:%s|(?='))|`[^`]*+`|%s|[-/#]){1,4096}" % (_END, COMMENT), re.DOTALL)
_PLAIN_BODY = re.compile(rb"[^']*+")
_PLAIN_TEXT = re.compile(rb"%s|`[^`]*+`|('[^']*+')" % COMMENT, re.DOTALL)
_BY_BACKSLASHES = "by backslashes, as dumpling and mydumper do it"
_BY_QUOTES = "as `--escape-backslash=false` in the task's file says"


def escaped(data: Bytes, escape_backslash: bool | None, where: Where) -> Bytes:
    """Return an SQL file's bytes with backslashes that begin escapes, whatever the file's own form is.

    `escape_backslash`: the file's form, True if its backslashes begin escapes. None: nobody has said it; the tools'
    usual form is taken, unless the file contradicts it. The same for the same file, which checkpoints rely on.

    Raises LoadError LOAD-029 for a text that contradicts the form. A file that ends inside a text is returned.
    """
    if escape_backslash or data.find(b"\\") < 0:
        return data
    if escape_backslash is None:
        _check(data, _ESCAPED, _ESCAPED_BODY, _BY_BACKSLASHES, where)
        return data
    _check(data, _PLAIN, _PLAIN_BODY, _BY_QUOTES, where)
    return _PLAIN_TEXT.sub(lambda found: found[0].replace(b"\\", b"\\\\") if found[1] else found[0], data)


def _check(data: Bytes, form: re.Pattern[bytes], body: re.Pattern[bytes], name: str, where: Where) -> None:
    position = 0
    while found := form.match(data, position):
        position = found.end()
    text = body.match(data, position + 1)
    if text is None or text.end() + 1 >= len(data) or data[position] == ord("`"):
        return  # the end of the file, or a file that ends too early
    at = text.end()
    fault = f"a backslash before {_shown(data[at + 1])}" if data[at] == ord("\\") else f"{_shown(data[at])} alone"
    raise LoadError("LOAD-029", where, values={"form": name, "fault": fault, "byte": at})


def _shown(byte: int) -> str:
    return f"`{chr(byte)}`" if 0x20 < byte < 0x7F else f"the byte 0x{byte:02X}"
