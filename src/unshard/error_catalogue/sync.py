"""Errors of the incremental migration: changes of rows, checkpoints and operators."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

SYNC: dict[str, CatalogueEntry] = {
    "SYNC-001": CatalogueEntry(
        "another process has taken this source over; this one stopped before writing anything more",
        "run a task only once at a time; the process that started last owns the source",
    ),
    "SYNC-079": CatalogueEntry(
        "the target has lost commits of this process that it had confirmed; nothing was written after that",
        "start again: Unshard goes on from what the target has now, and applies again what it has lost. A target loses"
        " commits when it fails over to a replica that lagged behind, or in a power cut if it does not write each one"
        " to its disk (`innodb_flush_log_at_trx_commit = 1`)",
    ),
    "SYNC-080": CatalogueEntry(
        "the target no longer has the checkpoint of task {task} in {schema}, which this task has written: its place in"
        " the log is not known, so it does not go on",
        "find out who has dropped the records of the task. Then start it at a place before the last change that the"
        " target has: `unshard run` with `meta` in the task file; in a cluster `unshard ctl stop-task {task}`, and"
        " `unshard ctl start-task` with `--start-time` or `meta`. Without that it would leave out what came meanwhile",
    ),
    "SYNC-086": CatalogueEntry(
        "the checkpoint says that changes of merged tables wait for a sharding DDL that was met here, but the target"
        " has no record of that DDL: which changes are not applied yet is not known",
        "the target has lost commits, or rows of `…_syncer_sharding_meta` were deleted: bring all tables of the task in"
        f" the target back to one moment, or {ANEW}",
    ),
    "SYNC-002": CatalogueEntry(
        "the batch's sums don't agree: a change is unaccounted for, so the batch was not closed",
        "keep the relay log, report this as a bug with the log of this run; a new start repeats the same batch",
    ),
    "SYNC-064": CatalogueEntry(
        "the log has {indexed} row events here, but {decoded} were decoded and {skipped} passed over: the batch was "
        "not closed",
        "keep the relay log, report this as a bug with the log of this run; a new start repeats the same batch",
    ),
    "SYNC-003": CatalogueEntry(
        "a row of the source meets a row with the same key in the target",
        "if shards share key values, add a column mapping (`partition id`) or route them apart;"
        " if something else writes to the target, remove its row; then start again; or leave the change out,"
        " `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SYNC-004": CatalogueEntry(
        "the target refuses a row",
        "correct what the server reports (type, length, constraint), then start again; for a TIME beyond 838:59:59 of"
        " MariaDB outside of unique keys, put `time-values: clamp` into the task's file and start again; or leave the"
        " change out, `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SYNC-073": CatalogueEntry(
        "the target would store another value than the source's row has",
        "make the column that the cause names as wide as the source's (digits after the point of a DECIMAL, blanks at "
        "the end of a text), then start again; or leave the change out,"
        " `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SYNC-075": CatalogueEntry(
        "{what} was stored by a later version of Unshard (its form is {found}; this version reads forms up to {known})",
        "start the task with the version of Unshard that it ran with last, or a later one; nothing was changed",
    ),
    "SYNC-074": CatalogueEntry(
        "the DROP or CREATE OR REPLACE DATABASE of {schema} would drop tables of {target} that other schemas of the"
        " task share",
        "drop on the target by hand what came from this schema alone; then leave the statement out, `unshard ctl binlog"
        " skip {task_file} -s {source_id}`, and start again",
    ),
    "SYNC-053": CatalogueEntry(
        "a single row is larger than the target takes in one transaction",
        "raise the limit that the cause names (`max_allowed_packet`, `max_binlog_cache_size`; TiDB:"
        " `txn-entry-size-limit`, `txn-total-size-limit`), then start again; everything before the row is applied",
    ),
    "SYNC-005": CatalogueEntry(
        "the target failed {attempts} times in a row and the batch could not be applied",
        "check the target's load and error log; start again when it works: nothing is lost or applied twice",
        retryable=True,
    ),
    "SYNC-006": CatalogueEntry(
        "the target table does not exist",
        "create it, with the rows that the source's table had at this binlog position, and start again; or, in"
        f" `task-mode: all`, {ANEW}, which makes it from the source",
    ),
    "SYNC-007": CatalogueEntry(
        "the columns of the target table {target} do not fit those of the source table",
        "change the target's columns as the cause says, then start again",
    ),
    "SYNC-077": CatalogueEntry(
        "safe mode may not write to {target}: column {column} of a unique key takes texts for equal there that differ"
        " in the source ({equal}), and of two such rows it would keep only the last",
        "give the column a collation that keeps these texts apart (`ALTER TABLE {target} MODIFY {column} … COLLATE`"
        " utf8mb4_bin or another one; TiDB takes that while no key is on the column), and start again; or, if no unique"
        " key holds such texts, put `target_keys` under `ignore-checking-items`",
    ),
    "SYNC-076": CatalogueEntry(
        "the target's table {target} has got the trigger {trigger}, which {does}: what the source's own triggers did is"
        " in its binlog, so the trigger would do it twice",
        "`DROP TRIGGER {trigger}` on the target and start again; make it again when the task is done. If it is to run"
        " for each row that the task writes, put `target_triggers` under `ignore-checking-items`",
    ),
    "SYNC-078": CatalogueEntry(
        "a JSON document in column {column} holds a DECIMAL, a date or time, or binary data, for which JSON text has no"
        " words, or, as text, a number with more digits than a DOUBLE keeps: {target}, whose column is JSON too, would"
        " store a DOUBLE or a string in its place",
        "put `json-values: convert` into the task's file and start again, where DOUBLE and strings will do; or give the"
        " target a column of text, `ALTER TABLE {target} MODIFY {column} LONGTEXT`, and start again: it keeps the text"
        " that the source prints",
    ),
    "SYNC-008": CatalogueEntry(
        "the batch that is half applied was planned with other table structures or rules than those of now",
        "put routes, filters, mappings and the target table back as they were when the task stopped, start again",
    ),
    "SYNC-083": CatalogueEntry(
        "the batch that is half applied was begun by an earlier version of Unshard, which put changes of these tables"
        " in another order: nothing was changed",
        "start the task with the version that it ran with last and stop it, by Ctrl-C or `stop-task`, which finishes"
        " the batch; then start it with this version",
    ),
    "SYNC-009": CatalogueEntry(
        "the structure of the table is not known at this binlog position",
        "start the task in mode `all`, or create the target table so that its structure can be taken over; if the name "
        "is not that of a table (a sequence that was dropped since), keep it out by block-allow-list, and start again",
    ),
    "SYNC-081": CatalogueEntry(
        "the statement makes this table if it is not there, and whether it was can't be told any more: nothing of the"
        " table has come before. Made here, its columns are {made}. Taken over from the target, they are {there}. Read"
        " by the wrong ones, rows would arrive with other values",
        "find out whether the source had the table before this statement. If it had, give the structure of that time,"
        " `unshard ctl binlog-schema update {task_file} DB TABLE --from-target -s SOURCE.yaml` or with a FILE of its"
        " CREATE TABLE in place of `--from-target`. If the statement made it, give the statement itself,"
        ' `unshard ctl binlog replace {task_file} -s {source_id} "CREATE TABLE ..."`. Then start again',
    ),
    "SYNC-082": CatalogueEntry(
        "the structure of the table is not known at this binlog position: the source's present one and the one of the"
        " target's {target} differ in what the log need not tell, {columns}. Read by the wrong one, rows would arrive"
        " with other values",
        "give the structure that the table had at this position. Where it has not been altered since,"
        " `unshard ctl binlog-schema update {task_file} DB TABLE --from-source -s SOURCE.yaml`; where the target's"
        " table was made as it was then, the same with `--from-target`; else with a FILE of its CREATE TABLE in that"
        " place. Then start again",
    ),
    "SYNC-084": CatalogueEntry(
        "an earlier block-allow-list of this task left the table out, so {target} lacks the rows and changes that the"
        " table had until then",
        "leave the table out again, and start again. Or replace what {target} has of it by the rows that it has now;"
        " give the structure that it had at this position,"
        " `unshard ctl binlog-schema update {task_file} DB TABLE --from-source -s SOURCE.yaml`, or with a FILE of its"
        " CREATE TABLE in place of `--from-source` if it has been altered since; and start with `safe-mode: true` under"
        " `syncers`: changes that the copy has already do no harm then. Take it off when the task has come past the"
        " copy. A CREATE TABLE IF NOT EXISTS that made the table is to be given as it is, in place of all this:"
        ' `unshard ctl binlog replace {task_file} -s {source_id} "CREATE TABLE ..."`',
    ),
    "SYNC-085": CatalogueEntry(
        "the rows of this table{more} are in the target as earlier rules wrote them, {before}; by the rules of now its"
        " changes would go elsewhere, {now}",
        "put routes and column mappings back as they were, and start again. Or move the rows in the target by hand to"
        " where the rules of now have them, and confirm that for each such table,"
        " `unshard ctl binlog-schema update {task_file} DB TABLE --from-source -s SOURCE.yaml`, or with a FILE of its"
        " CREATE TABLE as of the checkpoint in place of `--from-source` if it has been altered since; then start again",
    ),
    "SYNC-010": CatalogueEntry(
        "the target table does not exist any more", f"create it again with its rows and start again, or {ANEW}"
    ),
    "SYNC-011": CatalogueEntry(
        "a DDL on one of several source tables that merge into {target}, and the task has no `shard-mode` that says"
        " when it is to be run there",
        "set `shard-mode: pessimistic` in the task file and start the task again: it goes on from here, and runs the"
        " statement once all of these tables have it (docs/how-to/merge-shards-with-ddl.md)",
    ),
    "SYNC-012": CatalogueEntry(
        "the task has no binlog position to start from: mode `incremental` needs a checkpoint or `meta` of the "
        "instance",
        "give binlog-name and binlog-pos (or binlog-gtid) under `meta` of this mysql-instance",
    ),
    "SYNC-013": CatalogueEntry(
        "a statement failed in the source with error {number} after it had done a part of its work",
        "bring the target to what the source became, leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`, and start again",
    ),
    "SYNC-014": CatalogueEntry(
        "a statement on several tables fell between their snapshots, in a copy that an earlier version took: one holds"
        " its effect already, another does not",
        ANEW,
    ),
    "SYNC-015": CatalogueEntry(
        "{rule} stops the task at this {event}",
        "check what it does; then take `{event}` out of the rule's events, or make its action Ignore, and start again: "
        "nothing of the batch around it is applied yet",
    ),
    "SYNC-048": CatalogueEntry(
        "{kind} finds no row in the target: {key}",
        "find out why the row is not there (another writer, rows that the copy left out) and put it there as it was "
        "in the source before this change; or count such rows and go on with `on-missing-row: warn`",
    ),
    "SYNC-017": CatalogueEntry(
        "the statement changes column {column}, which a column mapping reads or writes",
        f"the target's rows were made from the old column: undo the change on the source before going on, or {ANEW}",
    ),
    "SYNC-018": CatalogueEntry(
        "rows of one table become rows of {name}, but in the target they carry the name of the table that they were"
        " written to (column mapping, extracted columns)",
        "stop the task, do on the target what the statement does there (nothing, where both tables are merged into"
        f" one), write the new values to those rows by hand and start after this position; or {ANEW}",
    ),
    "SYNC-019": CatalogueEntry(
        "{rule}: a row image lacks column(s) {columns}, so it is not known whether the rule leaves the row out",
        "set binlog_row_image = FULL on the source; for what is logged already, take the rule out",
    ),
    "SYNC-040": CatalogueEntry(
        "safe mode can't write a table that foreign keys connect while they are checked: a REPLACE deletes children",
        "take `foreign_key_checks` out of the target's session until safe mode is over, then put it back",
    ),
    "SYNC-061": CatalogueEntry(
        "the new server has the transactions in another order than the one before the fail-over: no "
        "position of its binlog comes after exactly those that are applied, {known}; up to here it has {passed}",
        "check both sets for transactions that began on the new server; set the source file to a replica that has the "
        "old server's order (`replica_preserve_commit_order`, `gtid_strict_mode`); or "
        f"{ANEW}",
    ),
    "SYNC-062": CatalogueEntry(
        "XA transactions that were prepared before the fail-over are not prepared in the new server's binlog: {xid}",
        f"commit or roll them back on the old server, let the task pass that, and fail over then; or {ANEW}",
    ),
    "SYNC-030": CatalogueEntry(
        "a row image lacks key column {missing}, without which its row is not found in the target {target}",
        f"set binlog_row_image=FULL on the source (globally, and in sessions that are open) and {ANEW}; "
        "a target table with the source's own primary key does without",
    ),
    "SYNC-031": CatalogueEntry(
        "an INSERT's row image lacks columns whose default is no constant: {missing}",
        f"set binlog_row_image=FULL on the source (globally, and in sessions that are open) and {ANEW}; "
        "or insert the row in the target by hand and start after it",
    ),
    "SYNC-032": CatalogueEntry(
        "an INSERT's row image lacks column {column}, which column mapping {rule} reads",
        f"set binlog_row_image=FULL on the source (globally, and in sessions that are open) and {ANEW}; "
        "or insert the row in the target by hand and start after it",
    ),
    "SYNC-043": CatalogueEntry(
        "the table has no key in the target, so a change that is applied again would double a row unnoticed",
        "give the target table a primary key, or use `delivery: exactly-once` with a dump under a lock; "
        "of a task taken over from DM, stop it in DM by `stop-task` first, so that nothing comes again",
    ),
    "SYNC-044": CatalogueEntry(
        "row images that lack columns can't be applied in safe mode: a REPLACE of half a row would lose the other half",
        "where the status says that safe mode is on for `safe-mode: true`, take that out of `syncers`, start again; "
        f"else set binlog_row_image=FULL on the source (globally, and in sessions that are open) and {ANEW}",
    ),
    "SYNC-045": CatalogueEntry(
        "changes up to {exit} may be in the target already, and `safe-mode-duration: 0s` forbids safe mode for them "
        "(DM's 36071)",
        "take safe-mode-duration out of `syncers`, start again; safe mode ends by itself after that position",
    ),
    "SYNC-046": CatalogueEntry(
        "DM has left something unfinished that can't be taken over",
        "let DM finish it (resume-task), then stop it there; or delete what {table} has of the source once you have "
        "finished it by hand",
    ),
    "SYNC-067": CatalogueEntry(
        "operators wait for positions in the binlog of the server before the fail-over ({server}): {places}",
        "take each back, `unshard ctl binlog revert {task_file} -s {source_id} -b FILE:POS`, start again, and give it "
        "anew where the task stops in the new server's binlog",
    ),
    "SYNC-068": CatalogueEntry(
        "it is not known which binlog position is meant: no error has stopped this source, or it names no single "
        "change",
        "name the position with -b FILE:POS; `unshard status` and `unshard binlog show` print it",
    ),
    "SYNC-069": CatalogueEntry(
        "the position is passed already, or the source was never followed: its checkpoint is {checkpoint}",
        "an operator is for a later position: find it with `unshard status` and `unshard binlog show`",
    ),
    "SYNC-070": CatalogueEntry(
        "no operator waits for this position, or the batch that is under way leaves its rows out already (DM's 36065)",
        "list those that wait: `unshard ctl binlog list {task_file} -s {source_id}`. Rows that are left out already "
        "are to be written to the target by hand",
    ),
    "SYNC-071": CatalogueEntry(
        "order {own} of its master gave this process the source; {worker} has it by the later order {epoch}",
        "nothing, where the process was frozen or cut off for a while: its master takes the source away from it. "
        "Where the master's store was restored from a backup, resume the task, which gives a new order: "
        "`unshard ctl resume-task TASK -s {source_id}`",
    ),
    "SYNC-047": CatalogueEntry(
        "a statement changed the table's structure during the dump, which was taken without a lock: rows from "
        "before and after it can't be told apart",
        f"{ANEW}, without DDL meanwhile or with `--consistency flush`",
    ),
}
