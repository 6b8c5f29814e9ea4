"""The form for a new task: its basic keys become the text of a task file, which is shown, checked or started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from unshard.api.verbs import CheckTask, StartTask
from unshard.config.redact import hidden_text
from unshard.errors import ClusterError, UnshardError
from unshard.master.service import Master

NEW_TASK_STEPS = ("show", "check", "start")
MODES = ("all", "full")
SHARD_MODES = ("", "pessimistic", "optimistic")
_RULES = "ours"


@dataclass(frozen=True, slots=True)
class NewTask:
    """The fields of the form for a new task, as they were typed; `password` is never shown."""

    name: str = ""
    mode: str = MODES[0]
    shard_mode: str = ""
    host: str = ""
    port: str = "3306"
    user: str = ""
    password: str = ""
    sources: tuple[str, ...] = ()
    take: str = ""
    routes: str = ""

    @classmethod
    def of(cls, given: Mapping[str, str]) -> NewTask:
        """Return the fields of a form. Sources are the values of the keys that begin with `source-`."""
        plain = ("name", "host", "port", "user", "password", "take", "routes")
        texts = {key: given.get(key, "").replace("\r\n", "\n") for key in plain}
        sources = tuple(value for key, value in given.items() if key.startswith("source-") and value)
        mode = given.get("mode", "") if given.get("mode") in MODES else MODES[0]
        shard_mode = given.get("shard_mode", "") if given.get("shard_mode") in SHARD_MODES else ""
        return cls(**texts, mode=mode, shard_mode=shard_mode, sources=sources)

    def text(self) -> str:
        """Return the task file. Raises ClusterError CLUSTER-059 for a line that is not a pattern or a route."""
        form: dict[str, Any] = {"name": self.name.strip(), "task-mode": self.mode}
        if self.shard_mode:
            form["shard-mode"] = self.shard_mode
        login = {"host": self.host.strip(), "port": _port(self.port), "user": self.user.strip()}
        form["target-database"] = {**login, "password": self.password}
        take, routes = _taken(_lines(self.take)), _routes(_lines(self.routes))
        rules = {"block-allow-list": _RULES} if take else {}
        chosen = {"route-rules": list(routes)} if routes else {}
        form["mysql-instances"] = [{"source-id": source, **rules, **chosen} for source in self.sources]
        if take:
            form["block-allow-list"] = {_RULES: take}
        if routes:
            form["routes"] = routes
        return str(yaml.safe_dump(form, sort_keys=False, allow_unicode=True))


def _port(text: str) -> int | str:
    return int(text) if text.strip().isdecimal() else text


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _pattern(text: str, line: str) -> tuple[str, str]:
    schema, _, table = (part.strip() for part in text.strip().partition("."))
    if not schema or "." in table:
        raise ClusterError("CLUSTER-059", cause=f"'{line}' is no SCHEMA.TABLE; names with a dot need a file by hand")
    return schema, table


def _taken(lines: Sequence[str]) -> dict[str, Any]:
    """Return the allow list; in `do-tables`, a line without a table means all tables of the schemas."""
    entries = [_pattern(line, line) for line in lines]
    return {"do-tables": [{"db-name": schema, "tbl-name": table or "*"} for schema, table in entries]} if lines else {}


def _routes(lines: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the routes of lines `SCHEMA.TABLE -> SCHEMA.TABLE`; without tables a rule for the schemas."""
    found = {}
    for number, line in enumerate(lines, 1):
        before, arrow, after = line.partition("->")
        if not arrow:
            raise ClusterError("CLUSTER-059", cause=f"'{line}' is no SCHEMA.TABLE -> SCHEMA.TABLE")
        (schema, table), (to_schema, to_table) = _pattern(before, line), _pattern(after, line)
        rule = {"schema-pattern": schema, "table-pattern": table, "target-schema": to_schema, "target-table": to_table}
        found[f"route-{number}"] = {key: text for key, text in rule.items() if text}
    return found


def new_task_values(master: Master, given: NewTask, step: str) -> dict[str, Any]:
    """Return the values of the screen after a step of `NEW_TASK_STEPS`."""
    values: dict[str, Any] = {"given": given, "step": step, "text": "", "check": None, "started": None, "message": ""}
    if not step:
        return values
    try:
        text = given.text()
        values["text"] = hidden_text(text)
        if step == "check":
            values["check"] = master.check_task(CheckTask(task=text))
        elif step == "start":
            values["started"] = master.start_task(StartTask(task=text))
    except UnshardError as error:
        values["message"] = str(error)
    return values
