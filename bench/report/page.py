"""A report as one HTML page that needs no other file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

from bench.report import plots
from bench.report.figures import MEDIAN, RUNS, SPREAD, figures

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; margin: 0.7rem 0; }
td, th { border: 1px solid #ccc; padding: 0.15rem 0.6rem; text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.right { background: #e3f1e3; } td.wrong { background: #f6d5d0; } td.none { background: #eee; }
pre { background: #f4f4f4; padding: 0.6rem; overflow-x: auto; } svg { max-width: 100%; height: auto; }
"""


def page(report: Mapping[str, Any]) -> str:
    """Return the page of a report, which may be unfinished."""
    parts = report["parts"]
    body = [
        "<h1>Unshard: measured and proved</h1>",
        f"<p>Made at {escape(report['made_at'])} in {report.get('seconds', 0)} s, size {escape(report['size'])}. Each"
        " number is the median of its runs; the spread is the largest run less the smallest, as a percentage of it."
        " Ratios compare with the other tools on the same machine in the same call, so they hold elsewhere; rates"
        " do not.</p>",
        *_notice(report["size"]),
        _summary(parts),
        *_ratios(parts),
        "<h2>Machine and versions</h2>",
        _table((), [(name, text) for name, text in _flat(report["machine"])]),
    ]
    for name, part in parts.items():
        body.append(f'<h2 id="{name}">{escape(part["title"])}</h2>')
        if part["state"] != "done":
            body.append(f"<p>{escape(part['state'])}:</p><pre>{escape(part['reason'])}</pre>")
            continue
        body += _SHOWN.get(name, _figures)(part["result"])
    head = f'<meta charset="utf-8"><title>Unshard: measured and proved</title><style>{_STYLE}</style>'
    return "\n".join(("<!doctype html>", f'<html lang="en"><head>{head}</head><body>', *body, "</body></html>", ""))


def _notice(size: str) -> Iterable[str]:
    if size != "full":
        told = f"Size {size} shows that everything works. Its runs are too short to quote a figure."
        yield f"<p><b>{escape(told)}</b></p>"


def _summary(parts: Mapping[str, Any]) -> str:
    rows = [
        (
            f'<a href="#{name}">{escape(part["title"])}</a>',
            escape(part["state"]),
            f"{part['seconds']} s",
            escape(part.get("reason", "").partition("\n")[0]),
        )
        for name, part in parts.items()
    ]
    cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr><th>part</th><th>state</th><th>took</th><th>reason</th></tr>{cells}</table>"


def _ratios(parts: Mapping[str, Any]) -> Iterable[str]:
    found = [
        (f"{name}.{key}", figure)
        for name, part in parts.items()
        if part["state"] == "done"
        for key, figure in figures(part["result"])
        if key.rpartition(".")[2].startswith("x_")
    ]
    if found:
        yield "<h2>Beside the other tools</h2>"
        yield plots.ratios(found)


def _figures(result: Mapping[str, Any]) -> list[str]:
    rows = [
        (name, f"{figure[MEDIAN]:,}", f"{figure[SPREAD]} %", ", ".join(f"{run:,}" for run in figure[RUNS]))
        for name, figure in figures({key: value for key, value in result.items() if key != "histogram"})
    ]
    return [_table(("figure", "median", "spread", "runs"), rows)]


def _latency(result: Mapping[str, Any]) -> list[str]:
    return [*_figures({**result, "histogram": {}}), plots.histogram(result["histogram"][RUNS])]


def _memory(result: Mapping[str, Any]) -> list[str]:
    series = dict(result["memory_mb"])
    seconds = series.pop("seconds")
    listed = [(name, value) for name, value in _flat({key: result[key] for key in ("binlog_mb", "rows_per_s")})]
    return [_table((), listed), plots.lines(seconds, series, "MiB")]


def _faults(result: Mapping[str, Any]) -> list[str]:
    phases = result["phases"]
    rows = []
    for fault, cells in result["faults"].items():
        row = [f"<td>{escape(fault)}</td>"]
        for phase in phases:
            cell = cells[phase]
            if "reason" in cell:
                row.append(f'<td class="{"wrong" if cell["failed"] else "none"}">{escape(cell["reason"])}</td>')
            else:
                again = f"stopped with {escape(cell['stopped'])}, run again: " if cell["stopped"] else ""
                told = f"{again}equal, once; {cell['changes']} changes, {cell['seconds']} s"
                row.append(f'<td class="right">{told}</td>')
        rows.append(f"<tr>{''.join(row)}</tr>")
    heads = "".join(f"<th>{escape(head)}</th>" for head in ("fault", *phases))
    told = (
        "<p>Each cell is a task of its own between two servers, run as <code>unshard run</code>. In the middle of the"
        " phase the fault happens, and the task goes on. Then the tables are compared, and the binlogs of both servers"
        " tell whether each change was applied once.</p>"
    )
    return [told, f"<table><tr>{heads}</tr>{''.join(rows)}</table>"]


def _types(result: Mapping[str, Any]) -> list[str]:
    rows = []
    for cell in result["cells"]:
        wrong = cell["differing"]
        kind, text = ("wrong", ", ".join(wrong)) if wrong else ("right", "all equal")
        if cell["reason"]:
            kind, text = "wrong", cell["reason"]
        marks = "".join(
            f"<td>{escape(str(cell[key]))}</td>" for key in ("row_image", "row_metadata", "columns", "rows")
        )
        rows.append(f'<tr>{marks}<td class="{kind}">{escape(text)}</td></tr>')
    heads = "".join(
        f"<th>{head}</th>" for head in ("binlog_row_image", "binlog_row_metadata", "columns", "rows", "target")
    )
    told = (
        f"<p>{len(result['types'])} column definitions and {len(result['charsets'])} character sets. Some rows are"
        " copied, others come by the binlog, where they are inserted, updated in each column, moved to another key and"
        " deleted.</p>"
    )
    definitions = escape(", ".join(result["types"]))
    listed = (
        f"<details><summary>Column definitions</summary><p>{definitions}</p></details>"
        f"<details><summary>Character sets</summary><p>{escape(', '.join(result['charsets']))}</p></details>"
    )
    return [told, f"<table><tr>{heads}</tr>{''.join(rows)}</table>", listed]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in heads)}</tr>" if heads else ""
    return f"<table>{head}{''.join(map(_row, rows))}</table>"


def _row(cells: Sequence[str]) -> str:
    first, *others = map(escape, cells)
    return f"<tr><td>{first}</td>{''.join(f'<td class=number>{cell}</td>' for cell in others)}</tr>"


_SHOWN: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "latency": _latency,
    "memory": _memory,
    "faults": _faults,
    "types": _types,
}
