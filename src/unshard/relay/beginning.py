"""The start of a relay log: recovery of its newest file after a crash, and the position from which it goes on.

A file is read from its start and truncated after the last good event. The source sends everything again that is
truncated, torn or damaged, so nothing is lost and no byte is guessed.

| on disk | upstream | asked start | then |
|---|---|---|---|
| nothing | any | none | the file that the source file names, else the one the source writes now, from its start |
| nothing | any | a location | its file from its start; by GTID where that is enabled and known |
| files | the same server | none, or within them | go on after the last good event |
| files | the same server, their end purged there | none | a fresh sub-directory: nobody waits for the purged part |
| files | the same server | before or after them | a fresh sub-directory, so that there is never a hole |
| files | any | by GTID alone | by GTID in a fresh sub-directory |
| files | another server | any | by GTID in a fresh sub-directory; without `enable-gtid`, RelayError 008 |

A file is always fetched from its first byte, also by GTID: servers change a format event that is asked for by GTID,
and only whole files are byte for byte those of the source.

The check `meta_position` of an incremental task (can it begin at its `meta`?) asks the server, and reads no events
(`start_fault`).
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import MySQLdb

from unshard.config.source import SourceConfig
from unshard.config.subtask import SubtaskConfig
from unshard.errors import RelayError, SourceError, UnshardError, Where
from unshard.kernels import packets
from unshard.kernels.packets import EventChain
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.mysql.connection import rows
from unshard.mysql.flavour import Flavour, Server, binary_logs, current_location, gtid_before
from unshard.relay.gtids import GtidTracker
from unshard.relay.log import MAGIC, RelayLog
from unshard.relay.meta import SubDirectory, add_sub_directory, disk, read_index, read_meta
from unshard.source.replica_protocol import HEADER_LENGTH, format_has_checksum, rotate_target
from unshard.source.requirements import check_available

_HEAD_BYTES = 1 << 20
_ROTATE, _FORMAT = 4, 15
_REASONS = {
    packets.MORE: "an event is cut off",
    packets.SPECIAL: "an event stands where it cannot be",
    packets.BAD_LENGTH: "an event's length is wrong",
    packets.BAD_POSITION: "an event does not know its own place",
    packets.BAD_CHECKSUM: "an event's checksum does not fit",
}


@dataclass(frozen=True, slots=True)
class Tail:
    """The good part of a relay file.

    `end` is its size now (0 when not even the format event was whole), `dropped` how many bytes were truncated and
    `reason` why, `next_file` the file that its closing ROTATE event names.
    """

    end: int
    dropped: int = 0
    reason: str = ""
    next_file: str | None = None


def recover(path: Path, gtids: GtidTracker) -> Tail:
    """Read the file, truncate what is not good, and bring `gtids` to the set at its end. Idempotent."""
    with disk(path), path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        tail = Tail(0, size, "the file does not open as a binlog") if size else Tail(0)
        if size > len(MAGIC):
            with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
                tail = _examine(view, size, gtids)
        if tail.dropped:
            file.truncate(tail.end)
            os.fsync(file.fileno())
    return tail


def _examine(view: memoryview, size: int, gtids: GtidTracker) -> Tail:
    chain = EventChain()
    first = _event(view, len(MAGIC), size)
    if bytes(view[:4]) != MAGIC or first is None or first[4] != _FORMAT or chain.append(first):
        return Tail(0, size, "the file does not open as a binlog")
    chain.checksum = format_has_checksum(first)
    next_file = None
    verdict = chain.walk(view, view, size)
    if verdict == packets.SPECIAL:
        event = _event(view, chain.position, size)
        if event is not None and event[4] == _ROTATE:
            verdict = chain.append(event)
            if verdict == packets.MORE:
                next_file = rotate_target(event)[0]
    gtids.begin_file(view[: min(chain.position, _HEAD_BYTES)], len(MAGIC))  # only the good part is read
    gtids.add(chain.take_gtids())
    dropped = size - chain.position
    return Tail(chain.position, dropped, _REASONS[verdict] if dropped else "", next_file)


def _event(view: memoryview, at: int, end: int) -> bytes | None:
    if end - at < HEADER_LENGTH:
        return None
    length = int.from_bytes(view[at + 9 : at + 13], "little")
    return bytes(view[at : at + length]) if HEADER_LENGTH <= length <= end - at else None


@dataclass(frozen=True, slots=True)
class RelayStart:
    """Fetch `file` of `sub_directory` from byte `end` on; 0: from its start.

    `gtids` has the set at `end`.
    """

    sub_directory: SubDirectory
    file: str
    end: int
    gtids: GtidTracker


def find_beginning(
    root: Path, connection: Any, server: Server, source: SourceConfig, start: Location | None
) -> RelayStart:
    """Decide by the table above; repair the last file and begin a sub-directory where needed."""
    index = read_index(root)
    if not index:
        return _fresh(root, connection, server, source, start)
    latest = RelayLog(root, index[-1])
    if index[-1].uuid != server.uuid:
        if not source.enable_gtid:
            values = {"expected": index[-1].uuid, "found": server.uuid}
            raise RelayError("RELAY-008", Where(source=source.source_id), values=values)
        known = read_meta(latest.folder)
        wanted = start if start and start.gtid else known
        return _fresh(root, connection, server, source, wanted)
    files = latest.files()
    if files and (start is None or _reaches(start, files)):
        beginning = _resume(latest, files[-1], server, source)
        if start is None:
            useful = beginning.file in {log.name for log in binary_logs(connection)}
        else:
            useful = start.position.number <= Position(beginning.file).number
        if useful:
            return beginning
    return _fresh(root, connection, server, source, start)


def file_with_gtids(connection: Any, server: Server, gtid: str, source: str) -> str:
    """Return the newest binlog file that begins with a GTID set inside `gtid`. Raises RelayError 020."""
    wanted = server.gtid_set(gtid)
    names = [log.name for log in binary_logs(connection)]
    low, high = 0, len(names)  # the first `low` files begin inside the set, those from `high` on don't
    while low < high:
        middle = (low + high) // 2
        begins_inside = wanted.contains(gtid_before(connection, server, names[middle]))  # type: ignore[arg-type]
        low, high = (middle + 1, high) if begins_inside else (low, middle)
    if not low:
        raise RelayError("RELAY-020", Where(source=source), values={"gtid": gtid})
    return names[low - 1]


def _reaches(start: Location, files: tuple[str, ...]) -> bool:
    """Return whether `start` lies in these files, or in the next one, to which the last of them may lead.

    A start without a file, by GTID alone, does not.
    """
    if not start.position.file:
        return False
    first, last = Position(files[0]), Position(files[-1])
    same_name = first.file.rpartition(".")[0] == start.position.file.rpartition(".")[0]
    return same_name and first.number <= start.position.number <= last.number + 1


def _resume(log: RelayLog, file: str, server: Server, source: SourceConfig) -> RelayStart:
    gtids = GtidTracker(server)
    tail = recover(log.path(file), gtids)
    if tail.dropped:
        logger("relay", source=source.source_id).warning(
            "relay file mended: its end is fetched again",
            file=str(log.path(file)),
            kept_bytes=tail.end,
            dropped_bytes=tail.dropped,
            reason=tail.reason,
        )
    if tail.next_file is not None:
        return RelayStart(log.sub_directory, tail.next_file, 0, gtids)
    return RelayStart(log.sub_directory, file, tail.end, gtids)


def _fresh(root: Path, connection: Any, server: Server, source: SourceConfig, start: Location | None) -> RelayStart:
    file = _first_file(connection, server, source, start)
    return RelayStart(add_sub_directory(root, server.uuid), file, 0, GtidTracker(server))


def _first_file(connection: Any, server: Server, source: SourceConfig, start: Location | None) -> str:
    name = source.source_id
    gtid = start.gtid if start else source.relay_binlog_gtid
    if source.enable_gtid and gtid:
        return file_with_gtids(connection, server, gtid, name)
    file = start.position.file if start else source.relay_binlog_name
    if file:
        check_available(connection, Position(file), name)
        return file
    now = current_location(connection, server)
    if now is None:
        raise SourceError("SOURCE-030", Where(source=name))
    return now.position.file


_WRONG_OFFSET, _DENIED = 1220, 1227
_PURGED = "SELECT GTID_SUBSET(@@global.gtid_purged, %s)"


def start_fault(connection: Any, server: Server, config: SubtaskConfig) -> tuple[str, str] | None:
    """Return the fault of an incremental task's start and its remedy; None if there is none.

    If the account may not ask, `replication_privilege` reports that, and this function returns None.
    """
    start = config.start
    if config.mode != "incremental" or start is None:
        return None
    try:
        logs = binary_logs(connection)
        if not logs:
            return None  # binlog_enable reports it
        oldest = f"write `meta: {{binlog-name: {logs[0].name}, binlog-pos: 4}}`, the oldest that it has, or copy anew"
        if not start.binlog_name:
            return _gtid_fault(connection, server, start.binlog_gtid, config.source_id, oldest)
        size = {log.name: log.size for log in logs}.get(start.binlog_name)
        if size is None:
            return f"the source has no binlog file {start.binlog_name}", oldest
        place = str(Position(start.binlog_name, start.binlog_pos))
        if start.binlog_pos > size:
            end = f"write `binlog-pos: {size}`, its end now, or a place before it"
            return f"{place} is behind the end of that file, {size}", end
        if not _begins_an_event(connection, start.binlog_name, start.binlog_pos):
            ends = f"write an `End_log_pos` of SHOW BINLOG EVENTS IN '{start.binlog_name}' for `binlog-pos`"
            return f"no event begins at {place}", ends
    except MySQLdb.Error as error:
        if error.args[0] != _DENIED:
            raise
    return None


def _begins_an_event(connection: Any, file: str, offset: int) -> bool:
    """Return whether an event begins at the offset, or the file ends there.

    For any other offset MariaDB returns an error, and MySQL shows the next event.
    """
    try:
        found = rows(connection, "SHOW BINLOG EVENTS IN %s FROM %s LIMIT 1", (file, offset))
    except MySQLdb.Error as error:
        if error.args[0] != _WRONG_OFFSET:
            raise
        return False
    return not found or int(found[0][1]) == offset


def _gtid_fault(connection: Any, server: Server, gtid: str, source: str, oldest: str) -> tuple[str, str] | None:
    if server.flavour is Flavour.MYSQL:
        if rows(connection, _PURGED, (gtid,))[0][0]:
            return None
        ((purged,),) = rows(connection, "SELECT @@global.gtid_purged")
        return f"the source has purged transactions that {gtid} lacks", f"{oldest}; gtid_purged is {purged}"
    try:
        file_with_gtids(connection, server, gtid, source)
    except (UnshardError, ValueError) as error:
        return f"the source can't go on behind {gtid}: {error}", oldest
    return None
