"""`query-status` on a terminal, for an operator: what does not run comes first, with the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from unshard.model.progress import size_text


def grid(*head: str) -> Table:
    """Return an empty table, as every table on a terminal looks."""
    return Table(*head, box=None, pad_edge=False, header_style="bold")


_STAGE_STYLES = {"Running": "green", "Finished": "cyan", "Paused": "yellow", "Stopped": "yellow", "New": "dim"}
_INDENT = "  "
Form = Mapping[str, Any]


def status_rows(answer: Form) -> Iterator[RenderableType]:
    """Yield all tasks in short, or a line for each task on each source and below it its errors."""
    if not answer.get("result") and not answer.get("sources") and not answer.get("tasks"):
        yield Text(str(answer.get("msg") or "failed"), "bold red")
        return
    if answer.get("msg"):
        yield Text(str(answer["msg"]).strip(), "none" if answer.get("result") else "bold red")
    if answer.get("tasks") is not None:
        yield _tasks(answer["tasks"])
        return
    sources = answer.get("sources") or ()
    yield _subtasks(sources)
    for source in sources:
        yield from _troubles(source)
    yield from _ledger(sources)


def _tasks(tasks: Any) -> RenderableType:
    if not tasks:
        return "no task is known; unshard ctl start-task TASK.yaml starts one"
    table = grid("task", "status", "sources")
    for task in sorted(tasks, key=lambda one: (not str(one.get("taskStatus")).startswith("Error"), one["taskName"])):
        status = str(task.get("taskStatus", ""))
        style = "bold red" if status.startswith("Error") else _STAGE_STYLES.get(status, "none")
        table.add_row(Text(task["taskName"]), Text(status, style), ", ".join(task.get("sources") or ()))
    return table


def _subtasks(sources: Any) -> RenderableType:
    table = grid("source", "worker", "task", "stage", "unit", "how far")
    for source in sources:
        where = source.get("sourceStatus") or {}
        name, worker = str(where.get("source", "")), str(where.get("worker") or "none")
        subtasks = source.get("subTaskStatus") or ()
        for one in subtasks:
            table.add_row(name, worker, Text(str(one.get("name", ""))), _stage(one), _unit(one), how_far(one))
        if not subtasks:
            table.add_row(name, worker, "", "", "", str(source.get("msg") or "no task"))
    return table


def _stage(subtask: Form) -> Text:
    stage = str(subtask.get("stage", ""))
    return Text(stage, "bold red" if _errors(subtask) else _STAGE_STYLES.get(stage, "none"))


def _unit(subtask: Form) -> str:
    unit = str(subtask.get("unit", ""))
    return "" if unit == "InvalidUnit" else unit


def how_far(subtask: Form) -> str:
    """Return the figures of the current unit, in one line."""
    if dump := subtask.get("dump"):
        tables = f"{dump.get('completedTables', 0):g} of {dump.get('totalTables', 0)} tables"
        return _line(dump.get("progress"), f"{dump.get('finishedRows', 0):,.0f} rows", tables, _rate(dump))
    if load := subtask.get("load"):
        done, total = size_text(load.get("finishedBytes", 0)), size_text(load.get("totalBytes", 0))
        return _line(load.get("progress"), f"{done} of {total}", _rate(load))
    sync = subtask.get("sync")
    if not sync:
        return str(subtask.get("note") or "")
    lag, backlog = sync.get("secondsBehindMaster"), sync.get("backlogBytes")
    return _line(
        f"lag {'unknown' if lag is None else f'{lag:,} s'}",
        "" if backlog is None else f"backlog {size_text(backlog)}",
        f"{sync.get('recentRps', 0):,} rows/s",
        f"at {sync.get('syncerBinlog', '')}",
        f"safe mode ({sync['safeMode']})" if sync.get("safeMode") else "",
        sync.get("doing"),
        subtask.get("note"),
    )


def _rate(form: Form) -> str:
    return f"{size_text(form['bps'])}/s" if form.get("bps") else ""


def _line(*parts: str | None) -> str:
    return "  ".join(part for part in parts if part)


def _troubles(source: Form) -> Iterator[RenderableType]:
    """Yield the errors of a source, of its relay, and of each of its tasks."""
    where = source.get("sourceStatus") or {}
    name = where.get("source", "")
    if not source.get("result", True) and source.get("msg"):
        yield _head(f"{name}: {source['msg']}")
    yield from _error_lines(f"{name}", where)
    relay = where.get("relayStatus") or {}
    if relay and (relay.get("stage") == "Paused" or _errors(relay)):
        yield _head(f"{name}: its relay is {relay.get('stage')}, at {relay.get('relayBinlog') or 'nothing yet'}")
        yield from _error_lines("", relay)
    for subtask in source.get("subTaskStatus") or ():
        yield from _error_lines(f"{subtask.get('name')} on {name}", subtask)
        for group in (subtask.get("sync") or {}).get("unresolvedGroups") or ():
            yield from _group(f"{subtask.get('name')} on {name}", group)


def _error_lines(head: str, form: Form) -> Iterator[RenderableType]:
    """Yield each error with its place, its cause and what to do. Its message may have them all in its own lines."""
    for error in _errors(form):
        if head:
            yield _head(head)
        message = str(error.get("Message", ""))
        code = str(error.get("ErrCode", ""))
        first = message if message.startswith(code) else f"{code}: {message}"
        yield Text(_indented(first), "red")
        for label, key in (("at", "place"), ("why", "RawCause"), ("what to do", "Workaround"), ("since", "time")):
            text = str(error.get(key) or "")
            if text and text not in message:
                yield Text(_indented(f"{label}: {text}"))


def _group(head: str, group: Form) -> Iterator[RenderableType]:
    late = group.get("overdue")
    words = "waits for too long" if late else "waits"
    yield _head(f"{head}: DDL of {group.get('target', '')} {words}", "bold red" if late else "bold yellow")
    lines = [
        *(("DDL", ddl) for ddl in group.get("DDLs") or ()),
        ("owner", group.get("owner")),
        ("since", _line(group.get("since"), group.get("firstLocation"))),
        ("has it", ", ".join(group.get("synced") or ())),
        ("missing", ", ".join(group.get("unsynced") or ())),
        ("waits for", group.get("waitsFor")),
        *(("mismatch", text) for text in group.get("mismatch") or ()),
        ("what to do", group.get("help")),
    ]
    for label, text in lines:
        if text:
            yield Text(_indented(f"{label}: {text}"))


def _ledger(sources: Any) -> Iterator[RenderableType]:
    """Yield the row counts of each target table, where the answer has them."""
    rows = [
        (one.get("name", ""), (source.get("sourceStatus") or {}).get("source", ""), table)
        for source in sources
        for one in source.get("subTaskStatus") or ()
        for table in (one.get("sync") or {}).get("tables") or ()
    ]
    if not rows:
        return
    columns = tuple(dict.fromkeys(name for _, _, table in rows for name in table.get("counts") or ()))
    shown = grid("task", "source", "table", *columns)
    for task, source, table in rows:
        counts = table.get("counts") or {}
        shown.add_row(
            Text(task), source, Text(table.get("table", "")), *(f"{counts.get(name, 0):,}" for name in columns)
        )
    yield ""
    yield shown


def _errors(form: Form) -> Any:
    return (form.get("result") or {}).get("errors") or ()


def _head(text: str, style: str = "bold red") -> Text:
    return Text(f"\n{text}", style)


def _indented(text: str) -> str:
    return "\n".join(_INDENT + line for line in text.splitlines())
