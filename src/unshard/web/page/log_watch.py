"""Collects the newest log lines of all processes that serve a task, while a user watches them."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

from unshard.api.status import MOST_LINES, LogLine, LogTail
from unshard.errors import UnshardError

WATCHED_SECONDS = 15.0
KEPT_SECONDS = 900.0
LEVELS = ("debug", "info", "warning", "error")
SHOWN_LINES = 200
_ASKED_AT_ONCE = 16

Ask = Callable[[str, str, int], LogTail]
"""`Statuses.log_tail`: source, life, line."""


@dataclass(frozen=True, slots=True)
class TaskLog:
    """The log lines of the processes that serve a task, newest first.

    `silent`: the sources that did not answer, with the reason.
    """

    lines: tuple[LogLine, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Process:
    life: str = ""
    newest: int = 0
    lines: deque[LogLine] = field(default_factory=lambda: deque(maxlen=MOST_LINES))
    trouble: str = ""


class LogWatch:
    """The newest log lines of the tasks that a user looks at, read once for all pages.

    Only lines that are new are requested. `look` is called by the reader's thread, the other methods by any.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._known: dict[str, _Process] = {}
        self._watched: dict[str, float] = {}
        self._lock = Lock()

    def watch(self, task: str, now: float) -> bool:
        """Note that a user looks; return whether nobody has for a while."""
        fresh = now - self._watched.get(task, -KEPT_SECONDS) > WATCHED_SECONDS
        self._watched[task] = now
        return fresh

    def look(self, sources_of: Mapping[str, tuple[str, ...]], now: float) -> bool:
        """Ask the workers of the tasks that are watched (monotonic seconds); whether there are new lines."""
        with self._lock:
            self._watched = {task: at for task, at in self._watched.items() if now - at <= KEPT_SECONDS}
            kept = {source for task in self._watched for source in sources_of.get(task, ())}
            self._known = {source: known for source, known in self._known.items() if source in kept}
            live = [task for task, at in self._watched.items() if now - at <= WATCHED_SECONDS]
            wanted = sorted({source for task in live for source in sources_of.get(task, ())})
            if not wanted:
                return False
            with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
                return any(list(pool.map(self._look, wanted)))

    def lines(self, task: str, sources: Iterable[str]) -> TaskLog:
        """Return the lines of the task, and those of its sources that name no task."""
        known = {source: self._known[source] for source in sources if source in self._known}
        found: dict[tuple[str, int], LogLine] = {}
        for one in known.values():
            for line in tuple(one.lines):
                if line.task == task or (not line.task and line.source in known):
                    found[one.life, line.number] = line
        silent = {source: one.trouble for source, one in known.items() if one.trouble}
        return TaskLog(tuple(sorted(found.values(), key=lambda line: (line.time, line.number), reverse=True)), silent)

    def _look(self, source: str) -> bool:
        known = self._known.setdefault(source, _Process())
        try:
            told = self._ask(source, known.life, known.newest)
        except UnshardError as error:
            changed = known.trouble != str(error)
            known.trouble = str(error)
            return changed
        if told.life != known.life:
            known.lines.clear()
        changed = bool(told.lines) or bool(known.trouble)
        known.life, known.trouble = told.life, ""
        known.lines.extend(told.lines)
        known.newest = told.lines[-1].number if told.lines else known.newest
        return changed


def log_text(log: TaskLog, source: str, level: str, words: str) -> str:
    """Return the chosen lines as the text of a file, oldest first. Each is one line, whatever its values contain."""
    found = []
    for line in reversed(_chosen(log, source, level, words)):
        more = " ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in line.more.items())
        event = line.event.replace("\r", " ").replace("\n", " ")
        found.append(
            f"{line.time} {line.level.upper()} {line.source or '-'} {line.logger or '-'}: {event} {more}".rstrip()
        )
    silent = [
        f"# the worker of source {name} tells nothing: {' '.join(why.split())}" for name, why in log.silent.items()
    ]
    return "".join(f"{line}\n" for line in [*silent, *found])


def shown_lines(log: TaskLog, source: str, level: str, words: str) -> list[LogLine]:
    """Return the newest lines with the words in them, of that level and above, of one source or all."""
    return _chosen(log, source, level, words)[:SHOWN_LINES]


def _chosen(log: TaskLog, source: str, level: str, words: str) -> list[LogLine]:
    least = LEVELS.index(level) if level in LEVELS else 0
    found = []
    for line in log.lines:
        text = " ".join((line.event, *line.more.values())).lower()
        rank = LEVELS.index(line.level) if line.level in LEVELS else len(LEVELS)
        if rank >= least and source in ("", line.source) and words.lower() in text:
            found.append(line)
    return found
