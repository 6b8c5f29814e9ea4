"""Errors of the load."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

LOAD: dict[str, CatalogueEntry] = {
    "LOAD-001": CatalogueEntry(
        "this folder holds no dump that can be loaded: {fault}",
        "name the folder of a finished dump (`dir` under `loaders:`)",
    ),
    "LOAD-002": CatalogueEntry(
        "a dump file is damaged: {fault}",
        "dump again, or put an undamaged copy of the file in its place and resume",
    ),
    "LOAD-003": CatalogueEntry(
        "a dump file holds a statement that can't be loaded: {statement}",
        "only INSERT and REPLACE with VALUES can be loaded; dump again without other statements",
    ),
    "LOAD-004": CatalogueEntry(
        "the target's table {target} does not take the source's rows: {faults}",
        "change the target's columns as the text says (make them wide enough), drop that table, or route the source to"
        " another one; then start again",
    ),
    "LOAD-005": CatalogueEntry(
        "a row is in the target's table {target} already",
        "if shards share key values, make them differ (docs/how-to/merge-shards-whose-ids-clash.md) and"
        f" {ANEW}; if the row moved between shards of one source while they were copied, set"
        " `on-duplicate-logical: replace` under `loaders:` and remove nothing; else remove the row that the cause"
        " names, or set that key to `replace` or `ignore`, which keeps one of the two rows",
    ),
    "LOAD-006": CatalogueEntry(
        "the target's table {target} can't store a value unchanged",
        "widen the column that the cause names on the target, then resume. If the target has no type for the value"
        " (TiDB and MySQL have no TIME above 838:59:59), put `time-values: clamp` into the task's file and start again;"
        " in a column of a unique key, or with a dump of SQL files, that changes nothing: change the value in the"
        f" source and {ANEW}",
    ),
    "LOAD-007": CatalogueEntry(
        "another process has taken this load over; this one stopped before writing anything more",
        "run a task only once at a time; the process that started last owns the source",
    ),
    "LOAD-008": CatalogueEntry(
        "the load began with another dump: {fault}",
        "bring the dump back: start the worker that has it, and the source goes back to it by itself and goes on; or"
        " put its folder where this worker looks, then `resume-task`. Without it"
        f" {ANEW}. A folder that all workers see (`dir` under `loaders:`) spares all that",
    ),
    "LOAD-009": CatalogueEntry(
        "a single row is larger than the target takes in one statement or transaction; it begins with {row}",
        "raise the limit that the cause names (`max_allowed_packet`, `max_binlog_cache_size`; TiDB:"
        " `txn-entry-size-limit`, `txn-total-size-limit`), then resume; a binary value takes twice its size",
    ),
    "LOAD-010": CatalogueEntry(
        "the load ended with {count} file(s) unfinished",
        "resume the task; if it comes again, report it",
        retryable=True,
    ),
    "LOAD-011": CatalogueEntry(
        "the target can't create the source's {what}: {statement}",
        "create it on the target by hand, with the same columns, and with something that the target supports in"
        " place of what the cause names. The collation of a key must distinguish the same values as the source's."
        " Then resume: the load uses an object that exists as it is",
    ),
    "LOAD-016": CatalogueEntry(
        "column mapping {rule} can't add its text to column {column}: the dump holds its bytes in {charset}",
        "dump with this task (mode `full` or `all`), or with a tool that writes texts in UTF-8 (`SET NAMES utf8mb4`)",
    ),
    "LOAD-019": CatalogueEntry(
        "the rules have changed since the load began: {count:,} files, this one among them, were loaded by the old "
        "rules",
        "restore the routes, column mappings and extracted columns of their tables, and `--escape-backslash` in"
        " `extra-args`, until the load is done; "
        f"or {ANEW}, which drops the rows that the task has loaded, and its records",
    ),
    "LOAD-020": CatalogueEntry(
        "the full load is finished, but its dump, which has the binlog location to go on from, does not exist any more",
        f"{ANEW}, which drops the rows that the task has loaded, and its records",
    ),
    "LOAD-021": CatalogueEntry(
        "one INSERT met {count:,} warnings but the target lists only {listed:,}, so it is not known whether a value "
        "was changed",
        "GRANT SESSION_VARIABLES_ADMIN ON *.* to the task's account on the target, or SET GLOBAL max_error_count ="
        " 65535 there; then start again",
    ),
    "LOAD-022": CatalogueEntry(
        "a row violates unique key {key} of the target's table {target}, and not all tables that are merged into it"
        " have that key: {have} have it, {lack} lack it",
        "if the value in the cause may occur twice, run `ALTER TABLE {target} DROP KEY {key}` on the target and start"
        " again: the load goes on, and the DDL of the shards adds the key if all of them get it. Otherwise make the"
        " values differ in the source, and "
        f"{ANEW}",
    ),
    "LOAD-023": CatalogueEntry(
        "TiDB does not support a part of the source's table: {statement}",
        "create the table on the target by hand, with a substitute for what the cause names, and resume; an existing"
        " table is used as it is. Or change that part in the source, or leave the table out"
        " (`ignore-tables` under `block-allow-list:`), and start again",
    ),
    "LOAD-024": CatalogueEntry(
        "a dump of another tool holds the text of column {column} as bytes in {charset}, and the target keeps it "
        "as {kept}",
        "copy the table with Unshard, `task-mode: full` or `all`, which converts the text; or alter the column to"
        " utf8mb4 in the source, and in the target if it is another one there, and dump it anew",
    ),
    "LOAD-025": CatalogueEntry(
        "the target's table {target} holds {rows}, which an earlier attempt of this task wrote, or some of them{more}",
        "`unshard run TASK.yaml --reset` (a cluster: `stop-task`, then `start-task --reset`) lists the tables that the"
        " earlier attempt filled, drops or empties them once you agree, and begins anew. Or empty them by hand, and"
        " start again. Where the table has rows of others too, delete those of the attempt by hand, then its line in"
        " {records}",
    ),
    "LOAD-026": CatalogueEntry(
        "the target's table {target} contains {rows} that are not in the task's records{more}",
        "find out who needs them. If nobody does, run `TRUNCATE TABLE {target}` on the target (`DELETE FROM"
        " {target}` if it is system-versioned) and start again. If they are to stay, set `incremental-import: true`"
        " under `loaders:`. Otherwise route the source's table to another one",
    ),
    "LOAD-027": CatalogueEntry(
        "the server can't build the keys of a table that is loaded: {keys}",
        "all rows of the table are there, and only these keys are missing. See what the server's error says: mostly its"
        " folder for temporary files (`tmpdir`) lacks space. Then resume the task, which builds the missing keys",
    ),
    "LOAD-028": CatalogueEntry(
        "a dump of another tool does not say in which time zone the values of column {column} (TIMESTAMP) are",
        "dumpling writes them in the zone of its session, mydumper with `--skip-tz-utc` in that of the server"
        " (`SELECT @@global.time_zone, @@global.system_time_zone` on the source). If that was UTC, set `timezone: UTC`"
        " in the task's file and start again. If not, dump anew, by mydumper without"
        " `--skip-tz-utc` or by dumpling with `--params time_zone=+00:00`, and start a task of a new name with that"
        " dump, with `timezone: UTC` if it is dumpling's",
    ),
    "LOAD-029": CatalogueEntry(
        "a text in this file is not escaped {form}: {fault} at byte {byte:,}",
        "if dumpling was called with `--escape-backslash=false`, set `extra-args` to that in the task's file, under"
        " `mydumpers:`. If not, set it to `--escape-backslash=true` there, once you know why the file has such a text."
        f" Then {ANEW}: files that are loaded may have altered texts",
    ),
    "LOAD-040": CatalogueEntry(
        "there is no room to unpack {file}: {folder} has {free} MiB left",
        "make room there, or name a folder with room by TMPDIR in the environment of the Spark executors, then resume"
        " the task: it goes on where it was. A dump with smaller files (`-F 256MiB`), or uncompressed ones, needs less",
    ),
}
