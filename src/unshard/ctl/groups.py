"""How words are told apart: flags of every verb stand anywhere, and a group may mean its `list`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from typer.core import TyperGroup


class GlobalFlags(TyperGroup):
    """A group whose own flags may stand behind the verb too, as in dmctl: `query-status -s shop-01`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, hoisted(args, self.params))


class ListGroup(TyperGroup):
    """A group that means its verb `list` where none of its verbs is named: `shard-ddl-lock TASK`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if named else ["list", *args])


def hoisted(args: Sequence[str], params: Iterable[Any]) -> list[str]:
    """The words with those of `params` (options of a group) put first. Behind `--` nothing is an option."""
    options = {name: param for param in params for name in param.opts if name.startswith("-") and name != "--help"}
    first: list[str] = []
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            rest += [word, *words]
            break
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        option = options.get(name)
        if option is None or (word.startswith("--") and option.is_flag and word != name):
            rest.append(word)
            continue
        first.append(word)
        if word == name and not option.is_flag:
            first += [value] if (value := next(words, None)) is not None else []
    return first + rest
