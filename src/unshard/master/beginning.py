"""The start of a task: its options (a start time, the records in the target dropped), and their effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from threading import Event, Timer

from unshard.config.subtask import SubtaskConfig
from unshard.config.task import MetaConfig
from unshard.errors import ClusterError, TargetError, Where
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.flavour import identify
from unshard.operate.reset import look, undo
from unshard.retry import given_up_by
from unshard.source.position_at import position_at
from unshard.target.fence import wait_for_earlier_ddl
from unshard.target.forget import forget_task
from unshard.target.meta import MetaTables
from unshard.target.receipts import claim
from unshard.target.recorded import read_recorded
from unshard.target.sharding import forget_source

Forget = Callable[[SubtaskConfig], object]
Reset = Callable[[Sequence[SubtaskConfig], bool], tuple[str, ...]]
AtTime = Callable[[SubtaskConfig, str, bool], MetaConfig]
Leave = Callable[[SubtaskConfig, Sequence[str]], object]
PATIENCE_SECONDS = 20.0


def forget(config: SubtaskConfig) -> tuple[str, ...]:
    """Drop everything that the target has on record of the task; return the names of the tables. Raises TargetError."""
    with session(to_endpoint(config.target), "target") as connection:
        return forget_task(connection, config.meta_schema, config.name)


def reset(configs: Sequence[SubtaskConfig], ask: bool) -> tuple[str, ...]:
    """Undo in the target what the task's copy did; with `ask` only find out. Return it in lines. Raises TargetError.

    `configs`: all of the task's subtasks, none of which runs.
    """
    undone = look(configs, dumps=False)
    if not ask:
        undo(configs, undone)
    return undone.lines


def leave(config: SubtaskConfig, sources: Sequence[str]) -> None:
    """Remove these sources from the task's sharding DDL and its locks, and fence off their late writes. Idempotent.

    No sharding DDL of the task waits for these sources afterwards. A worker that was frozen or cut off when its source
    was stopped can do nothing in the target any more. `config`: a subtask of the task, of any source. Raises
    TargetError, and ClusterError CLUSTER-092 while the target executes a statement of one of them.
    """
    meta = MetaTables(config.meta_schema, config.name)
    too_long = Event()
    timer = Timer(PATIENCE_SECONDS, too_long.set)
    timer.start()
    source, waits = "", ""

    def tell(why: str) -> None:
        nonlocal waits
        waits = why or waits

    try:
        with session(to_endpoint(config.target), "target") as connection, given_up_by(too_long):
            meta.create(connection)
            for source in sources:
                epoch = claim(connection, meta, source).epoch
                wait_for_earlier_ddl(connection, meta, source, epoch, tell)
                with connection.cursor() as cursor:
                    cursor.execute("BEGIN")
                    forget_source(cursor, meta, source)
                    cursor.execute("COMMIT")
    except TargetError as error:
        if not too_long.is_set():
            raise
        values = {"seconds": f"{PATIENCE_SECONDS:g}", "task": config.name}
        raise ClusterError("CLUSTER-092", Where(source), waits or error.cause, values) from None
    finally:
        timer.cancel()


def at_time(config: SubtaskConfig, time: str, forgets: bool = False) -> MetaConfig:
    """Return the position of the first transaction from that time on.

    Raises ClusterError CLUSTER-016 where there is none, or the target has a checkpoint: beginning elsewhere would apply
    changes twice or leave some out. `forgets`: what the target has on record is dropped before the task begins.
    """
    where = Where(config.source_id)
    moment = parse_time(time)
    if not forgets:
        _refuse_checkpoint(config)
    endpoint = to_endpoint(config.source.database)
    with session(endpoint, "source") as connection:
        server = identify(connection)
        found = position_at(endpoint, connection, server, moment.timestamp())
        if found is None:
            raise ClusterError("CLUSTER-016", where, f"no transaction in the binlog is as late as {time}")
    return MetaConfig(binlog_name=found.file, binlog_pos=found.offset)


def _refuse_checkpoint(config: SubtaskConfig) -> None:
    with session(to_endpoint(config.target), "target") as connection:
        recorded = read_recorded(connection, MetaTables(config.meta_schema, config.name), config.source_id)
    if recorded.location is not None:
        cause = f"the target has a checkpoint at {recorded.location.position}: leave start-time out, or remove-meta too"
        raise ClusterError("CLUSTER-016", Where(config.source_id), cause)


def start_of(config: SubtaskConfig, time: str, at_time: AtTime, *, forgets: bool = False) -> str:
    """Return the start point of a task for a start time, as JSON; "" for the one in its file. Raises as `at_time`."""
    if not time:
        return ""
    if config.mode != "incremental":
        cause = f"start-time is for task-mode incremental; {config.mode} begins at its own dump"
        raise ClusterError("CLUSTER-016", Where(config.source_id), cause)
    return at_time(config, time, forgets).model_dump_json(by_alias=True)


def parse_time(text: str, of: str = "start-time") -> datetime:
    """Parse `YYYY-MM-DD HH:MM:SS`, in UTC, or RFC 3339 with its zone. Raises ClusterError CLUSTER-016.

    `of`: the name of the option, for the error.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        cause = f"{of} takes 'YYYY-MM-DD HH:MM:SS' in UTC, or RFC 3339 with a zone, not {text!r}"
        raise ClusterError("CLUSTER-016", cause=cause) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
