"""Errors of comparisons: rows that can't be compared or repaired, outcomes that can't be judged."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

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
        "find the writer (`SHOW PROCESSLIST`, and the new events by `SHOW BINLOG EVENTS` on the source) and stop it, or"
        " give --read-only; then run the same command again. Rows of tables that the task does not take, and new binlog"
        " files, do not count as writes",
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
    "COMPARE-023": CatalogueEntry(
        "all keys that were compared are equal, but the sources have {source_rows} rows for this table and the target"
        " has {target_rows}, though nothing was written meanwhile",
        "compare again. If it says so again, report it with the structures of the tables on both ends",
    ),
    "COMPARE-024": CatalogueEntry(
        "the columns, the key or the source tables of this table have changed since the comparison began, or can't be"
        " read again, so its rows were not compared as they are now",
        "compare again, once the statement that changed it has come to the target",
    ),
    "COMPARE-025": CatalogueEntry(
        "XA transactions are prepared in the source: {xids}. Each can still be committed, also where the source is"
        " read-only, and changes it then",
        "end each of them by XA COMMIT or XA ROLLBACK with its xid as it stands here, which only their writer can"
        " choose; where the server does not know the xid, end the connection that prepared it first. Then run the same"
        " command again",
    ),
    "COMPARE-026": CatalogueEntry(
        "the {end} {server} has {table} locked, and its rows could not be read for {seconds} s",
        "on that server SHOW FULL PROCESSLIST shows who holds the lock: a session after LOCK TABLES, or an ALTER TABLE,"
        " for which readers wait also while it waits itself, as for a transaction that is left open. Let it end, or end"
        " it by KILL, and compare again; the other tables were compared",
        retryable=True,
    ),
    "COMPARE-027": CatalogueEntry(
        "the {end} {server} did not answer a statement on {table} for {seconds} s; the statement was ended there",
        "look on that server at what such a statement does (SHOW FULL PROCESSLIST while it runs, EXPLAIN). Where it"
        " reads the whole table for each range, as without an index that begins with the target's key, add that index;"
        " where the server is overloaded, compare when it is not, or by smaller ranges (`--chunk-rows 1000`); the other"
        " tables were compared",
    ),
}
