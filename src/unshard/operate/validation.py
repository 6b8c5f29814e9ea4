"""`validation`: the verbs of continuous validation, which read and write its records in the target."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

from unshard.api.status import ProcessError, ProcessResult, ValidationStatus
from unshard.api.verbs import Validation
from unshard.config.subtask import SubtaskConfig
from unshard.errors import ClusterError, Where
from unshard.model.gtid import MariadbGtidSet, MysqlGtidSet
from unshard.model.position import Location, Position
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.operate.subject import Subject, wrong_use
from unshard.target.loaded_rows import FullLoadProgress, full_load_progress
from unshard.target.meta import MetaTables
from unshard.target.validation import (
    RUNNING,
    STOPPED,
    PendingSize,
    ValidationState,
    load_state,
    load_table_statuses,
    pending_size,
    set_cutover,
    set_stage,
)
from unshard.target.validation_errors import (
    ErrorState,
    RowError,
    clear_errors,
    count_errors,
    load_errors,
    settle_errors,
)
from unshard.target.validation_tables import create_validation

LATER = "takes effect when the task is started again"
_FOLLOWS_NOTHING = (
    "task {task} has mode {mode} and follows no binlog, so no validator runs for it; `unshard compare` compares the"
    " rows that were loaded"
)
_RUNS_ALREADY = (
    "the validator of {source} runs already and looks at no row again: `unshard ctl validation stop {task}`, then start"
    " it with --start-time"
)
_EXTRA_UNSEEN = (
    "rows of the full load that only the target has are not looked for: the task has several sources, and each compares"
    " its own rows; `unshard compare` finds them"
)
_PLACE = re.compile(r"^\(\s*(\S+)\s*,\s*(\d+)\s*\)$|^(\S+):(\d+)$")
_STATES = {
    "unprocessed": (ErrorState.NEW,),
    "ignored": (ErrorState.IGNORED,),
    "resolved": (ErrorState.RESOLVED,),
    "all": tuple(ErrorState),
}
_WORDS = {ErrorState.NEW: "NewErr", ErrorState.IGNORED: "IgnoredErr", ErrorState.RESOLVED: "ResolvedErr"}


def answer_validation(
    subjects: Sequence[Subject], request: Validation, who: str, effect: Callable[[str, str], str] = lambda *_: LATER
) -> dict[str, Any]:
    """Return the answer over the tasks that are meant, in dmctl's form.

    `effect`: when a start or stop shows on a task's source, in words. `who` is stored in the record of errors that are
    settled. Raises ClusterError CLUSTER-047, TargetError.
    """
    if request.op in ("status", "show-error"):
        (subject,) = subjects
        return _status(subject, request) if request.op == "status" else _errors(subject, request)
    _check(request)
    answers = [
        subject.each(subject.chosen(request.sources), _doer(subject, request, who, effect)) for subject in subjects
    ]
    sources = [one for answer in answers for one in answer["sources"]]
    return {"result": all(answer["result"] for answer in answers), "msg": "", "sources": sources}


def _check(request: Validation) -> None:
    if request.op == "start" and request.start_time:
        try:
            datetime.fromisoformat(request.start_time)
        except ValueError:
            raise wrong_use("--start-time is written as '2026-01-31 12:00:00' or 2026-01-31T12:00:00Z") from None
    if request.op in ("ignore-error", "resolve-error", "clear-error") and bool(request.id) == request.all:
        raise wrong_use(f"validation {request.op} needs the id of an error, as show-error prints it, or --all")
    if request.op == "update" and bool(request.cutover_binlog_pos) == bool(request.cutover_binlog_gtid):
        raise wrong_use("validation update needs --cutover-binlog-pos or --cutover-binlog-gtid")


def _doer(
    subject: Subject, request: Validation, who: str, effect: Callable[[str, str], str]
) -> Callable[[Any, MetaTables, str], str]:
    """Return the function that runs the verb for one source."""
    numbers = None if request.all else [request.id]
    state = ErrorState.IGNORED if request.op == "ignore-error" else ErrorState.RESOLVED

    def settle(connection: Any, meta: MetaTables, source: str) -> str:
        count = _in_one(connection, lambda cursor: settle_errors(cursor, meta, source, numbers, state, who))
        return f"{count} errors"

    def clear(connection: Any, meta: MetaTables, source: str) -> str:
        return f"{_in_one(connection, lambda cursor: clear_errors(cursor, meta, source, numbers))} errors"

    def start(connection: Any, meta: MetaTables, source: str) -> str:
        config = subject.configs.get(source)
        if config is not None and config.mode not in ("incremental", "all"):
            raise wrong_use(_FOLLOWS_NOTHING.format(task=subject.task, mode=config.mode))
        if request.start_time:
            _refuse_start_time(config)
        create_validation(connection, meta)
        known = load_state(connection, meta, source)
        if known is not None and (known.stage, known.mode) == (RUNNING, request.mode):
            if request.start_time:
                raise wrong_use(_RUNS_ALREADY.format(source=source, task=subject.task))
            return "the validator runs already"
        set_stage(connection, meta, source, RUNNING, request.mode)
        told = effect(subject.task, source)
        return f"{told}; all rows are compared, so those that changed since then too" if request.start_time else told

    def stop(connection: Any, meta: MetaTables, source: str) -> str:
        known = load_state(connection, meta, source)
        if known is None or known.stage != RUNNING:
            return "the validator does not run"
        set_stage(connection, meta, source, STOPPED)
        return effect(subject.task, source)

    def update(connection: Any, meta: MetaTables, source: str) -> str:
        if load_state(connection, meta, source) is None:
            raise _never(source)
        set_cutover(connection, meta, source, _cutover(request))
        return effect(subject.task, source)

    def known(one: Callable[[Any, MetaTables, str], str]) -> Callable[[Any, MetaTables, str], str]:
        def checked(connection: Any, meta: MetaTables, source: str) -> str:
            if load_state(connection, meta, source) is None:
                raise _never(source)
            return one(connection, meta, source)

        return checked

    kinds = {"start": start, "stop": stop, "update": update, "clear-error": known(clear)}
    return kinds.get(request.op, known(settle))


def _refuse_start_time(config: SubtaskConfig | None) -> None:
    """Raise CLUSTER-047 unless a start compares all rows, also those that only the target has."""
    alone = config is not None and len(config.peers) <= 1
    if config is None or not alone or not config.validator.full_load_rows_per_second:
        raise wrong_use(
            "--start-time is taken where a start compares all rows, which those that changed since then are among: in a"
            " task of mode all, with one source and full-load-rows-per-second above 0. Start without it, and compare"
            " all rows once with `unshard compare`"
        )


def _never(source: str) -> ClusterError:
    error = wrong_use("the source has never been validated: `unshard ctl validation start` begins it")
    return ClusterError(error.code, Where(source), error.cause)


def _cutover(request: Validation) -> Location:
    """Return the location that was given. Raises ClusterError CLUSTER-047."""
    if request.cutover_binlog_gtid:
        kind = MysqlGtidSet if ":" in request.cutover_binlog_gtid else MariadbGtidSet
        try:
            kind.parse(request.cutover_binlog_gtid)
        except ValueError:
            raise wrong_use(
                "--cutover-binlog-gtid is a GTID set as the source prints it: gtid_binlog_pos on MariaDB, such as"
                " 0-1-270; gtid_executed on MySQL"
            ) from None
        return Location(Position("", 0), request.cutover_binlog_gtid)
    found = _PLACE.match(request.cutover_binlog_pos.strip())
    if found is None:
        raise wrong_use("--cutover-binlog-pos is written as '(mysql-bin.000003, 1234)' or mysql-bin.000003:1234")
    return Location(Position(found[1] or found[3], int(found[2] or found[4])))


def _in_one(connection: Any, write: Callable[[Any], int]) -> int:
    with closing(connection.cursor()) as cursor:
        cursor.execute("BEGIN")
        count = write(cursor)
        cursor.execute("COMMIT")
    return count


def _status(subject: Subject, request: Validation) -> dict[str, Any]:
    meta = MetaTables(subject.meta_schema, subject.task)
    validators: list[dict[str, Any]] = []
    tables: list[dict[str, str]] = []
    with session(to_endpoint(subject.target), "target") as connection:
        for source in subject.chosen(request.sources):
            state = load_state(connection, meta, source)
            if state is None:
                continue
            size, errors = pending_size(connection, meta, source), count_errors(connection, meta, source)
            loaded = full_load_progress(connection, meta, source)
            form = validation_form(subject.task, source, state, size, errors, full_load=loaded)
            validators.append(form.model_dump(mode="json", by_alias=True))
            for table, target, stage, message in load_table_statuses(connection, meta, source):
                if request.table_stage in ("", stage.lower()):
                    names = {"srcTable": table.quoted, "dstTable": target.quoted}
                    tables.append({"source": source, **names, "stage": stage, "message": message})
    message = "" if validators else _why_none(subject)
    if len(subject.sources) > 1 and any(one["fullLoadRowsStatus"] for one in validators):
        message = _EXTRA_UNSEEN
    return {"result": True, "msg": message, "validators": validators, "tableStatuses": tables}


def _why_none(subject: Subject) -> str:
    """Return why no source of the task has a record of its validation."""
    for config in subject.configs.values():
        if config.mode not in ("incremental", "all"):
            return _FOLLOWS_NOTHING.format(task=subject.task, mode=config.mode)
    return "no source of the task has been validated"


def validation_form(
    task: str,
    source: str,
    state: ValidationState,
    pending: PendingSize,
    errors: Iterable[int],
    result: ProcessResult | None = None,
    full_load: FullLoadProgress | None = None,
) -> ValidationStatus:
    """Return DM's form of a source's validation. Keys that wait for their first look count as updates."""
    inserts, updates, deletes = pending.kinds
    place, cutover = state.location, state.cutover
    if result is None and state.fault:
        message = state.fault
        result = ProcessResult(errors=(ProcessError(ErrCode=message[:11], Message=message),))
    return ValidationStatus(
        task=task,
        source=source,
        mode=state.mode,
        stage=state.stage,
        validator_binlog=_binlog(place),
        validator_binlog_gtid=place.gtid if place is not None else "",
        result=result,
        processed_rows_status=_by_kind(state.processed),
        pending_rows_status=_by_kind((inserts, updates + pending.unseen, deletes)),
        error_rows_status="new/ignored/resolved: " + "/".join(map(str, errors)),
        full_load_rows_status=_full_load(full_load) if full_load is not None else "",
        cutover_binlog_pos=_binlog(cutover),
        cutover_binlog_gtid=cutover.gtid if cutover is not None else "",
        cutover_status=_cutover_status(state, pending, full_load),
    )


def _cutover_status(state: ValidationState, pending: PendingSize, full_load: FullLoadProgress | None) -> str:
    """Return whether all rows up to the recorded place of the cut-over are judged; empty where there is no place."""
    if state.cutover is None:
        return ""
    if state.stage != RUNNING:
        return "not validated: the validator does not run"
    if state.location is None or not _has_passed(state.location, state.cutover):
        return "not reached"
    loaded = full_load is None or full_load.tables_done == full_load.tables
    return "rows left to judge" if pending.rows or not loaded else "validated"


def _has_passed(place: Location, cutover: Location) -> bool:
    if not cutover.gtid:
        return place.position >= cutover.position
    try:
        if ":" in cutover.gtid:
            return MysqlGtidSet.parse(place.gtid).contains(MysqlGtidSet.parse(cutover.gtid))
        return MariadbGtidSet.parse(place.gtid).contains(MariadbGtidSet.parse(cutover.gtid))
    except ValueError:  # the set is of a server of another kind
        return False


def _full_load(progress: FullLoadProgress) -> str:
    if not progress.tables:
        return ""
    tables, compared = f"{progress.tables_done}/{progress.tables}", f"{progress.rows_done}/{progress.rows_about}"
    return f"tables done/all, rows done/about: {tables}, {compared}"


def _by_kind(counts: Iterable[int]) -> str:
    return "insert/update/delete: " + "/".join(map(str, counts))


def _binlog(place: Location | None) -> str:
    return f"({place.position.file}, {place.position.offset})" if place is not None and place.position.file else ""


def _errors(subject: Subject, request: Validation) -> dict[str, Any]:
    meta = MetaTables(subject.meta_schema, subject.task)
    sources = subject.chosen(request.sources)
    with session(to_endpoint(subject.target), "target") as connection:
        if all(load_state(connection, meta, source) is None for source in sources):
            return {"result": True, "msg": "no source of the task has been validated", "error": []}
        found = load_errors(connection, meta, sources, _STATES[request.error], limit=request.limit + 1)
    more = f"there are more than these {request.limit:,} errors" if len(found) > request.limit else ""
    return {"result": True, "msg": more, "error": [error_form(one) for one in found[: request.limit]]}


def error_form(error: RowError) -> dict[str, Any]:
    """Return DM's form of an error. The last four keys are ours."""
    return {
        "id": str(error.number),
        "source": error.source,
        "srcTable": error.origin.quoted,
        "srcData": json.dumps(error.row, ensure_ascii=False) if error.row is not None else "",
        "dstTable": error.target.quoted,
        "dstData": json.dumps(error.found, ensure_ascii=False) if error.found is not None else "",
        "errorType": error.kind.words,
        "status": _WORDS[error.state],
        "time": error.time,
        "message": f"{', '.join(error.columns)} differ" if error.columns else "",
        "binlogPos": error.place,
        "times": error.times,
        "settledBy": error.settled_by,
        "columns": list(error.columns),
    }
