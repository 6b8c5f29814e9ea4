"""The explanation of a YAML syntax error: the place, the key, the line with a mark under it, and what to write instead.

YAML's parser reports where it could not continue, which is often a line after the mistake, and in the terms of its
grammar. A value that may be a secret is never shown, so the parser's own snippet of the text is not used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import yaml

_KEY = re.compile(r"^(\s*(?:-\s+)*)([\"']?)(\w[\w.-]*)\2\s*:(?=\s|$)\s*(?P<value>[^#\s].*)?")
_NEARLY_A_KEY = re.compile(r"^(\s*-?\s*)(\w[\w.-]*)(?=\s*[:=]|\s*$)")
_SECRET = re.compile(r"p\w*w\w*d|pass\w*|secret|token|session|security|extra-args|\bconf\b|sha256", re.IGNORECASE)
_SHOWN_AT_MOST = 100
_BELOW = "\n       "
_INDENT = "indent with blanks, by two more for each level, and all keys of a section alike"


@dataclass(frozen=True, slots=True)
class _Fault:
    """The parser's error `problem`, and where it stopped (`line`, `column`, from 0).

    `began` is where the construct that it was reading began. `quote` is where a quoted value began that ends on this
    line, if it began on an earlier one.
    """

    lines: tuple[str, ...]
    problem: str
    line: int
    column: int
    began: tuple[int, int] | None
    quote: tuple[int, int] | None

    @property
    def text(self) -> str:
        return self.of(self.line)

    @property
    def first(self) -> str:
        """The line on which the construct that the parser was reading began."""
        return self.of(self.began[0]) if self.began is not None else ""

    def above(self) -> str:
        """Return the nearest line above that is neither empty nor a comment."""
        lines = (self.of(line) for line in range(self.line - 1, -1, -1))
        return next((text for text in lines if text.strip() and not text.lstrip().startswith("#")), "")

    def of(self, line: int) -> str:
        return self.lines[line] if line < len(self.lines) else ""


Found = tuple[int, int, str]
"""Line and column of the mistake, from 0, and its description."""


def explained(text: str, error: yaml.YAMLError) -> str:
    """Describe the mistake that an error of `yaml.compose` on that text is due to, in a few lines."""
    fault = _fault(text, error)
    found = next(found for rule in _RULES if (found := rule(fault)) is not None)
    line, column, meant = found
    key = _key_at(fault.lines, line)
    place = f"line {line + 1}, column {column + 1}{f', at {key}' if key else ''}: {meant}"
    shown = _shown(fault.lines, line, column)
    return f"{place}{_BELOW}{shown}" if shown else place


def _fault(text: str, error: yaml.YAMLError) -> _Fault:
    lines = tuple(line.rstrip("\r") for line in text.split("\n"))
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position].split("\n")
        return _Fault(lines, "unacceptable", len(before) - 1, len(before[-1]), None, None)
    assert isinstance(error, yaml.MarkedYAMLError)
    mark, context = error.problem_mark or error.context_mark, error.context_mark
    began = (context.line, context.column) if context is not None else None
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    words = f"{error.context or ''}: {error.problem or ''}"
    return _Fault(lines, words, line, column, began, _quote_before(text, line))


def _quote_before(text: str, line: int) -> tuple[int, int] | None:
    """Return the begin of a quoted value that ends on that line and began on an earlier one."""
    try:
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            begin, end = token.start_mark, token.end_mark
            if isinstance(token, yaml.ScalarToken) and token.style in ("'", '"') and begin.line < line == end.line:
                return begin.line, begin.column
    except yaml.YAMLError:
        pass
    return None


def _control(fault: _Fault) -> Found | None:
    if fault.problem != "unacceptable":
        return None
    return fault.line, fault.column, "a control character, which no text file has; take it out"


def _quote(fault: _Fault) -> Found | None:
    at = fault.quote
    if "while scanning a quoted scalar: found unexpected" in fault.problem:
        at = fault.began
    if at is None:
        return None
    return *at, "the quote that begins here is not closed on its line; write the same quote behind the value"


def _escape(fault: _Fault) -> Found | None:
    if "while scanning a double-quoted scalar" not in fault.problem:
        return None
    meant = r"in double quotes a \ begins an escape; write \\ for each \, or put the value in single quotes"
    return fault.line, fault.column, meant


def _conflict(fault: _Fault) -> Found | None:
    for line, text in enumerate(fault.lines):
        if text.startswith(("<<<<<<< ", ">>>>>>> ")) or text == "=======":
            return line, 0, "the mark of a merge conflict; keep one of the two versions and take the marks out"
    return None


def _tab(fault: _Fault) -> Found | None:
    if "\t" not in fault.text[: fault.column + 1]:
        return None
    column = fault.text.index("\t")
    if not fault.text[:column].strip():
        return fault.line, column, f"a tab; {_INDENT}"
    return fault.line, column, "a tab; write a blank in its place"


def _blank(fault: _Fault) -> Found | None:
    """Find characters that look like blanks but are not, as web pages and word processors have them."""
    for line in dict.fromkeys((fault.began[0] if fault.began is not None else fault.line, fault.line)):
        found = re.search("[\u00a0\u2007\u202f\u3000\u200b]", fault.of(line))
        if found is not None:
            return line, found.start(), "a no-break space, copied from a web page perhaps; write a plain blank"
    return None


def _list(fault: _Fault) -> Found | None:
    for kind, opens, closes in (("sequence", "[", "]"), ("mapping", "{", "}")):
        if f"while parsing a flow {kind}" in fault.problem and fault.began is not None:
            if fault.line != fault.began[0]:
                meant = (
                    f"the {opens} that begins here is not closed; write {closes} at its end, or put the whole value in "
                    "quotes where it is one text"
                )
                return *fault.began, meant
            meant = f"a comma between two values is missing, or {closes} at their end, or quotes around a text"
            return fault.line, fault.column, meant
    return None


def _sign(fault: _Fault) -> Found | None:
    """Find a value whose first character has a special meaning in YAML."""
    column = fault.column
    if "while scanning an alias" in fault.problem or "while scanning an anchor" in fault.problem:
        line, column = fault.began or (fault.line, column)
    elif "cannot start any token" in fault.problem or "found undefined alias" in fault.problem:
        line = fault.line
    elif "mapping keys are not allowed here" in fault.problem or "while scanning a block scalar" in fault.problem:
        line, column = fault.began or (fault.line, column)
    else:
        return None
    sign = fault.of(line)[column : column + 1]
    if "found undefined alias" in fault.problem:
        sign = "*"
    example = "" if _SECRET.search(fault.of(line)) else ', as "shop_*"' if sign == "*" else ""
    return line, column, f"a value can't begin with {sign} unless it stands in quotes; write it in quotes{example}"


def _no_colon(fault: _Fault) -> Found | None:
    if "could not find expected ':'" not in fault.problem or fault.began is None:
        return None
    line = fault.began[0]
    text = fault.first
    joined = re.match(r"\s*(?:- )?[\w.-]+(:)\S", text)
    if joined is not None:
        return line, joined.end(1), "a blank is missing behind the colon; write `key: value`"
    equals = re.match(r"\s*(?:- )?[\w.-]+\s*(=)", text)
    if equals is not None:
        return line, equals.start(1), "a key is followed by a colon and a blank here, not by =; write `key: value`"
    return line, len(text.rstrip()), "no colon follows the key; write `key: value`, or `key:` above its section"


def _second_colon(fault: _Fault) -> Found | None:
    if "mapping values are not allowed here" not in fault.problem:
        return None
    if ": " in fault.text[: fault.column]:
        return fault.line, fault.column, "a second colon with a blank behind it; put the value in quotes"
    above = fault.above()
    dash = re.match(r"\s*(-)[^\s-]", above)
    if dash is not None:
        line = max(at for at in range(fault.line) if fault.lines[at] == above)
        return line, dash.end(1), "a blank is missing behind the -; write `- key: value`"
    if not _KEY.match(above):
        line = max((at for at in range(fault.line) if fault.lines[at] == above), default=fault.line)
        joined = re.match(r"\s*(?:- )?[\w.-]+(:)\S", above)
        if joined is not None:
            return line, joined.end(1), "a blank is missing behind the colon; write `key: value`"
        return line, len(above.rstrip()), "no colon follows the key; write `key: value`, or `key:` above its section"
    return _indented(fault, above)


def _indented(fault: _Fault, above: str) -> Found:
    here, there = _indent(fault.text), _indent(above)
    meant = f"indented by {here}, and the line above by {there} blanks; {_INDENT}"
    return fault.line, here, meant


def _block(fault: _Fault) -> Found | None:
    if "sequence entries are not allowed here" in fault.problem:
        meant = "a list can't begin behind its key; write [a, b], or each `- value` on a line of its own below the key"
        return fault.line, fault.column, meant
    if "expected <block end>" not in fault.problem:
        return None
    if "'<block mapping start>'" in fault.problem or "block sequence start" in fault.problem:
        return _indented(fault, fault.above())
    if "'-'" in fault.problem or "'<block entry>'" in fault.problem:
        return fault.line, fault.column, "a `-` among keys; indent the list below its key, all its `-` alike"
    if "'<scalar>'" in fault.problem and _before(fault) in ("'", '"'):
        meant = "the value ends with its quote, and more follows; put all of it in one pair of quotes, a ' in '…' twice"
        return fault.line, fault.column, meant
    if re.match(r"\s*-\s", fault.text) is None and re.match(r"\s*-\s", fault.first) is not None:
        return _indented(fault, fault.above())
    return fault.line, fault.column, f"this does not go on what stands above; {_INDENT}"


def _before(fault: _Fault) -> str:
    return fault.text[: fault.column].rstrip()[-1:]


def _documents(fault: _Fault) -> Found | None:
    if "but found another document" in fault.problem or "found unexpected document" in fault.problem:
        line = next((at for at, text in enumerate(fault.lines) if at and text.startswith("---")), fault.line)
        return line, 0, "--- begins another document; a file holds one: put the second into a file of its own"
    if "expected '<document start>'" in fault.problem:
        if fault.lines[0].lstrip().startswith("["):
            return 0, 0, "[name] is TOML; this file is YAML: write `name:` and its keys indented below it"
        return fault.line, fault.column, f"this does not go on what stands above; {_INDENT}"
    return None


def _missing(fault: _Fault) -> Found | None:
    if "did not find expected node content" not in fault.problem and "expected the node content" not in fault.problem:
        return None
    return fault.line, fault.column, "a value is missing here; take the comma out, or write the value"


def _other(fault: _Fault) -> Found:
    return fault.line, fault.column, f"this can't be read as `key: value`; {_INDENT}, and texts with signs in quotes"


_RULES: tuple[Callable[[_Fault], Found | None], ...] = (
    _control, _conflict, _quote, _escape, _tab, _blank, _missing, _list, _sign, _no_colon, _second_colon, _block,
    _documents, _other,
)  # fmt: skip


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _key_at(lines: tuple[str, ...], line: int) -> str:
    """Return the dotted key of that line, judged by indentation; for a line without a key, that of its section."""
    text = lines[line] if line < len(lines) else ""
    own = _KEY.match(text)
    limit = len(own[1]) if own is not None else _indent(text)
    names: list[str] = []
    for above in reversed(lines[:line]):
        found = _KEY.match(above)
        if found is not None and len(found[1]) < limit and not found["value"]:
            limit = len(found[1])
            names.append(found[3])
    nearly = _NEARLY_A_KEY.match(text)
    if own is not None:
        names.insert(0, own[3])
    elif nearly is not None and not _SECRET.search(".".join(names)):
        names.insert(0, nearly[2])
    return ".".join(reversed(names))


def _shown(lines: tuple[str, ...], line: int, column: int) -> str:
    """Return the line with a mark below it. For a secret only its key is shown, and the mark is not moved beyond it."""
    text = lines[line] if line < len(lines) else ""
    if not text.strip() or len(text) > _SHOWN_AT_MOST:
        return ""
    secret = _SECRET.search(text)
    if secret is None and _KEY.match(text) is None and _SECRET.search(_key_at(lines, line)):
        return ""  # the line continues the value of a key above
    shown = text if secret is None else f"{text[: secret.end()]} ******"
    shown = "".join("→" if letter == "\t" else letter if letter.isprintable() else "?" for letter in shown)
    return f"{shown}{_BELOW}{' ' * min(column, len(shown))}^"
