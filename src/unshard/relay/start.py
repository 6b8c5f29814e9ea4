"""The start of a relay log: the file and the byte from which it goes on.

| on disk | upstream | asked start | then |
|---|---|---|---|
| nothing | any | none | the file that the source file names, else the one the source writes now, from its start |
| nothing | any | a location | its file from its start; by GTID where that is enabled and known |
| files | the same server | none, or within them | go on after the last good event |
| files | the same server, their end purged there | none | a fresh sub-directory: nobody waits for the purged part |
| files | the same server | before or after them | a fresh sub-directory, so that there is never a hole |
| files | any | by GTID alone | in a fresh sub-directory; RelayError 008 for another server without `enable-gtid` |
| files | another server | a location | a fresh sub-directory, as where there is nothing |
| files | another server | none, gapless | by the GTIDs of their end in a fresh sub-directory, or as where there is \
nothing if the server has purged that; without `enable-gtid`, RelayError 008 |
| files | another server | none | a fresh sub-directory, as where there is nothing |

Gapless is a relay that is kept without readers too.

A file is always fetched from its first byte, also by GTID: servers change a format event that is asked for by GTID,
and only whole files are byte for byte those of the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unshard.config.source import SourceConfig
from unshard.errors import RelayError, SourceError, Where
from unshard.kernels.packets import EventChain
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.mysql.flavour import Server, binary_logs, current_location, gtid_before
from unshard.relay.gtids import GtidTracker
from unshard.relay.log import RelayLog
from unshard.relay.meta import SubDirectory, add_sub_directory, read_index, read_meta
from unshard.relay.recovery import recover
from unshard.source.requirements import check_available

PURGED = "RELAY-020"


@dataclass(frozen=True, slots=True)
class RelayStart:
    """The point at which the relay starts to fetch: byte `end` of `file` in `sub_directory`; 0: the file's start.

    `gtids` is the GTID set at that point. `chain` has the file's events up to there, and with them the transaction that
    is open there; None at a file's start.
    """

    sub_directory: SubDirectory
    file: str
    end: int
    gtids: GtidTracker
    chain: EventChain | None = None


def find_beginning(
    root: Path, connection: Any, server: Server, source: SourceConfig, start: Location | None, *, gapless: bool = False
) -> RelayStart:
    """Decide by the table above; repair the last file and begin a sub-directory where needed.

    A `start` that names a file is a location of `server`.
    """
    index = read_index(root)
    if not index:
        return _fresh(root, connection, server, source, start)
    latest = RelayLog(root, index[-1])
    if index[-1].uuid != server.uuid:
        by_gtid = not start.position.file if start is not None else gapless
        if by_gtid and not source.enable_gtid:
            values = {"expected": index[-1].uuid, "found": server.uuid}
            raise RelayError("RELAY-008", Where(source=source.source_id), values=values)
        known = read_meta(latest.folder) if start is None and gapless else None
        if known is not None and known.gtid:
            try:
                return _fresh(root, connection, server, source, known)
            except RelayError as error:
                if error.code != PURGED:
                    raise
        return _fresh(root, connection, server, source, start)
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
    meta = read_meta(log.folder)
    durable = meta.position.offset if meta is not None and meta.position.file == file else 0
    tail = recover(log.path(file), gtids, durable)
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
    return RelayStart(log.sub_directory, file, tail.end, gtids, tail.chain)


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
