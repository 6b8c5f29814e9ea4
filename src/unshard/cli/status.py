"""`unshard status`: the target's records of a task, source by source and table by table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from unshard.config.subtask import SubtaskConfig
from unshard.model.progress import size_text
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.source.upstream import Upstream
from unshard.target.meta import COUNTS, MetaTables
from unshard.target.recorded import Recorded, read_recorded
from unshard.worker.watch import UpstreamWatch

_UNKNOWN = "unknown: the source can't be asked"


def show_status(configs: Sequence[SubtaskConfig], write: Callable[[str], None], *, tables: bool, as_json: bool) -> None:
    """Print the state of each source. Changes nothing. Raises TargetError where it can't be read."""
    forms = []
    for config in configs:
        with session(to_endpoint(config.target), "target") as connection:
            meta = MetaTables(config.meta_schema, config.name)
            recorded = read_recorded(connection, meta, config.source_id)
        upstream = UpstreamWatch(to_endpoint(config.source.database)).look()
        if as_json:
            forms.append(_form(config, recorded, upstream))
        else:
            write("\n".join(_text(recorded, upstream, tables=tables)))
    if as_json:
        write(json.dumps({"result": True, "msg": "", "sources": forms}, indent=2))


def _text(recorded: Recorded, upstream: Upstream | None, *, tables: bool) -> list[str]:
    if recorded.location is None:
        return [f"{recorded.source}  no checkpoint yet: the copy is not done, or the task was never started"]
    at = recorded.location.position
    backlog = _UNKNOWN if upstream is None else size_text(upstream.backlog_bytes(at))
    lines = [f"{recorded.source}  at {at}, saved {recorded.saved} UTC  backlog {backlog}"]
    if recorded.open_batch:
        lines.append(f"  open batch: {recorded.open_batch}")
    if recorded.stopped is not None:
        error = recorded.stopped.error.replace("\n", "\n    ")
        lines.append(f"  stopped at {recorded.stopped.position}, {recorded.stopped.time} UTC:\n    {error}")
    lines += [f"  {one.op} is given for {one.position}, and not used yet" for one in recorded.pending]
    lines += [
        f"  {count:,} value{'s' if count > 1 else ''} of {name} beyond 838:59:59 (`time-values: clamp`): the table"
        " clamped_value of the task has their keys"
        for name, count in recorded.clamped.items()
    ]
    if tables:
        lines += _ledger(recorded)
    return lines


def _ledger(recorded: Recorded) -> list[str]:
    head = ["table", *COUNTS]
    cells = [[name, *(f"{counts[column]:,}" for column in COUNTS)] for name, counts in recorded.tables.items()]
    widths = [max(len(row[place]) for row in [head, *cells]) for place in range(len(head))]
    lines = [
        "  " + "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in [head, *cells]
    ]
    if recorded.filtered:
        lines.append("  filtered changes, by target table and rule:")
        lines += [f"    {name}  {rule}  {count:,}" for (name, rule), count in recorded.filtered.items()]
    if recorded.skipped:
        lines.append("  row events passed over undecoded, by source table and rule:")
        lines += [f"    {name}  {rule}  {count:,}" for (name, rule), count in recorded.skipped.items()]
    return lines


def _form(config: SubtaskConfig, recorded: Recorded, upstream: Upstream | None) -> dict[str, Any]:
    """Return the status with DM's names of `query-status` where it has them."""
    location = recorded.location
    sync = None
    if location is not None:
        master = upstream.location if upstream is not None else None
        sync = {
            "masterBinlog": f"({master.position.file}, {master.position.offset})" if master else "",
            "masterBinlogGtid": master.gtid if master else "",
            "syncerBinlog": f"({location.position.file}, {location.position.offset})",
            "syncerBinlogGtid": location.gtid,
            "synced": upstream is not None and location.position >= upstream.location.position,
            "totalRows": sum(counts["decoded"] for counts in recorded.tables.values()),
            "backlogBytes": upstream.backlog_bytes(location.position) if upstream else None,
            "checkpointTime": recorded.saved,
            "openBatch": recorded.open_batch,
            "tables": [_table(name, counts, recorded.filtered) for name, counts in recorded.tables.items()],
            "clampedValues": [{"table": name, "values": count} for name, count in recorded.clamped.items()],
            "passedOver": [
                {"table": name, "rule": rule, "rowEvents": count} for (name, rule), count in recorded.skipped.items()
            ],
        }
    one = {"name": config.name, "unit": "Sync" if sync else "", "result": _result(recorded), "sync": sync}
    return {"sourceStatus": {"source": recorded.source}, "subTaskStatus": [one]}


def _result(recorded: Recorded) -> dict[str, Any] | None:
    """Return the error that stopped the source, and its position.

    None for one that runs or was stopped in good order.
    """
    stopped = recorded.stopped
    if stopped is None:
        return None
    place = f"({stopped.position.file}, {stopped.position.offset})"
    error = {"ErrCode": stopped.code, "Message": stopped.error, "binlogPos": place, "time": stopped.time}
    return {"isCanceled": False, "errors": [error]}


def _table(name: str, counts: Mapping[str, int], filtered: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    rules = {rule: count for (target, rule), count in filtered.items() if target == name}
    return {"table": name, **counts, "filteredByRule": rules}
