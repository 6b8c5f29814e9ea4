"""Errors of the full migration: dump, load, and comparisons of rows that can't be done or judged."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

DUMP: dict[str, CatalogueEntry] = {
    "DUMP-001": CatalogueEntry(
        "the set of tables changed while it was dumped",
        "run no CREATE, DROP or RENAME TABLE on the source, and no ALTER TABLE … ENGINE, until the dump is done; the"
        " task starts it over. A dump without a lock (MariaDB, all tables InnoDB) tolerates all but the last",
        retryable=True,
    ),
    "DUMP-002": CatalogueEntry(
        "the dump folder is not empty: it holds {found}",
        "name another folder (`dir` under `loaders:`), or remove the contents of this one",
    ),
    "DUMP-004": CatalogueEntry(
        "the source did not grant the lock for a consistent dump: {statement}",
        "grant RELOAD and LOCK TABLES to the account, end the long statement that blocks the lock, or use"
        " `--consistency none`",
        retryable=True,
    ),
    "DUMP-005": CatalogueEntry(
        "column {column} holds a value that its type does not allow",
        "correct the row on the source: the cause names the value",
    ),
    "DUMP-006": CatalogueEntry(
        "a file of a finished table is missing or has another size",
        "remove the dump folder; the task dumps again",
    ),
    "DUMP-007": CatalogueEntry(
        "there is no finished dump in this folder", "let the dump finish, or name the right folder"
    ),
    "DUMP-009": CatalogueEntry("writing a dump file failed", "make room on the disk or correct the folder's rights"),
    "DUMP-010": CatalogueEntry(
        "the table's structure kept changing while its snapshot was opened",
        "run no ALTER TABLE on the source until the dump is done",
        retryable=True,
    ),
    "DUMP-011": CatalogueEntry(
        "an XA COMMIT was in progress at every moment of {seconds} seconds; a snapshot without a lock needs one "
        "without",
        "use `--consistency flush` (`extra-args` under `mydumpers:`) for the dump, which blocks writers for a moment;"
        " or pause the XA transactions until the dump is done",
    ),
    "DUMP-012": CatalogueEntry(
        "the connection to the source was lost {attempts} times in a row; the dump was started again each time",
        "check the network and the source's error log, then start again; a dump of MariaDB without a lock goes on"
        " with the tables that are left, one with `--consistency` flush, lock or none can't",
        retryable=True,
    ),
    "DUMP-013": CatalogueEntry(
        "the source told another binlog position of the same snapshot each time, {reads} times",
        "have `from` name the source itself, not a proxy in front of it; or use `--consistency flush` (`extra-args`"
        " under `mydumpers:`) for the dump, which blocks writers for a moment",
    ),
}

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
        "make the target's columns wide enough, drop that table, or route the source to another one",
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
        f" (TiDB and MySQL have no TIME above 838:59:59), change the value in the source and {ANEW}",
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
        "restore the routes, column mappings and extracted columns of their tables until the load is done; "
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
        "a dump of another tool holds the text of column {column} as bytes in {charset}, and TiDB keeps it as utf8mb4",
        "copy the table with Unshard, `task-mode: full` or `all`, which converts the text; or alter the column to"
        " utf8mb4 in the source and dump it anew",
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
}


COMPARE: dict[str, CatalogueEntry] = {
    "COMPARE-001": CatalogueEntry(
        "the target has no table {target}, where rows of this table go",
        f"if the copy is not done, wait for it. If it is done, somebody has dropped the table from the target: {ANEW}",
    ),
    "COMPARE-002": CatalogueEntry(
        "column {column} of the source is not in the target's table {target}; the other columns were compared",
        "add the column to the target's table and fill it, or leave it out on purpose with --ignore-columns {column}",
    ),
    "COMPARE-003": CatalogueEntry(
        "the values of column {column} can't be compared: it is {here} in the source and {there} in the target; the"
        " other columns were compared",
        "give the column the same type on both sides, or leave it out on purpose with --ignore-columns {column}",
    ),
    "COMPARE-004": CatalogueEntry(
        "source {source} could not be read, and it may hold rows of this table",
        "see the error of the source itself, and compare again",
    ),
    "COMPARE-005": CatalogueEntry(
        "the task's records in the target have the table, and the account does not see it in the source",
        "grant SELECT on it to the source's account; if it was dropped in the source, a task that follows the binlog"
        " has not come to that statement yet: compare again later; a task that only copies keeps its rows",
    ),
    "COMPARE-006": CatalogueEntry(
        "the task has no checkpoint of this source, so it is not known how far its changes are in the target",
        "wait until the copy is done and the task follows the binlog; `unshard status` shows it",
    ),
    "COMPARE-007": CatalogueEntry(
        "there is no table to compare",
        "look at the block-allow list and at --table: `unshard explain` tells why a table is left out",
    ),
    "COMPARE-008": CatalogueEntry(
        "{file} holds the progress of another comparison: {fault}",
        "name another file with --state, or remove this one",
    ),
    "COMPARE-009": CatalogueEntry(
        "--where can't be applied to a table with a column mapping: its values differ on both sides",
        "compare this table without --where, and name it with --table",
    ),
    "COMPARE-010": CatalogueEntry(
        "{file} is no configuration of sync-diff-inspector that can be used: {fault}",
        "correct that key; keys and their places are those of sync-diff-inspector's own documentation",
    ),
    "COMPARE-011": CatalogueEntry(
        "column {column} holds a value that column mapping {rule} does not take: {value}",
        "the task itself refuses such a row; correct it in the source, or choose another mapping",
    ),
    "COMPARE-012": CatalogueEntry(
        "the outcome can't be written to this file",
        "name a file in a folder that is there and that you may write to",
    ),
    "COMPARE-013": CatalogueEntry(
        "rows of this table can't be repaired: {fault}",
        "stop the task, write the statements to a file with --sql, and run it while nobody writes to these rows",
    ),
    "COMPARE-014": CatalogueEntry(
        "rows of this table were not repaired within {seconds:.0f} s: {fault}",
        "a repair needs a task that has caught up. If it is stopped, start it; `unshard status` shows how far it is."
        " Then repair again, or give a longer --wait",
    ),
    "COMPARE-015": CatalogueEntry(
        "the source is still written to: its binlog went from {before} to {after}",
        "find the writer (`SHOW PROCESSLIST`, and the new events by `unshard binlog show`) and stop it, or give"
        " --read-only; then run the same command again",
    ),
    "COMPARE-016": CatalogueEntry(
        "the target has not come to {place} of the source's binlog within {seconds:.0f} s",
        "see with `unshard status` whether the task runs and how far it is; start it where it does not run, and run the"
        " same command again, or give a longer --wait",
    ),
    "COMPARE-017": CatalogueEntry(
        "the source can't be made read-only",
        "give the source's account SUPER, or READ_ONLY ADMIN on MariaDB, and on MySQL SYSTEM_VARIABLES_ADMIN with"
        " CONNECTION_ADMIN; or stop the writers yourself, and run the same command without --read-only",
    ),
    "COMPARE-018": CatalogueEntry(
        "{file} can't be used as the record of this cut-over: {fault}",
        "name another file with --state; if that cut-over is over, remove this one",
    ),
    "COMPARE-019": CatalogueEntry(
        "the task does not follow this source's binlog, so there is no place to cut over at",
        "a cut-over is for `task-mode: all` or `incremental`; after a `full` one, compare with `unshard compare`",
    ),
    "COMPARE-020": CatalogueEntry(
        "the validator has stopped: {rows} rows wait to be compared, {bytes} bytes of keys, which is more than its"
        " settings allow",
        "find out why they can't be compared as fast as they change, or raise max-pending-row-size and"
        " max-pending-row-count; then `unshard ctl validation start`. Rows that change meanwhile are not validated:"
        " `unshard compare` compares all rows",
    ),
    "COMPARE-021": CatalogueEntry(
        "the validator has met what it does not know; it tries again",
        "report this with the log; the task itself is not touched by it. `unshard ctl validation stop` ends the"
        " validation",
    ),
    "COMPARE-022": CatalogueEntry(
        "the target's account may not read {target}, where rows of this table go",
        "grant SELECT on it to the account of target-database, and compare again; the other tables were compared",
    ),
}
