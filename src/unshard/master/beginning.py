"""The start of a task: its options (a start time, the records in the target dropped), and their effects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Timer

from unshard.api.verbs import Answer
from unshard.config.subtask import SubtaskConfig
from unshard.config.task import MetaConfig
from unshard.errors import ClusterError, TargetError, Where
from unshard.mysql.connection import Endpoint, session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.flavour import identify
from unshard.operate.reset import look, undo
from unshard.retry import given_up_by
from unshard.source.local_time import utc_of
from unshard.source.position_at import position_at
from unshard.target.fence import wait_for_earlier_ddl
from unshard.target.forget import Permit, forget_task, freely
from unshard.target.meta import MetaTables
from unshard.target.receipts import claim
from unshard.target.recorded import read_recorded
from unshard.target.sharding import forget_source

Forget = Callable[[SubtaskConfig, Permit], object]
Reset = Callable[[Sequence[SubtaskConfig], bool, Permit], tuple[str, ...]]
Leave = Callable[[SubtaskConfig, Sequence[str], Permit], object]
PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class TimedStart:
    """The start point that was found for a start time: `meta`, the first transaction from `utc` on."""

    meta: MetaConfig
    utc: datetime

    def told(self, source: str) -> str:
        """Return a line that names the start point and its time, for the answer."""
        place = f"{self.meta.binlog_name}:{self.meta.binlog_pos}"
        return f"{source} begins at {place}, its first transaction from {self.utc:%Y-%m-%d %H:%M:%S} UTC on"


AtTime = Callable[[SubtaskConfig, str, bool], TimedStart]


def forget(config: SubtaskConfig, permit: Permit = freely) -> tuple[str, ...]:
    """Drop everything that the target has on record of the task; return the names of the tables.

    Raises TargetError, and what `permit` raises.
    """
    with session(to_endpoint(config.target), "target") as connection:
        return forget_task(connection, config.meta_schema, config.name, permit)


def reset(configs: Sequence[SubtaskConfig], ask: bool, permit: Permit = freely) -> tuple[str, ...]:
    """Undo in the target what the task's copy did; with `ask` only find out. Return it in lines.

    `configs`: all of the task's subtasks, none of which runs. Raises TargetError, and what `permit` raises.
    """
    undone = look(configs, dumps=False)
    if not ask:
        undo(configs, undone, permit)
    return undone.lines


def leave(config: SubtaskConfig, sources: Sequence[str], permit: Permit = freely) -> None:
    """Remove these sources from the task's sharding DDL and its locks, and fence off their late writes. Idempotent.

    No sharding DDL of the task waits for these sources afterwards. A worker that was frozen or cut off when its source
    was stopped can do nothing in the target any more. `config`: a subtask of the task, of any source. Raises
    TargetError, ClusterError CLUSTER-092 while the target executes a statement of one of them, and what `permit`
    raises.
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
                permit()
                epoch = claim(connection, meta, source).epoch
                wait_for_earlier_ddl(connection, meta, source, epoch, tell)
                with connection.cursor() as cursor:
                    cursor.execute("BEGIN")
                    forget_source(cursor, meta, source)
                    permit()
                    cursor.execute("COMMIT")
    except TargetError as error:
        if not too_long.is_set():
            raise
        values = {"seconds": f"{PATIENCE_SECONDS:g}", "task": config.name}
        raise ClusterError("CLUSTER-092", Where(source), waits or error.cause, values) from None
    finally:
        timer.cancel()


def at_time(config: SubtaskConfig, time: str, forgets: bool = False) -> TimedStart:
    """Return the position of the first transaction from that time on. `time`: as `utc_in` takes it.

    Raises ClusterError CLUSTER-016 where there is none, or the target has a checkpoint: beginning elsewhere would apply
    changes twice or leave some out. `forgets`: what the target has on record is dropped before the task begins.
    """
    where = Where(config.source_id)
    endpoint = to_endpoint(config.source.database)
    utc = utc_in(endpoint, time, where)
    if not forgets:
        _refuse_checkpoint(config)
    with session(endpoint, "source") as connection:
        server = identify(connection)
        found = position_at(endpoint, connection, server, utc.timestamp())
        if found is None:
            cause = f"no transaction in the binlog is as late as {time} ({utc:%Y-%m-%d %H:%M:%S} UTC)"
            raise ClusterError("CLUSTER-016", where, cause)
    return TimedStart(MetaConfig(binlog_name=found.file, binlog_pos=found.offset), utc)


def utc_in(endpoint: Endpoint, text: str, where: Where) -> datetime:
    """Return a start time in UTC, without its fraction of a second, which no event of a binlog has.

    A time without a zone is in the source's own time zone, as in DM: in its `@@global.time_zone` and that zone's rules
    at that time. Raises ClusterError CLUSTER-016 for one that is no moment there or several, as when clocks are set
    forth or back.
    """
    moment = parse_time(text).replace(microsecond=0)
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    found = utc_of(endpoint, moment.isoformat(" "))
    if found is None:
        cause = f"start-time {text} is no moment in the time zone of the source, or several: write it with its zone"
        raise ClusterError("CLUSTER-016", where, f"{cause}, as 2026-10-25T02:30:00+02:00")
    return datetime.fromisoformat(found).replace(tzinfo=UTC)


def _refuse_checkpoint(config: SubtaskConfig) -> None:
    with session(to_endpoint(config.target), "target") as connection:
        recorded = read_recorded(connection, MetaTables(config.meta_schema, config.name), config.source_id)
    if recorded.location is not None:
        cause = f"the target has a checkpoint at {recorded.location.position}: leave start-time out, or remove-meta too"
        raise ClusterError("CLUSTER-016", Where(config.source_id), cause)


def starts_of(
    configs: Iterable[SubtaskConfig], time: str, at_time: AtTime, *, forgets: bool = False
) -> dict[str, TimedStart]:
    """Return the start point of each source for a start time; none without one: a task begins as its file says.

    Raises as `at_time`, and CLUSTER-016 for a task that is not incremental.
    """
    found = {}
    for config in configs if time else ():
        if config.mode != "incremental":
            cause = f"start-time is for task-mode incremental; {config.mode} begins at its own dump"
            raise ClusterError("CLUSTER-016", Where(config.source_id), cause)
        found[config.source_id] = at_time(config, time, forgets)
    return found


def with_starts(answer: Answer, starts: Mapping[str, TimedStart]) -> Answer:
    """Return the answer with a line in `msg` for each start point that was found for a start time."""
    lines = (start.told(source) for source, start in starts.items())
    return {**answer, "msg": "\n".join(filter(None, (answer["msg"].rstrip(), *lines)))} if starts else answer


def parse_time(text: str, of: str = "start-time") -> datetime:
    """Parse `YYYY-MM-DD HH:MM:SS`, which names no zone, or RFC 3339 with its zone. Raises ClusterError CLUSTER-016.

    `of`: the name of the option, for the error.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        cause = f"{of} takes 'YYYY-MM-DD HH:MM:SS', or RFC 3339 with a zone, not {text!r}"
        raise ClusterError("CLUSTER-016", cause=cause) from None
