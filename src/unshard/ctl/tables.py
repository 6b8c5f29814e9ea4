"""Formats the answers of a master for a terminal: which layout each command's answer has, and the simple layouts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from unshard.checks.grouped import LocatedFinding, grouped
from unshard.ctl.status_table import grid, status_rows

STYLES = {"success": "green", "warn": "yellow", "fail": "bold red"}


def check_rows(answer: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield each finding over the width of the terminal with its remedy and its tables, then how many there are."""
    for group in grouped(_found(answer)):
        yield Text(group.severity, STYLES.get(group.severity, "none")).append(f" {group.head}", "none")
        if below := [text for text in (group.mend, group.also) if text]:
            yield "".join(f"  {line}\n" for line in below)
    counts = answer.get("summary")
    if counts is None:
        yield Text(str(answer.get("msg", "")), "none" if answer.get("result") else "bold red")
        return
    yield f"{counts['successful']} of {counts['total']} fine, {counts['warning']} warned, {counts['failed']} failed"


def _found(answer: Mapping[str, Any]) -> Iterator[LocatedFinding]:
    for result in answer.get("results") or ():
        for one in result["errors"]:
            texts = (str(one["short_error"]), str(one["instruction"]), str(one.get("self") or ""))
            yield LocatedFinding(one["severity"], result["name"], str(result.get("extra") or ""), *texts)


Answer = Mapping[str, Any]
Shape = Callable[[Answer], Iterator[RenderableType]]


def rendered(verb: str, answer: Answer) -> Iterator[RenderableType]:
    """Yield the parts of the answer to a verb, from the top down; texts are whole lines."""
    yield from _SHAPES.get(verb, results)(answer)


def verdict(answer: Answer) -> Text:
    """Return the outcome, and the answer's message."""
    good = bool(answer.get("result"))
    text = Text("ok" if good else "failed", style="green" if good else "bold red")
    message = str(answer.get("msg") or "").strip()
    return text.append(f": {message}" if message else "", style="none")


def results(answer: Answer) -> Iterator[RenderableType]:
    """Yield the common form of answers: a line for each source, long messages below."""
    yield verdict(answer)
    if check := str(answer.get("checkResult") or "").strip():
        yield Text(check)
    sources = answer.get("sources") or ()
    if not sources:
        return
    table = grid("source", "worker", "result", "message")
    long = []
    for one in sources:
        message = str(one.get("msg") or "")
        good = bool(one.get("result"))
        if "\n" in message or len(message) > 60:
            long.append((one.get("source", ""), message))
            message = "below"
        state = Text("ok", "green") if good else Text("failed", "bold red")
        table.add_row(str(one.get("source", "")), str(one.get("worker") or ""), state, Text(message))
    yield table
    for name, message in long:
        yield Text(f"\n{name}:", style="bold")
        yield Text(message)


def members(answer: Answer) -> Iterator[RenderableType]:
    """Yield the answer of `list-member`: masters with the one that leads, then workers."""
    if not answer.get("result"):
        yield verdict(answer)
        return
    parts = {kind: form for part in answer.get("members") or () for kind, form in part.items()}
    leader = parts.get("leader", {}).get("name", "")
    if masters := parts.get("master", {}).get("masters"):
        table = grid("master", "alive", "leads", "address")
        for one in masters:
            alive = Text("yes", "green") if one.get("alive") else Text("NO", "bold red")
            urls = ", ".join(one.get("clientURLs") or ())
            table.add_row(str(one.get("name", "")), alive, "yes" if one.get("name") == leader else "", urls)
        yield table
    elif "leader" in parts:
        yield f"leader: {leader or 'none'} {parts['leader'].get('addr', '')}".rstrip()
    if "worker" in parts:
        yield ""
        workers = parts["worker"].get("workers") or ()
        table = grid("worker", "stage", "source", "address")
        for one in workers:
            stage = str(one.get("stage", ""))
            style = {"bound": "green", "offline": "bold red"}.get(stage, "none")
            table.add_row(str(one.get("name", "")), Text(stage, style), one.get("source") or "", one.get("addr", ""))
        yield table if workers else "no worker has registered"
        yield from (Text(f"{one.get('name')}: {one['msg']}", style="yellow") for one in workers if one.get("msg"))
    for kind, form in parts.items():
        if form.get("msg"):
            yield Text(f"{kind}: {form['msg']}", style="yellow")


def locks(answer: Answer) -> Iterator[RenderableType]:
    """Yield the answer of `shard-ddl-lock`: each lock, the sources it waits for, and the command that settles it."""
    found = answer.get("locks") or ()
    if not answer.get("result") or not found:
        yield verdict(answer)
        if answer.get("result"):
            yield "tables that wait for others of their own source have none yet: `query-status TASK` shows them"
        return
    if answer.get("msg"):
        yield Text(str(answer["msg"]), style="yellow")
    for lock in found:
        yield Text(str(lock.get("ID", "")), style="bold")
        rows = [
            ("task", lock.get("task", "")),
            ("owner", lock.get("owner") or "none yet"),
            *(("DDL", ddl) for ddl in lock.get("DDLs") or ()),
            ("has it", ", ".join(lock.get("synced") or ()) or "nobody"),
            ("waits for", ", ".join(lock.get("unsynced") or ()) or "nobody"),
        ]
        rows += [(name, lock[key]) for key, name in _LOCK_MORE if lock.get(key)]
        yield from (f"  {name:<10} {_joined(text)}" for name, text in rows)


_LOCK_MORE = (("since", "since"), ("waitsFor", "why"), ("mismatch", "mismatch"), ("help", "what to do"))


def _joined(text: Any) -> str:
    return "\n             ".join(str(part) for part in text) if isinstance(text, list | tuple) else str(text)


def configuration(answer: Answer) -> Iterator[RenderableType]:
    """Yield the file or the settings; the message where the verb failed."""
    yield Text(str(answer["cfg"]).rstrip()) if answer.get("result") and "cfg" in answer else verdict(answer)


def secret(answer: Answer) -> Iterator[RenderableType]:
    """Yield the encrypted password; the message where the verb failed."""
    yield Text(str(answer["ciphertext"])) if answer.get("result") and "ciphertext" in answer else verdict(answer)


def log_levels(answer: Answer) -> Iterator[RenderableType]:
    """Yield the log level of each member."""
    yield verdict(answer)
    table = grid("member", "level", "message")
    for one in answer.get("members") or ():
        table.add_row(str(one.get("name", "")), str(one.get("level", "")), Text(str(one.get("msg") or "")))
    yield table


def operators(answer: Answer) -> Iterator[RenderableType]:
    """Yield the answer of `binlog`: like other verbs, but `list` has a JSON list as each source's message."""
    sources = answer.get("sources") or ()
    if not answer.get("result") or not any(str(one.get("msg", "")).startswith("[") for one in sources):
        yield from results(answer)
        return
    table = grid("source", "what", "place", "statements")
    for one in sources:
        for form in json.loads(one["msg"]):
            op = _OPS.get(form.get("op"), str(form.get("op")))
            table.add_row(one["source"], op, form.get("binlogPos", ""), Text("; ".join(form.get("sqls") or ())))
    yield table if table.row_count else "nothing is given"


def validation(answer: Answer) -> Iterator[RenderableType]:
    """Yield the answer of `validation`: progress and excluded tables, differing rows, or a line for each source."""
    if not answer.get("result") or not ("validators" in answer or "error" in answer):
        yield from results(answer)
        return
    if answer.get("msg"):
        yield Text(str(answer["msg"]), style="yellow")
    for one in answer.get("validators") or ():
        yield Text(f"{one['source']}: {one['stage']}, mode {one['mode']}", style="bold")
        rows = [(name, one.get(key)) for key, name in _VALIDATOR]
        rows += [("why", error["Message"]) for error in (one.get("result") or {}).get("errors") or ()]
        yield from (f"  {name:<10} {_joined(text)}" for name, text in rows if text)
    tables = [one for one in answer.get("tableStatuses") or () if one["message"]]
    yield from (f"  {one['source']}: {one['srcTable']}: {one['stage']}: {one['message']}" for one in tables)
    for one in answer.get("error") or ():
        yield Text(f"{one['id']}  {one['source']}: {one['srcTable']} > {one['dstTable']}: {one['errorType']}", "bold")
        rows = [(name, one.get(key)) for key, name in _ROW_ERROR]
        yield from (f"  {name:<10} {_joined(text)}" for name, text in rows if text)


_VALIDATOR = (
    ("validatorBinlog", "place"),
    ("processedRowsStatus", "processed"),
    ("pendingRowsStatus", "pending"),
    ("errorRowsStatus", "errors"),
    ("fullLoadRowsStatus", "full load"),
    ("cutoverBinlogPos", "cut-over"),
    ("cutoverBinlogGtid", "cut-over"),
    ("cutoverStatus", "up to it"),
)
_ROW_ERROR = (
    ("status", "state"),
    ("srcData", "source"),
    ("dstData", "target"),
    ("message", "columns"),
    ("binlogPos", "place"),
    ("settledBy", "settled by"),
    ("time", "time"),
)


_OPS = {1: "skip", 2: "replace", 3: "revert", 4: "inject"}


_SHAPES: dict[str, Shape] = {
    "query-status": status_rows,
    "check-task": check_rows,
    "list-member": members,
    "shard-ddl-lock": locks,
    "binlog": operators,
    "validation": validation,
    "config": configuration,
    "encrypt": secret,
    "log-level": log_levels,
}
