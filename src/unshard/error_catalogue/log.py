"""Errors of the log: bytes of a binlog, the relay log on disk."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

BINLOG: dict[str, CatalogueEntry] = {
    "BINLOG-001": CatalogueEntry(
        "the checksum of a {event} event doesn't match its bytes",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-002": CatalogueEntry(
        "a {event} event is malformed",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-003": CatalogueEntry(
        "this is not a binlog file that can be read",
        "if it is a relay file, stop the task, remove it and all later ones, start the task; otherwise look at the "
        "source's version",
    ),
    "BINLOG-004": CatalogueEntry("{event} cannot be followed", "{remedy}"),
    "BINLOG-005": CatalogueEntry(
        "rows were changed by a statement, not as row images: {statement}",
        "set binlog_format=ROW on the source (globally, and in sessions that are open); apply this statement to the "
        "target by hand and start after it, or dump again",
    ),
    "BINLOG-006": CatalogueEntry(
        "a {event} event is where it is not allowed, {within}",
        "the events are out of order: stop the task, remove this relay file and all later ones, start the task: they "
        "are fetched from the source again; if it happens again, report it with the output of mariadb-binlog",
    ),
    "BINLOG-007": CatalogueEntry(
        "a transaction was rolled back in part, and its events don't tell which rows",
        "look at it with mariadb-binlog, apply what is left of it to the target by hand and start after it; don't "
        "change tables of transactional and other engines in one transaction",
    ),
    "BINLOG-020": CatalogueEntry(
        "column {column}: values of type {type} are not supported",
        "leave the table out by block-allow-list, or change the column's type at the source",
    ),
    "BINLOG-021": CatalogueEntry(
        "a value of column {column} can't be read",
        f"look at the row with mariadb-binlog; correct it at the source, or leave the table out, and {ANEW}",
    ),
    "BINLOG-022": CatalogueEntry(
        "the structure known for the table is not the one that the binlog was written with",
        "known: {known}; logged as type codes: {logged}. Give the structure of that time, "
        "`unshard ctl binlog-schema update {task_file} DB TABLE FILE -s {source_id}`, and start again; or "
        f"{ANEW}",
    ),
    "BINLOG-023": CatalogueEntry(
        "an event with row images is malformed",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-024": CatalogueEntry(
        "a {event} event stands among row events and can't be decoded",
        "look at it with mariadb-binlog; turn off at the source what writes it, and copy the tables again",
    ),
    "BINLOG-026": CatalogueEntry(
        "rows of a table that no TABLE_MAP event names",
        "start at the beginning of a transaction; if the position was not set by hand, report this as a bug",
    ),
    "BINLOG-027": CatalogueEntry(
        "column {column}: charset {charset} is unknown",
        "leave the table out by block-allow-list, or change the column's charset at the source",
    ),
    "BINLOG-028": CatalogueEntry(
        "the SQL text of a batch of rows is longer than 2 GiB",
        "make chunks smaller: lower `rows` and `chunk-filesize` of the dump",
    ),
    "BINLOG-045": CatalogueEntry(
        "column {column}: the members of {type} are not certain: the server shows an emoji in them as ?",
        "rename the members that hold an emoji or a question mark (ALTER TABLE at the source); if it is a plain"
        f" question mark, SET GLOBAL binlog_row_metadata=FULL at the source and {ANEW}",
    ),
    "BINLOG-046": CatalogueEntry(
        "row images of a system-versioned table lack columns: they don't tell a current row from history",
        f"set binlog_row_image=FULL at the source, for running sessions too, and {ANEW}",
    ),
    "BINLOG-043": CatalogueEntry(
        "column {column}: collation id {collation} is of no known character set",
        "read the table by its structure on the server instead, or change the column's collation at the source",
    ),
    "BINLOG-050": CatalogueEntry(
        "the file ends within an event",
        "it was cut off: copy it again from the server; of a relay file, stop the task, remove it and all later ones, "
        "start the task: they are fetched from the source again",
    ),
    "BINLOG-051": CatalogueEntry("the binlog file can't be read", "check the path and the rights of the file"),
    "BINLOG-055": CatalogueEntry(
        "there is no binlog to read",
        "give a binlog file, a folder with the files of one server, or a relay folder",
    ),
    "BINLOG-056": CatalogueEntry(
        "the log has columns that the schema has no place for: {columns}",
        "the table was altered: read on with the present structure, from a position after the ALTER",
    ),
    "BINLOG-057": CatalogueEntry(
        "the structure of the table isn't known",
        "set binlog_row_metadata=FULL on the source for what it writes from now on, or name a server to read the "
        "structure from: options host, port, user and password",
    ),
    "BINLOG-033": CatalogueEntry(
        "an XA statement is written in a form that isn't known: {statement}",
        "look at it with mariadb-binlog, apply what it does to the target by hand and start after it",
    ),
    "BINLOG-034": CatalogueEntry(
        "the XA transaction {xid} is committed here, but the part of the binlog in which its rows were prepared"
        " isn't here",
        f"it was prepared before the task's first binlog file. {ANEW[0].upper()}{ANEW[1:]} while `XA RECOVER` "
        "is empty on the source; or apply its rows to the target by hand and start after this position",
    ),
    "BINLOG-035": CatalogueEntry(
        "the rows of an XA transaction that is committed here can't be read again where they were prepared, {prepared}",
        "put the relay file back as it was; if it does not exist any more, stop the task, remove the relay folder"
        " and start the task: it is fetched from the source again, which must still have it",
    ),
    "BINLOG-037": CatalogueEntry(
        "a row event has images without any column, so the number of its rows is not known",
        "MySQL writes that for INSERT ... VALUES () with binlog_row_image=MINIMAL: insert the row in the target by "
        "hand and start after it, and set binlog_row_image=FULL on the source, or dump again",
    ),
    "BINLOG-030": CatalogueEntry(
        "a compressed event, {event}, can't be unpacked",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-031": CatalogueEntry(
        "a {event} event is compressed by algorithm number {algorithm}, which is not known",
        "set {setting}=OFF on the source, and start from a position after that",
    ),
    "BINLOG-032": CatalogueEntry(
        "a {event} event unpacks to {size} bytes, more than fit in one piece",
        "set binlog_transaction_compression=OFF on the source, or make its transactions smaller; start after this one",
    ),
    "BINLOG-038": CatalogueEntry(
        "column {column}: a change of a JSON document is logged without the document",
        "binlog_row_value_options=PARTIAL_JSON needs binlog_row_image=FULL to be followed: change one of them "
        f"on the source (globally, and in sessions that are open), then {ANEW}",
    ),
}

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
        "the source's binlog ends before this position: it was restored, or lost its newest events in a crash",
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
        "check the folder's disk and rights, or name another `relay-dir` in the source file, then resume",
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
