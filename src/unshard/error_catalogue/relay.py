"""Errors of the relay log on disk."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

RELAY: dict[str, CatalogueEntry] = {
    "RELAY-001": CatalogueEntry(
        "the replica stream was cut",
        "nothing: it is opened again; if that does not end, check the network",
        retryable=True,
    ),
    "RELAY-003": CatalogueEntry(
        "the source sent a malformed binlog event",
        "look for a proxy that changes packets; check the file with `mariadb-binlog --verify-binlog-checksum`",
    ),
    "RELAY-004": CatalogueEntry(
        "an event does not start where the one before it ended: the source left events out",
        "an encrypted binlog or a filtering proxy does that: connect to a server that sends its binlog whole",
    ),
    "RELAY-005": CatalogueEntry(
        "an event's checksum does not fit",
        f"resume the relay; if it comes back, the source's file is damaged: remove the relay folder and {ANEW}",
    ),
    "RELAY-006": CatalogueEntry(
        "the source sent an artificial event that is not known", "report the server's version and the event type"
    ),
    "RELAY-007": CatalogueEntry(
        "the source refused the replica stream", "correct what the server reports, then resume the relay"
    ),
    "RELAY-008": CatalogueEntry(
        "another server answers: expected {expected}, found {found}",
        "if the source has failed over, set `enable-gtid: true` in the source file and start again; where it is set, a "
        "relay that no task reads goes on by `unshard ctl resume-relay -s {source_id}`. Else correct host and port",
    ),
    "RELAY-009": CatalogueEntry(
        "the source's binlog ends before this position, or has other transactions there: it was reset or restored, or"
        " lost its newest events in a crash",
        f"compare the data of both ends; then remove the relay folder and {ANEW}, or start from a position that the"
        " source has",
    ),
    "RELAY-010": CatalogueEntry(
        "the source has purged the binlog at this position",
        "put the file back on the source if you have it, then start `unshard run` again (a cluster: resume-relay and "
        "resume-task). Else "
        f"{ANEW}; keep binlogs longer (`expire_logs_days`)",
    ),
    "RELAY-011": CatalogueEntry(
        "another replica of the source uses the same server id", "nothing: a new one is drawn", retryable=True
    ),
    "RELAY-012": CatalogueEntry(
        "the source does not let this user read the binlog",
        "GRANT REPLICATION SLAVE ON *.* to the user under `from:` in the source file",
    ),
    "RELAY-013": CatalogueEntry(
        "the disk of the relay log is full: everything up to here is kept",
        "make space; what all tasks have read goes by `unshard ctl purge-relay -s {source_id} --filename BINLOG`. Then "
        "a cluster goes on by itself, at once by resume-relay and resume-task; start `unshard run` again",
    ),
    "RELAY-014": CatalogueEntry(
        "the relay log cannot be read or written",
        "check the folder's disk and rights, or name another `relay-dir` in the source file (in the worker's, if that"
        " has one), then resume",
    ),
    "RELAY-015": CatalogueEntry(
        "the relay log differs here from what the source sends",
        f"the source was reset or replaced: remove the relay folder and {ANEW}",
    ),
    "RELAY-016": CatalogueEntry(
        "the relay folder is inconsistent: {problem}",
        "restore what is missing, or remove the relay folder, and it begins anew from a task's position",
    ),
    "RELAY-019": CatalogueEntry("the relay is not running", "start-relay, or see its last error in query-status"),
    "RELAY-020": CatalogueEntry(
        "no binlog of the source begins with these GTIDs: {gtid}",
        "the source has purged them, or never had them: take others (`binlog-gtid` under `meta`), or, in"
        f" `task-mode: all`, {ANEW}",
    ),
    "RELAY-030": CatalogueEntry(
        "the server that answers now, {uuid}, lacks transactions that the target has, or may have: {gtid}",
        "it was not up to date when the source failed over to it, or does not log what it replicates "
        "(`log_slave_updates`): set the source file to a server that has them, or "
        f"{ANEW}",
    ),
    "RELAY-031": CatalogueEntry(
        "a batch of the server before the fail-over, {uuid}, is half applied, and its relay files do not exist any"
        " more",
        "put that server's sub-directory of the relay folder back; or set the source file to that server again, let "
        "the task run until it waits, and fail over then",
    ),
    "RELAY-032": CatalogueEntry(
        "the task began with server {expected}, now {found} answers, and no GTID tells where to go on there",
        f"set the source file back to the first server; to go on with the new one, {ANEW}",
    ),
    "RELAY-033": CatalogueEntry(
        "it is not known which files task {task} needs: the task has no binlog position yet",
        "wait until the task follows the binlog, or stop it; then purge again",
        retryable=True,
    ),
    "RELAY-035": CatalogueEntry(
        "`{name}` is not a file or folder of a relay log",
        "write the name of a binlog file (mysql-bin.000004), and for --sub-dir one of `server-uuid.index`",
    ),
    "RELAY-034": CatalogueEntry("a purge of the relay log is in progress", "wait until it is done", retryable=True),
    "RELAY-037": CatalogueEntry(
        "nothing is purged: this worker does not know at the moment which tasks read the relay log: {why}",
        "purge again in a few seconds",
        retryable=True,
    ),
    "RELAY-021": CatalogueEntry(
        "another process writes to this relay folder",
        "a run of this source is still alive on this machine: stop it first, or give this one its own `relay-dir`",
    ),
}
