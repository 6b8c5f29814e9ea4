"""The events of a binlog as lines for a person, or as JSON for a program."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from unshard.binlog.listing import Shown
from unshard.binlog.row_changes import ABSENT, Change, RowChanges
from unshard.model.table import Column

WIDTH = 80
"""Characters of a value or a statement that are shown unless all is asked for."""

HEAD = f"{'position':>10}  {'time (UTC)':<19}  {'size':>8}  {'event':<20}  DM's name, contents"
_INDENT = " " * 14
_BARE = frozenset({"decimal", "tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "year"})
_ESCAPES = str.maketrans(
    {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0", "\x1b": "\\x1b"}
)
_KINDS = ("insert", "update", "delete")


@dataclass(slots=True)
class Totals:
    """Sums over the listed events."""

    events: int = 0
    transactions: int = 0
    size: int = 0
    unread: int = 0
    first: int = 0
    last: int = 0
    rows: dict[str, Counter[str]] = field(default_factory=dict)
    statements: Counter[str] = field(default_factory=Counter)

    def add(self, shown: Shown) -> None:
        """Count one event."""
        header = shown.header
        if shown.within is None:
            self.events += 1
            self.size += header.length
        self.transactions += "gtid" in shown.facts
        self.unread += shown.problem is not None
        if header.timestamp:
            self.first = self.first or header.timestamp
            self.last = header.timestamp
        if shown.rows is not None:
            self.rows.setdefault(str(shown.tables[0]), Counter())[shown.dm[0]] += shown.rows.count()
        elif shown.problem is None:
            self.statements.update(shown.dm)


def event_lines(shown: Shown, *, full: bool) -> Iterator[str]:
    """Yield the event's own line, then a line for each row and for each remark.

    In a payload its position is `+` and the offset in the unpacked bytes.
    """
    header = shown.header
    contents = [", ".join(shown.dm)] if shown.dm else []
    if shown.rows is not None:
        contents += [str(shown.tables[0]), _count(shown.rows.count(), "row")]
    elif shown.tables and "sql" not in shown.facts:
        contents += [str(shown.tables[0])]
    contents += [f"{name}={_fact(value, full)}" for name, value in shown.facts.items() if value not in ("", [])]
    time = _time(header.timestamp) if header.timestamp else ""
    text = "  ".join(contents)
    position = str(header.offset) if shown.within is None else f"+{header.offset}"
    yield f"{position:>10}  {time:<19}  {header.length:>8}  {shown.name:<20}  {text}".rstrip()
    if shown.remark:
        yield f"{_INDENT}! not followed: {shown.remark}"
    if shown.problem is not None:
        yield f"{_INDENT}! {shown.problem.code}: {shown.problem.message}" + (
            f" ({shown.problem.cause})" if shown.problem.cause else ""
        )
    if shown.rows is not None:
        yield from (_INDENT + _change(change, shown.rows, full) for change in shown.rows)


def total_lines(totals: Totals) -> Iterator[str]:
    """Yield the lines of the summary."""
    span = f", {_time(totals.first)} to {_time(totals.last)}" if totals.first else ""
    counts = f"{_count(totals.events, 'event')}, {_count(totals.transactions, 'transaction')}"
    yield f"{counts}, {totals.size:,} bytes{span}"
    width = max((len(name) for name in totals.rows), default=0)
    for name, kinds in sorted(totals.rows.items()):
        yield f"  {name:<{width}}  " + "  ".join(f"{kind} {kinds[kind]:,}" for kind in _KINDS)
    if totals.statements:
        yield "  " + ", ".join(f"{name} {count:,}" for name, count in sorted(totals.statements.items()))
    if totals.unread:
        yield f"  rows of {_count(totals.unread, 'event')} could not be read"


def event_json(shown: Shown) -> str:
    """Return the event as one line of JSON; values are never cut, bytes are `{"bytes": "hex"}`.

    An event of a compressed transaction also has `payload`, the position of the compressed event; its `position` and
    `end` count unpacked bytes.
    """
    header = shown.header
    form: dict[str, Any] = {
        "position": header.offset,
        "end": header.end,
        "timestamp": header.timestamp,
        "server_id": header.server_id,
        **({} if shown.within is None else {"payload": shown.within}),
        "size": header.length,
        "event": shown.name,
        "dm": list(shown.dm),
        "gtid": shown.gtid,
        "tables": [str(name) for name in shown.tables],
        **{name: value for name, value in shown.facts.items() if name != "gtid"},
    }
    if shown.rows is not None:
        form["rows"] = [_row_form(change, shown.rows) for change in shown.rows]
    if shown.remark:
        form["not_followed"] = shown.remark
    if shown.problem is not None:
        form["error"] = shown.problem.to_dict()
    return json.dumps(form, ensure_ascii=False)


def total_json(totals: Totals) -> str:
    """Return the summary as one line of JSON."""
    return json.dumps(
        {
            "summary": {
                "events": totals.events,
                "transactions": totals.transactions,
                "bytes": totals.size,
                "first_timestamp": totals.first,
                "last_timestamp": totals.last,
                "rows": {name: dict(kinds) for name, kinds in totals.rows.items()},
                "statements": dict(totals.statements),
                "unread_row_events": totals.unread,
            }
        }
    )


def value_text(value: Any, column: Column, *, full: bool) -> str:
    """Return a value as a literal: NULL, 12, 3.50, 'text', x'00ff'; `?` for one that the log does not have."""
    if value is ABSENT:
        return "?"
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{_cut(value.hex(), full, len(value), 'bytes')}"
    if isinstance(value, str) and column.type not in _BARE:
        return f"'{_cut(value.translate(_ESCAPES), full, len(value), 'characters')}"
    return str(value)


def _cut(text: str, full: bool, length: int, unit: str) -> str:
    """Return the text with its closing quote, or its beginning and its length."""
    return f"{text}'" if full or len(text) <= WIDTH else f"{text[:WIDTH]}' … {length:,} {unit}"


def _fact(value: object, full: bool) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    text = " ".join(str(value).split())
    return text if full or len(text) <= 2 * WIDTH else f"{text[: 2 * WIDTH]} … {len(text):,} characters"


def _change(change: Change, rows: RowChanges, full: bool) -> str:
    """Return a row's change: `+` inserted, `-` deleted, `~` changed: `*column=before -> after`."""
    changed = change.changed
    parts = []
    for number, column in enumerate(rows.columns):
        if number in changed and change.before is not None and change.after is not None:
            before, after = (value_text(image[number], column, full=full) for image in (change.before, change.after))
            parts.append(f"*{column.name}={before} -> {after}")
        else:
            image = change.after if change.before is None else change.before
            if image is not None and image[number] is not ABSENT:
                parts.append(f"{column.name}={value_text(image[number], column, full=full)}")
    mark = "+" if change.before is None else "-" if change.after is None else "~"
    return f"{mark} {'  '.join(parts)}"


def _row_form(change: Change, rows: RowChanges) -> dict[str, Any]:
    names = [column.name for column in rows.columns]
    form: dict[str, Any] = {}
    for side, image in (("before", change.before), ("after", change.after)):
        if image is not None:
            form[side] = {
                name: _json_value(value) for name, value in zip(names, image, strict=True) if value is not ABSENT
            }
    if change.before is not None and change.after is not None:
        form["changed"] = [names[number] for number in sorted(change.changed)]
    return form


def _json_value(value: Any) -> Any:
    return {"bytes": value.hex()} if isinstance(value, bytes) else value


def _time(timestamp: int) -> str:
    return f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M:%S}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
