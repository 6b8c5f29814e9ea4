"""Every error code with its text, its remedy and whether a retry may help.

One table, in the order of the data flow; `docs/reference/errors.md` is generated from it. Texts are
`str.format` templates over the `values` of an error.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the catalogue. `retryable`: the same call may succeed later with nothing changed."""

    message: str
    hint: str
    retryable: bool = False


CONFIG: dict[str, Entry] = {
    "CONFIG-001": Entry(
        "{count} problem(s) in the file",
        "correct every line named above; docs/reference/config.md lists each key with what it takes",
    ),
    "CONFIG-002": Entry("the file cannot be read", "check the path, its permissions, and that the text is UTF-8"),
    "CONFIG-003": Entry(
        "the file is not YAML",
        "correct the line named above; indent with spaces, and put values that begin with * & ! % @ ` in quotes",
    ),
    "CONFIG-004": Entry(
        "the password `{reference}` cannot be read",
        "set that environment variable or make that file readable where `unshard` starts",
    ),
    "CONFIG-005": Entry(
        "task {task} and the source files do not fit together: {count} problem(s)",
        "give one --source file for each entry of `mysql-instances`, and no other",
    ),
    "CONFIG-006": Entry(
        "{name} matches more than one rule of `{section}`: {rules}",
        "narrow the patterns so that one rule of a level is left for it",
    ),
    "CONFIG-007": Entry(
        "column mapping {rule}: the {part} name `{name}` is not `{prefix}` and a number",
        "correct that prefix in the rule's `arguments`, or narrow its patterns to names that end in a number",
    ),
    "CONFIG-008": Entry(
        "column mapping {rule}: the {part} number {number} of `{name}` is over {limit}, which is all its bits hold",
        "renumber it, or leave that part out with an empty argument",
    ),
    "CONFIG-009": Entry(
        "column mapping {rule}: {column} = {value} is outside 0 … {limit}, so it cannot be merged without a clash",
        "map another column, or take the table out of the rule and give the target a key over source and id",
    ),
    "CONFIG-010": Entry(
        "column mapping {rule}: column {column} {fault}",
        "name an integer column that the table has, under `source-column` and `target-column`",
    ),
}

SOURCE: dict[str, Entry] = {
    "SOURCE-001": Entry(
        "cannot connect to the source {host}:{port} as {user}",
        "check that the server is up, and host, port, user and password under `from:` in the source file",
        retryable=True,
    ),
    "SOURCE-002": Entry(
        "the source {host}:{port} refuses user {user}",
        "correct user and password under `from:` in the source file, or the account's grants",
    ),
    "SOURCE-003": Entry("the connection to the source was lost", "look at the source's error log", retryable=True),
    "SOURCE-004": Entry("the source refused a statement: {statement}", "mend what the server names, start again"),
    "SOURCE-020": Entry(
        "the source writes no binlog, so a dump has no position to go on from",
        "start the source with `log_bin` and `binlog_format=ROW`",
    ),
    "SOURCE-030": Entry("the source writes no binlog", "set `log_bin` in the source's configuration and restart it"),
    "SOURCE-031": Entry(
        "the source's binlog_format is {format}", "SET GLOBAL binlog_format = 'ROW', reconnect clients"
    ),
    "SOURCE-032": Entry(
        "the source's binlog_row_image is {image}", "SET GLOBAL binlog_row_image = 'FULL', reconnect clients"
    ),
    "SOURCE-033": Entry(
        "the source's user {user} lacks: {missing}", "GRANT {missing} ON *.* to this user (SELECT: the tables suffice)"
    ),
}

TARGET: dict[str, Entry] = {
    "TARGET-001": Entry(
        "cannot connect to the target {host}:{port} as {user}",
        "check that the server is up, and host, port, user and password under `target-database:` in the task file",
        retryable=True,
    ),
    "TARGET-002": Entry(
        "the target {host}:{port} refuses user {user}",
        "correct user and password under `target-database:` in the task file, or the account's grants",
    ),
    "TARGET-003": Entry("the connection to the target was lost", "look at the target's error log", retryable=True),
    "TARGET-004": Entry("the target refused a statement: {statement}", "mend what the server names, start again"),
}

BINLOG: dict[str, Entry] = {
    "BINLOG-001": Entry(
        "the checksum of a {event} event doesn't match its bytes",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-002": Entry(
        "a {event} event is malformed",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-003": Entry(
        "this is not a binlog file that can be read",
        "if it is a relay file, stop the task, remove it and all later ones, start the task; otherwise look at the "
        "source's version",
    ),
    "BINLOG-004": Entry("{event} cannot be followed", "{remedy}"),
    "BINLOG-005": Entry(
        "rows were changed by a statement, not as row images: {statement}",
        "set binlog_format=ROW on the source (globally, and in sessions that are open); apply this statement to the "
        "target by hand and start after it, or dump again",
    ),
    "BINLOG-006": Entry(
        "a {event} event stands where none can be, {within}",
        "the events are out of order: stop the task, remove this relay file and all later ones, start the task: they "
        "are fetched from the source again; if it happens again, report it with the output of mariadb-binlog",
    ),
    "BINLOG-007": Entry(
        "a transaction was rolled back in part, and its events don't tell which rows",
        "look at it with mariadb-binlog, apply what is left of it to the target by hand and start after it; don't "
        "change tables of transactional and other engines in one transaction",
    ),
    "BINLOG-020": Entry(
        "column {column}: values of type {type} are not handled yet",
        "leave the table out with the block-allow list, or change the column's type at the source",
    ),
    "BINLOG-021": Entry(
        "a value of column {column} can't be read",
        "look at the row with mariadb-binlog; correct it at the source, or leave the table out, and copy it again",
    ),
    "BINLOG-022": Entry(
        "the structure known for the table is not the one that the binlog was written with",
        "known: {known}; logged as type codes: {logged}. Give the structure of that time, or copy the table again",
    ),
    "BINLOG-023": Entry(
        "an event with row images is malformed",
        "the file is damaged: stop the task, remove this relay file and all later ones, start the task: they are "
        "fetched from the source again",
    ),
    "BINLOG-024": Entry(
        "a {event} event stands among row events and can't be decoded",
        "look at it with mariadb-binlog; turn off at the source what writes it, and copy the tables again",
    ),
    "BINLOG-025": Entry(
        "a row image has not all columns of its table",
        "set binlog_row_image=FULL on the source (globally, and in sessions that are open), then copy the table again",
    ),
    "BINLOG-026": Entry(
        "rows of a table that no TABLE_MAP event names",
        "start at the beginning of a transaction; if the position was not set by hand, report this as a bug",
    ),
    "BINLOG-027": Entry(
        "column {column}: text of charset {charset} is not handled yet",
        "leave the table out with the block-allow list, or change the column's charset at the source",
    ),
    "BINLOG-028": Entry(
        "the SQL text of a batch of rows passes 2 GiB",
        "make chunks smaller: lower `rows` and `chunk-filesize` of the dump",
    ),
    "BINLOG-029": Entry(
        "column {column}: {type} in the old format of MariaDB's fractional times is not handled yet",
        "set mysql56_temporal_format=ON at the source and rebuild the table: ALTER TABLE ... FORCE",
    ),
}

RELAY: dict[str, Entry] = {
    "RELAY-001": Entry(
        "the replica stream was cut", "nothing: it is opened again; if it lasts, look at the network", retryable=True
    ),
    "RELAY-003": Entry(
        "what the source sent is no well-formed binlog event",
        "look for a proxy that changes packets; check the file with `mariadb-binlog --verify-binlog-checksum`",
    ),
    "RELAY-004": Entry(
        "an event does not start where the one before it ended: the source left events out",
        "an encrypted binlog or a filtering proxy does that: connect to a server that sends its binlog whole",
    ),
    "RELAY-005": Entry(
        "an event's checksum does not fit",
        "resume the relay; if it comes back, the source's file is damaged: start from a later one and copy anew",
    ),
    "RELAY-006": Entry(
        "the source sent an artificial event that is not known", "report the server's version and the event type"
    ),
    "RELAY-007": Entry("the source refused the replica stream", "mend what the server names, then resume the relay"),
    "RELAY-008": Entry(
        "another server answers: expected {expected}, found {found}",
        "if the source has failed over, set `enable-gtid: true` and start the relay again; else correct host and port",
    ),
    "RELAY-009": Entry(
        "the source's binlog ends before this position: it was restored, or lost its newest events in a crash",
        "compare the data of both ends; then copy anew, or start from a position that the source has",
    ),
    "RELAY-010": Entry(
        "the source has purged the binlog at this position",
        "start from a file that it still has and copy anew; keep binlogs longer (`expire_logs_days`)",
    ),
    "RELAY-011": Entry(
        "another replica of the source uses the same server id", "nothing: a new one is drawn", retryable=True
    ),
    "RELAY-012": Entry(
        "the source does not let this user read the binlog",
        "GRANT REPLICATION SLAVE ON *.* to the user under `from:` in the source file",
    ),
    "RELAY-013": Entry(
        "the disk of the relay log is full: everything up to here is kept",
        "make space, or purge relay files that all tasks have read, then resume the relay",
    ),
    "RELAY-014": Entry("the relay log cannot be read or written", "check the folder's disk and rights, then resume"),
    "RELAY-015": Entry(
        "the relay log holds other bytes here than the source sends",
        "the source was reset or replaced: remove the relay folder and copy anew",
    ),
    "RELAY-016": Entry(
        "the relay folder is not in order: {problem}",
        "restore what is missing, or remove the relay folder to begin anew from a task's position",
    ),
    "RELAY-017": Entry(
        "the relay did not reach {wanted} in {seconds} s", "see the relay's stage in query-status", retryable=True
    ),
    "RELAY-018": Entry(
        "relay files up to {file} cannot be purged: {reader} is still being read",
        "purge up to that file, or let the readers pass it first",
    ),
    "RELAY-019": Entry("the relay is not running", "start-relay, or see its last error in query-status"),
    "RELAY-020": Entry(
        "no binlog of the source begins with these GTIDs: {gtid}",
        "the source has purged them, or never had them: start from a position that it has and copy anew",
    ),
}

DUMP: dict[str, Entry] = {
    "DUMP-001": Entry(
        "the set of tables changed while it was dumped",
        "hold CREATE, DROP and RENAME TABLE back on the source until the dump is done; the task starts it over",
        retryable=True,
    ),
    "DUMP-002": Entry(
        "the dump folder is not free: it holds {found}",
        "give another folder (`dir` under `loaders:`), or remove what is in this one",
    ),
    "DUMP-003": Entry(
        "consistency `{consistency}` can't be used with task mode `{mode}`",
        "use `consistency: auto` under `mydumpers:`, or task mode `full`",
    ),
    "DUMP-004": Entry(
        "the source did not grant the lock for a consistent dump: {statement}",
        "grant RELOAD and LOCK TABLES to the account, end the long statement that holds the lock up, or use"
        " `consistency: none` with task mode `full`",
        retryable=True,
    ),
    "DUMP-005": Entry(
        "column {column} holds a value that is not what its type says",
        "correct the row on the source: the cause names the value",
    ),
    "DUMP-006": Entry(
        "a file of a finished table is missing or has another size",
        "remove the dump folder; the task dumps again",
    ),
    "DUMP-007": Entry("there is no finished dump in this folder", "let the dump finish, or name the right folder"),
    "DUMP-008": Entry(
        "a system-versioned table can't be dumped without losing its history",
        "leave it out with `block-allow-list`, or drop its versioning on the source",
    ),
    "DUMP-009": Entry("writing a dump file failed", "make room on the disk or correct the folder's rights"),
    "DUMP-010": Entry(
        "the table's structure kept changing while its snapshot was opened",
        "hold ALTER TABLE back on the source until the dump is done",
        retryable=True,
    ),
}

LOAD: dict[str, Entry] = {
    "LOAD-001": Entry(
        "this folder holds no dump that can be loaded: {fault}",
        "name the folder of a finished dump (`dir` under `loaders:`)",
    ),
    "LOAD-002": Entry(
        "a dump file is damaged: {fault}",
        "dump again, or put an undamaged copy of the file in its place and resume",
    ),
    "LOAD-003": Entry(
        "a dump file holds a statement that can't be loaded: {statement}",
        "only INSERT and REPLACE with VALUES can be loaded; dump again without other statements",
    ),
    "LOAD-004": Entry(
        "the target's table {target} does not take the source's rows: {faults}",
        "make the target's columns wide enough, drop that table, or route the source to another one",
    ),
    "LOAD-005": Entry(
        "a row is in the target's table {target} already",
        "remove the row that the cause names, or set `on-duplicate-logical: replace` (or `ignore`) under `loaders:`",
    ),
    "LOAD-006": Entry(
        "the target's table {target} would not keep a value as it is",
        "widen the column that the cause names on the target, then resume",
    ),
    "LOAD-007": Entry(
        "another process has taken this load over; this one stopped before writing anything more",
        "make sure that one task runs once; the process that started last owns the source",
    ),
    "LOAD-008": Entry(
        "the load began with another file of this name: {fault}",
        "put the first dump back, or start over with `--remove-meta` and empty target tables",
    ),
    "LOAD-009": Entry(
        "a statement of {size} bytes is over the target's max_allowed_packet of {limit}",
        "raise max_allowed_packet on the target, then resume",
    ),
    "LOAD-010": Entry(
        "the load ended with {count} file(s) unfinished",
        "resume the task; if it comes again, report it",
        retryable=True,
    ),
}

SYNC: dict[str, Entry] = {
    "SYNC-001": Entry(
        "another process has taken this source over; this one stopped before writing anything more",
        "make sure that one task runs once; the process that started last owns the source",
    ),
    "SYNC-002": Entry(
        "the batch's sums don't agree: a change is unaccounted for, so the batch was not closed",
        "keep the relay log, report this as a bug with the log of this run; a new start repeats the same batch",
    ),
    "SYNC-003": Entry(
        "a row of the source meets a row with the same key in the target",
        "if shards share key values, add a column mapping (`partition id`) or route them apart;"
        " if something else writes to the target, remove its row; then start again",
    ),
    "SYNC-004": Entry(
        "the target refuses a row", "mend what the server names (type, length, constraint), then start again"
    ),
    "SYNC-005": Entry(
        "the target failed {attempts} times in a row and the batch could not be applied",
        "look at the target's load and error log; start again when it is well: nothing is lost or applied twice",
        retryable=True,
    ),
    "SYNC-006": Entry(
        "the target table does not exist",
        "create it, or run the task in mode `all` so that it is created from the source; then start again",
    ),
    "SYNC-007": Entry(
        "the target table {target} has not the shape of the source table",
        "make the target's columns fit (see why), then start again",
    ),
    "SYNC-008": Entry(
        "the open batch was planned with other structures or rules than now",
        "put routes, column mappings and the target table back as they were when the task stopped, start again",
    ),
    "SYNC-009": Entry(
        "the structure of the table is not known at this place of the binlog",
        "start the task in mode `all`, or create the target table so that its structure can be taken over",
    ),
    "SYNC-010": Entry("the target table is gone", "create it again with its rows, or remove the task's checkpoint"),
    "SYNC-011": Entry(
        "DDL on a sharded table (several source tables merge into {target}): not supported yet",
        "apply the change by hand on the target and on all shards while the task is stopped at this place",
    ),
    "SYNC-012": Entry(
        "the task has no place to start from: mode `incremental` needs a checkpoint or `meta` of the instance",
        "give binlog-name and binlog-pos (or binlog-gtid) under `meta` of this mysql-instance",
    ),
}

DDL: dict[str, Entry] = {
    "DDL-001": Entry(
        "the statement cannot be read: {statement}",
        "compare it with the source's log; where it is whole there, skip it and make the same change on the target",
    ),
    "DDL-002": Entry(
        "the statement is none that can be carried: {statement}",
        "carry the change out on the target yourself where it is needed there, then skip the statement",
    ),
    "DDL-003": Entry(
        "the target's server cannot run the statement on an empty copy of its tables: {statement}",
        "write the statement in a form that the target takes (replace it), or skip it and do its work by hand",
    ),
    "DDL-004": Entry(
        "the structure that {table} had before the statement is not known: {statement}",
        "give the structure of that moment (`binlog-schema update`), or keep the table out by block-allow-list",
    ),
    "DDL-005": Entry(
        "{table} is not on the target, but the statement needs it there: {statement}",
        "create it with the structure that it has upstream before the statement, or skip the statement",
    ),
    "DDL-006": Entry(
        "{table} has on the target neither the structure from before the statement nor the one it should have "
        "after it: {statement}",
        "bring it to one of the two shown above, then start again; nothing behind the statement is applied yet",
    ),
    "DDL-007": Entry(
        "the process ended around a statement whose effect does not show in the structure: {statement}",
        "look on the target whether it took effect (rows, partitions); if so skip it, if not run it there and skip it",
    ),
    "DDL-008": Entry("the target refused the statement: {statement}", "mend what the server names, start again"),
    "DDL-009": Entry(
        "the statement was run in the time zone of the source's host, which the log does not name: {statement}",
        "start the source with a fixed `default_time_zone`, such as '+00:00', then replace or skip this statement",
    ),
    "DDL-010": Entry(
        "the target does not know collation {collation}, the default for what the statement creates: {statement}",
        "replace the statement by one that names a character set and collation which the target has",
    ),
    "DDL-011": Entry(
        "rows of {table}, which block-allow-list keeps out, become rows of a migrated table: {statement}",
        "copy that table to the target by hand, then skip the statement; or keep both names out, or let both through",
    ),
}

ENGINE: dict[str, Entry] = {
    "ENGINE-001": Entry(
        "Spark can't be started on {master}",
        "check that Java 17 is installed (package openjdk-17-jre-headless) and see {log}",
    ),
    "ENGINE-002": Entry(
        "a Spark job failed ({task})", "see the Spark log beside the task's data; start again", retryable=True
    ),
}

CATALOGUE: dict[str, Entry] = CONFIG | SOURCE | TARGET | BINLOG | RELAY | DUMP | LOAD | SYNC | DDL | ENGINE
