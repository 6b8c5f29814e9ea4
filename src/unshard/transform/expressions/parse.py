"""Parses the text of an expression into a tree, by the grammar that MariaDB and MySQL share.

Text whose meaning depends on `sql_mode` or on the flavour of the server is refused: `||`, `!`, "double quotes",
backslashes, and chained comparisons without parentheses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

COMPARISONS = frozenset({"=", "<=>", "<>", "!=", "<", "<=", ">", ">="})
_TOKEN = re.compile(
    r"""\s+
    | (?P<bytes>[xX]'(?:[0-9a-fA-F]{2})*')
    | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.$])
    | (?P<text>'(?:[^'\\]|'')*')
    | (?P<name>[^\W\d][\w$]*|`(?:[^`]|``)+`)
    | (?P<sign><=>|<>|!=|<=|>=|&&|--|\|\||[=<>+\-*/%(),.!"'@?:|&^~#;])
    """,
    re.VERBOSE,
)
_ODD = {
    "||": "it means OR or joins texts, as sql_mode says; write OR",
    "!": "write NOT",
    '"': "it quotes a text or a name, as sql_mode says; write 'text', or `name`",
    "'": "a text needs its closing quote, and no backslash in it: what that means depends on sql_mode",
    "--": "it may begin a comment; put a blank between the signs",
    ".": "write the column alone: a rule is for one table",
    "@": "variables of a session have no value here",
}
_RESERVED = frozenset(
    [
        "and",
        "between",
        "binary",
        "case",
        "collate",
        "div",
        "else",
        "end",
        "escape",
        "exists",
        "false",
        "in",
        "interval",
        "is",
        "like",
        "mod",
        "not",
        "null",
        "or",
        "regexp",
        "rlike",
        "select",
        "sounds",
        "then",
        "true",
        "unknown",
        "when",
        "xor",
    ]
)
_DEEPEST = 60


class Refused(Exception):
    """Raised for an expression that isn't evaluated: names the part, the reason, and what could be written instead."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(part, why)
        self.part, self.why = part, why

    def __str__(self) -> str:
        return f"`{self.part}`: {self.why}"


@dataclass(frozen=True, slots=True)
class Node:
    """A node of an expression's tree.

    `op` is `column`, `number`, `text`, `bytes`, `null`, an operator, or a function's name. `value` is the name, digits,
    text or collation; `text` is the part of the expression as it was written.
    """

    op: str
    args: tuple[Node, ...] = ()
    value: str = ""
    text: str = ""


def parse(text: str) -> Node:
    """Parse the whole text as one expression. Raises Refused."""
    return _Parser(text).whole()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """A sign, or a word in lower case; "" for a quoted token."""
        return self.text.lower() if self.kind == "sign" or (self.kind == "name" and self.text[0] != "`") else ""


def _tokens(text: str) -> list[_Token]:
    found, place = [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise Refused(text[place : place + 20], "this can't be read; write names, numbers, 'texts' and operators")
        if match.lastgroup:
            token = _Token(match.lastgroup, match.group(), match.start(), match.end())
            if token.word in _ODD:
                raise Refused(text[place : place + 20], _ODD[token.word])
            found.append(token)
        place = match.end()
    return [*found, _Token("end", "", len(text), len(text))]


def _name(text: str) -> str:
    return text[1:-1].replace("``", "`") if text[0] == "`" else text


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._tokens, self._at, self._depth = text, _tokens(text), 0, 0

    def whole(self) -> Node:
        if self._now.kind == "end":
            raise Refused("", "the expression is empty")
        found = self._or()
        if self._now.kind != "end":
            raise self._unexpected()
        return found

    @property
    def _now(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *words: str) -> str:
        """Return the next word or sign if it is one of these, and move past it; else ""."""
        if self._now.word and self._now.word in words:
            self._at += 1
            return self._tokens[self._at - 1].word
        return ""

    def _need(self, word: str) -> None:
        if not self._take(word):
            raise self._unexpected(f"; {word.upper()} is missing before it")

    def _unexpected(self, more: str = "") -> Refused:
        part = self._text[self._now.start :][:30] or "the end"
        return Refused(part, f"not expected here{more}; only operators and functions of the list are known")

    def _node(self, begin: int, op: str, *args: Node, value: str = "") -> Node:
        return Node(op, args, value, self._text[self._tokens[begin].start : self._tokens[self._at - 1].end])

    def _or(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise Refused(self._text[:30], "nested too deeply; write several rules")
        begin, parts = self._at, [self._and()]
        while self._take("or"):
            parts.append(self._and())
        found = self._node(begin, "or", *parts) if len(parts) > 1 else parts[0]
        if self._now.word == "xor":
            raise Refused(self._now.text, "write (a AND NOT b) OR (NOT a AND b)")
        self._depth -= 1
        return found

    def _and(self) -> Node:
        begin, parts = self._at, [self._not()]
        while self._take("and", "&&"):
            parts.append(self._not())
        return self._node(begin, "and", *parts) if len(parts) > 1 else parts[0]

    def _not(self) -> Node:
        begin, count = self._at, 0
        while self._take("not"):
            count += 1
        if count and self._now.word != "(":
            # HIGH_NOT_PRECEDENCE binds NOT to what is next
            inner = self._predicate()
            if inner.op in (*COMPARISONS, "between", "in", "like", "is null", "is true", "is false", "not"):
                raise Refused(inner.text, "put it in parentheses: how far NOT reaches depends on sql_mode")
        else:
            inner = self._predicate()
            if count and inner.text[:1] == "(" and inner.op != "paren":
                raise Refused(inner.text, "put all that NOT is for in one pair of parentheses")
        return self._node(begin, "not", inner) if count % 2 else self._twice(begin, inner, count)

    def _twice(self, begin: int, inner: Node, count: int) -> Node:
        return self._node(begin, "not", self._node(begin, "not", inner)) if count else inner

    def _predicate(self) -> Node:
        begin, left = self._at, self._sum()
        found = self._test(begin, left)
        if found is not left and (self._now.word in COMPARISONS or self._now.word in ("is", "in", "like", "between")):
            raise Refused(self._now.text, "put parentheses: which of two comparisons comes first is easily mistaken")
        return found

    def _test(self, begin: int, left: Node) -> Node:
        if sign := self._take(*COMPARISONS):
            return self._node(begin, "<>" if sign == "!=" else sign, left, self._sum())
        if self._take("is"):
            inverse = bool(self._take("not"))
            what = self._take("null", "unknown", "true", "false")
            if not what:
                raise self._unexpected()
            found = self._node(begin, "is null" if what in ("null", "unknown") else f"is {what}", left)
            return self._node(begin, "not", found) if inverse else found
        inverse = bool(self._take("not"))
        if self._take("in"):
            self._need("(")
            found = self._node(begin, "in", left, *self._list())
        elif self._take("between"):
            low = self._sum()
            self._need("and")
            found = self._node(begin, "between", left, low, self._sum())
        elif self._take("like"):
            pattern = self._primary()
            found = self._node(begin, "like", left, pattern, *([self._primary()] if self._take("escape") else []))
        elif inverse:
            raise self._unexpected()
        else:
            return left
        return self._node(begin, "not", found) if inverse else found

    def _sum(self) -> Node:
        begin, found = self._at, self._product()
        while sign := self._take("+", "-"):
            found = self._chained(begin, sign, found, self._product())
        return found

    def _product(self) -> Node:
        begin, found = self._at, self._signed()
        while sign := self._take("*", "/", "%", "div", "mod"):
            found = self._chained(begin, "%" if sign == "mod" else sign, found, self._signed())
        return found

    def _chained(self, begin: int, sign: str, left: Node, right: Node) -> Node:
        if self._at - begin > 4 * _DEEPEST:
            raise Refused(left.text[:30], "too long for one calculation")
        return self._node(begin, sign, left, right)

    def _signed(self) -> Node:
        begin, negative = self._at, False
        while sign := self._take("-", "+"):
            negative ^= sign == "-"
        found = self._collated()
        return self._node(begin, "neg", found) if negative else found

    def _collated(self) -> Node:
        begin, found = self._at, self._primary()
        if self._take("collate"):
            if self._now.kind != "name":
                raise self._unexpected()
            self._at += 1
            found = self._node(begin, "collate", found, value=self._tokens[self._at - 1].text.lower())
        return found

    def _primary(self) -> Node:
        begin, token = self._at, self._now
        self._at += 1
        if token.kind == "number":
            return self._node(begin, "number", value=token.text)
        if token.kind == "text":
            return self._node(begin, "text", value=token.text[1:-1].replace("''", "'"))
        if token.kind == "bytes":
            return self._node(begin, "bytes", value=token.text[2:-1])
        if token.word == "(":
            inner = self._or()
            self._need(")")
            return self._node(begin, "paren", inner)
        if token.word == "case":
            return self._case(begin)
        if token.word in ("true", "false"):
            return self._node(begin, "number", value="1" if token.word == "true" else "0")
        if token.word == "null":
            return self._node(begin, "null")
        if token.kind == "name" and (self._now.word == "(" and token.word):
            self._at += 1
            return self._node(begin, token.word, *([] if self._take(")") else self._list()))
        if token.kind != "name" or token.word in _RESERVED:
            self._at -= 1
            raise self._unexpected()
        return self._node(begin, "column", value=_name(token.text))

    def _list(self) -> list[Node]:
        found = [self._or()]
        while self._take(","):
            found.append(self._or())
        self._need(")")
        return found

    def _case(self, begin: int) -> Node:
        """Return `CASE WHEN a THEN b … ELSE c END` as (a, b, …, c)."""
        args: list[Node] = []
        while self._take("when"):
            args.append(self._or())
            self._need("then")
            args.append(self._or())
        if not args:
            raise self._unexpected("; write CASE WHEN condition THEN value")
        self._need("else")
        args.append(self._or())
        self._need("end")
        return self._node(begin, "case", *args)
