"""Rules of a table filter, as in dumpling's `--filter`.

They are `shop.order_*`, `!shop.tmp_*`, `/^shop_[0-9]+$/.*`, `"a.b"."c"`, `@file`:

| in a name | meaning |
|---|---|
| letters, digits, `_`, `$`, anything beyond ASCII | itself |
| `*`, `?` | any number of characters; one |
| `[a-z]`, `[!a-z]` | one of a set; one outside of it |
| backslash and a sign | that sign |
| "…" or `…` | the whole name, with quotes doubled |
| /…/ | a regular expression that is found in the name |

A rule is schema, dot, table; `!` before it leaves out what it matches. The last rule that matches a table decides;
a table that none matches is left out. `@FILE` stands for the lines of a file, where `#` begins a comment. Rules in
one value are separated by commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PIECE = re.compile(
    r"""/(?P<regex>(?:\\.|[^/\\])+)/|"(?P<double>(?:""|[^"])+)"|`(?P<back>(?:``|[^`])+)`"""
    r"""|(?P<wild>(?:\[!?(?:\\[^0-9A-Za-z]|[^\\\]])+\]|\\[^0-9A-Za-z]|[*?$\w])+)""",
    re.DOTALL,
)
_WILD = re.compile(r"\[(?P<outside>!?)(?P<set>(?:\\.|[^\\\]])+)\]|\\(?P<escaped>.)|(?P<plain>.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TableRule:
    """One rule of a table filter, as regular expressions that are searched in the names.

    `taken` is False for a rule with `!`.
    """

    taken: bool
    schema: str
    table: str


def parse_rule(text: str) -> TableRule:
    """Parse one rule. Raises ValueError that says what is wrong with it."""
    body = text.removeprefix("!")
    schema, at = _name(body, 0)
    if body[at : at + 1] != ".":
        raise ValueError("--filter needs schema.table in each rule, such as shop.*; quote a name with other signs")
    table, end = _name(body, at + 1)
    if end < len(body):
        raise ValueError("--filter has signs behind a table; quote a name with signs beyond letters and digits")
    return TableRule(not text.startswith("!"), schema, table)


def read_rules(value: str) -> tuple[str, ...]:
    """Return the rules of one `--filter`, with files read and each rule checked. Raises ValueError."""
    found: list[str] = []
    for text in _between_commas(value):
        found += _lines(text[1:]) if text.startswith("@") else [text]
    for rule in found:
        parse_rule(rule)
    if not found:
        raise ValueError("--filter has no rule; write schema.table")
    return tuple(found)


def _lines(file: str) -> list[str]:
    try:
        lines = [line.strip(" \t") for line in Path(file).read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"--filter names a file that can't be read: {type(error).__name__}") from None
    if any(line.startswith("@") for line in lines):
        raise ValueError("--filter names a file that names another one with @; write its rules there")
    return [line for line in lines if line and not line.startswith("#")]


def _between_commas(value: str) -> Iterator[str]:
    """Yield the parts of a list. Commas in quotes, sets and regular expressions do not separate parts."""
    start = at = 0
    while at < len(value):
        piece = None if value[start] == "@" else _PIECE.match(value, at)
        if piece is not None:
            at = piece.end()
        else:
            if value[at] == ",":
                yield value[start:at].strip(" \t")
                start = at + 1
            at += 1
    yield value[start:].strip(" \t")


def _name(text: str, start: int) -> tuple[str, int]:
    piece = _PIECE.match(text, start)
    if piece is None:
        raise ValueError("--filter has a rule whose name is missing or not closed; write schema.table, such as shop.*")
    if piece["regex"]:
        try:
            re.compile(piece["regex"])
        except re.error as error:
            raise ValueError(f"--filter has no regular expression between its slashes: {error}") from None
        return piece["regex"], piece.end()
    if piece["wild"]:
        return rf"(?s)\A{''.join(map(_expression, _WILD.finditer(piece['wild'])))}\Z", piece.end()
    name = piece["double"].replace('""', '"') if piece["double"] else piece["back"].replace("``", "`")
    return rf"\A{re.escape(name)}\Z", piece.end()


def _expression(part: re.Match[str]) -> str:
    if part["set"]:
        inside = part["set"].replace("[", r"\[")
        inside = f"\\{inside}" if inside.startswith("^") else inside
        try:
            re.compile(f"[{inside}]")
        except re.error as error:
            raise ValueError(f"--filter has a set that can't be: {error}") from None
        return f"[{'^' if part['outside'] else ''}{inside}]"
    if part["escaped"]:
        return re.escape(part["escaped"])
    return {"*": ".*", "?": "."}.get(part["plain"], re.escape(part["plain"]))
