"""Words of a command line made into what requests carry: names, given as such or by their file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from unshard.config.document import parse_document, text_of
from unshard.errors import ConfigError, Where

_FILE_ENDINGS = (".yaml", ".yml")


def task_name(word: str) -> str:
    """A task's name, or that in its file. The rest of the file isn't looked at: a bad one can still be stopped.

    Raises ConfigError CONFIG-002, CONFIG-003.
    """
    return _named(word, "name")


def source_id(word: str) -> str:
    """A source's id, or that in its file. Raises as `task_name`."""
    return _named(word, "source-id")


def source_ids(words: Iterable[str]) -> tuple[str, ...]:
    """The sources that are meant, each once."""
    return tuple(dict.fromkeys(source_id(word) for word in apart(words)))


def source_files(words: Iterable[str]) -> list[str]:
    """Those of the words that are files of sources."""
    return [word for word in apart(words) if is_file(word)]


def apart(words: Iterable[str]) -> list[str]:
    """`a,b` is two words; but not where it is a file's name."""
    parts = []
    for word in words:
        parts += [word] if Path(word).is_file() else [part for part in word.split(",") if part]
    return parts


def is_file(word: str) -> bool:
    """Whether a word means a file, there or not, and no name."""
    return word.endswith(_FILE_ENDINGS) or Path(word).is_file()


def _named(word: str, key: str) -> str:
    if not is_file(word):
        return word
    name = parse_document(text_of(word), word).data.get(key)
    if not isinstance(name, str) or not name:
        raise ConfigError("CONFIG-002", Where(file=word), f"it has no {key}")
    return name


# How words are told apart: flags of every verb stand anywhere, and a group may mean its `list`.


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
