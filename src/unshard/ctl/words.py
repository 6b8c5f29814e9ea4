"""Words of a command line as fields of requests; a name may be written as such or by its file.

Flags of every verb may stand anywhere, and a group without a verb may mean its `list`. The arguments that several verbs
take are defined here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from unshard.config.document import parse_document, text_of
from unshard.errors import ConfigError, Where

_FILE_ENDINGS = (".yaml", ".yml")


def task_name(word: str) -> str:
    """Return a task's name, or the name in its file.

    The rest of the file isn't looked at: a task with a bad file can still be stopped. Raises ConfigError CONFIG-002,
    CONFIG-003.
    """
    return _named(word, "name")


def source_id(word: str) -> str:
    """Return a source's id, or the id in its file. Raises as `task_name`."""
    return _named(word, "source-id")


def source_ids(words: Iterable[str]) -> tuple[str, ...]:
    """Return the sources that are meant, each once."""
    return tuple(dict.fromkeys(source_id(word) for word in apart(words)))


def source_files(words: Iterable[str]) -> list[str]:
    """Return those of the words that are files of sources."""
    return [word for word in apart(words) if is_file(word)]


def apart(words: Iterable[str]) -> list[str]:
    """Return the parts of words with commas: `a,b` is two words, but not where it is a file's name."""
    parts = []
    for word in words:
        parts += [word] if Path(word).is_file() else [part for part in word.split(",") if part]
    return parts


def is_file(word: str) -> bool:
    """Return whether a word means a file, which may be missing, and not a name."""
    return word.endswith(_FILE_ENDINGS) or Path(word).is_file()


def _named(word: str, key: str) -> str:
    if not is_file(word):
        return word
    name = parse_document(text_of(word), word).data.get(key)
    if not isinstance(name, str) or not name:
        raise ConfigError("CONFIG-002", Where(file=word), f"it has no {key}")
    return name


class GlobalFlags(TyperGroup):
    """A group whose own flags may also follow the verb, as in dmctl: `query-status -s shop-01`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, with the group's own options first."""
        return super().parse_args(ctx, hoisted(args, self.params))


class ListGroup(TyperGroup):
    """A group that runs its verb `list` where none of its verbs is named: `shard-ddl-lock TASK`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; without a verb the group runs `list`."""
        named = bool(args) and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if named else ["list", *args])


def hoisted(args: Sequence[str], params: Iterable[Any]) -> list[str]:
    """Return the words with those of `params` (options of a group) put first. After `--` nothing is an option."""
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


TaskFile = Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file, in DM's format.")]
TaskWord = Annotated[str, typer.Argument(metavar="TASK", help="A task's name, or its file.")]
TaskMaybe = Annotated[str, typer.Argument(metavar="TASK", help="A task's name, or its file.", show_default=False)]
