"""What goes wrong in the incremental migration with changes of rows, checkpoints and operators."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, Entry

SYNC: dict[str, Entry] = {
    "SYNC-001": Entry(
        "another process has taken this source over; this one stopped before writing anything more",
        "make sure that one task runs once; the process that started last owns the source",
    ),
    "SYNC-002": Entry(
        "the batch's sums don't agree: a change is unaccounted for, so the batch was not closed",
        "keep the relay log, report this as a bug with the log of this run; a new start repeats the same batch",
    ),
    "SYNC-064": Entry(
        "the log has {indexed} row events here, but {decoded} were decoded and {skipped} passed over: the batch was "
        "not closed",
        "keep the relay log, report this as a bug with the log of this run; a new start repeats the same batch",
    ),
    "SYNC-003": Entry(
        "a row of the source meets a row with the same key in the target",
        "if shards share key values, add a column mapping (`partition id`) or route them apart;"
        " if something else writes to the target, remove its row; then start again; or leave the change out,"
        " `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SYNC-004": Entry(
        "the target refuses a row",
        "mend what the server names (type, length, constraint), then start again; or leave the change out,"
        " `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SYNC-073": Entry(
        "the target would store another value than the source's row has",
        "make the column that the cause names as wide as the source's (digits behind the point of a DECIMAL, blanks at "
        "the end of a text), then start again; or leave the change out,"
        " `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SYNC-075": Entry(
        "{what} was stored by a later version of Unshard (its form is {found}; this version reads forms up to {known})",
        "start the task with the version of Unshard that it ran with last, or a later one; nothing was changed",
    ),
    "SYNC-074": Entry(
        "DROP DATABASE of {schema} would drop tables of {target} that other schemas of the task share",
        "drop on the target by hand what came from this schema alone; then leave the statement out, `unshard ctl binlog"
        " skip {task_file} -s {source_id}`, and start again",
    ),
    "SYNC-053": Entry(
        "a single row is larger than the target takes in one transaction",
        "raise the limit that the cause names (`max_allowed_packet`, `max_binlog_cache_size`; TiDB:"
        " `txn-entry-size-limit`, `txn-total-size-limit`), then start again; everything before the row is applied",
    ),
    "SYNC-005": Entry(
        "the target failed {attempts} times in a row and the batch could not be applied",
        "look at the target's load and error log; start again when it is well: nothing is lost or applied twice",
        retryable=True,
    ),
    "SYNC-006": Entry(
        "the target table does not exist",
        "create it, with the rows that the source's table had at this binlog position, and start again; or, in"
        f" `task-mode: all`, {ANEW}, which makes it from the source",
    ),
    "SYNC-007": Entry(
        "the target table {target} has not the shape of the source table",
        "make the target's columns fit (see why), then start again",
    ),
    "SYNC-008": Entry(
        "the batch that is half applied was planned with other structures or rules than now",
        "put routes, filters, mappings and the target table back as they were when the task stopped, start again",
    ),
    "SYNC-009": Entry(
        "the structure of the table is not known at this place of the binlog",
        "start the task in mode `all`, or create the target table so that its structure can be taken over",
    ),
    "SYNC-010": Entry("the target table is gone", f"create it again with its rows and start again, or {ANEW}"),
    "SYNC-011": Entry(
        "a DDL on one of several source tables that merge into {target}, and the task has no `shard-mode` that says"
        " when it is to be run there",
        "set `shard-mode: pessimistic` in the task file and start the task again: it goes on from here, and runs the"
        " statement once all of these tables have it (docs/how-to/merge-shards-with-ddl.md)",
    ),
    "SYNC-012": Entry(
        "the task has no place to start from: mode `incremental` needs a checkpoint or `meta` of the instance",
        "give binlog-name and binlog-pos (or binlog-gtid) under `meta` of this mysql-instance",
    ),
    "SYNC-013": Entry(
        "a statement failed in the source with error {number} after it had done a part of its work",
        "bring the target to what the source became, leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`, and start again",
    ),
    "SYNC-014": Entry(
        "a statement on several tables fell between their snapshots, in a copy that an earlier version took: one holds"
        " its effect already, another does not",
        ANEW,
    ),
    "SYNC-015": Entry(
        "{rule} stops the task at this {event}",
        "look what it does; then take `{event}` out of the rule's events, or make its action Ignore, and start again: "
        "nothing of the batch around it is applied yet",
    ),
    "SYNC-048": Entry(
        "{kind} finds no row in the target: {key}",
        "find out why the row is not there (another writer, rows that the copy left out) and put it there as it was "
        "in the source before this change; or count such rows and go on with `on-missing-row: warn`",
    ),
    "SYNC-017": Entry(
        "the statement changes column {column}, which a column mapping reads or writes",
        f"the target's rows are made of the column as it was: undo the change on the source before going on, or {ANEW}",
    ),
    "SYNC-018": Entry(
        "the table becomes {name}, but its rows in the target carry its old name (column mapping, extracted columns)",
        f"stop the task, write the new values to those rows by hand and start behind this place; or {ANEW}",
    ),
    "SYNC-019": Entry(
        "{rule}: a row image lacks column(s) {columns}, so whether the rule leaves the row out can't be told",
        "set binlog_row_image = FULL on the source; for what is logged already, take the rule out",
    ),
    "SYNC-040": Entry(
        "safe mode can't write a table that foreign keys connect while they are checked: a REPLACE deletes children",
        "take `foreign_key_checks` out of the target's session until safe mode is over, then put it back",
    ),
    "SYNC-061": Entry(
        "the new server has the transactions in another order than the one before the fail-over: no place of its "
        "binlog is behind just those that are applied, {known}; up to here it has {passed}",
        "look at both sets for transactions of the new server's own; set the source file to a replica that has the "
        "old server's order (`replica_preserve_commit_order`, `gtid_strict_mode`); or "
        f"{ANEW}",
    ),
    "SYNC-062": Entry(
        "XA transactions that were prepared before the fail-over are not prepared in the new server's binlog: {xid}",
        f"commit or roll them back on the old server, let the task pass that, and fail over then; or {ANEW}",
    ),
    "SYNC-030": Entry(
        "a row image lacks what finds its row in the target {target}: its key column {missing}",
        f"set binlog_row_image=FULL on the source (globally, and in sessions that are open) and {ANEW}; "
        "a target table with the source's own primary key does without",
    ),
    "SYNC-031": Entry(
        "an INSERT's row image lacks columns whose default is no constant: {missing}",
        f"set binlog_row_image=FULL on the source (globally, and in sessions that are open) and {ANEW}; "
        "or insert the row in the target by hand and start behind it",
    ),
    "SYNC-032": Entry(
        "an INSERT's row image lacks column {column}, which column mapping {rule} reads",
        f"set binlog_row_image=FULL on the source (globally, and in sessions that are open) and {ANEW}; "
        "or insert the row in the target by hand and start behind it",
    ),
    "SYNC-043": Entry(
        "the table has no key in the target, so a change that is applied again would double a row, unseen",
        "give the target table a primary key, or use `delivery: exactly-once` with a dump under a lock; "
        "of a task taken over from DM, stop it in DM by `stop-task` first, so that nothing comes again",
    ),
    "SYNC-044": Entry(
        "row images that lack columns can't be applied in safe mode: a REPLACE of half a row would lose the other half",
        f"set binlog_row_image=FULL on the source (globally, and in sessions that are open) and {ANEW}",
    ),
    "SYNC-045": Entry(
        "changes up to {exit} may be in the target already, and `safe-mode-duration: 0s` forbids safe mode for them "
        "(DM's 36071)",
        "take safe-mode-duration out of `syncers`, start again; safe mode ends by itself behind that place",
    ),
    "SYNC-046": Entry(
        "DM has left something unfinished that can't be taken over",
        "let DM finish it (resume-task), then stop it there; or delete what {table} has of the source once you have "
        "finished it by hand",
    ),
    "SYNC-067": Entry(
        "operators wait for places in the binlog of the server before the fail-over ({server}): {places}",
        "take each back, `unshard ctl binlog revert {task_file} -s {source_id} -b FILE:POS`, start again, and give it "
        "anew where the task stops in the new server's binlog",
    ),
    "SYNC-068": Entry(
        "it isn't known which place of the log is meant: no error has stopped this source, or it names no one change",
        "name the place with -b FILE:POS; `unshard status` and `unshard binlog show` tell it",
    ),
    "SYNC-069": Entry(
        "the place is passed, or the source was never followed: its checkpoint is {checkpoint}",
        "an operator is for what is still to come: look for the place with `unshard status` and `unshard binlog show`",
    ),
    "SYNC-070": Entry(
        "no operator waits for this place (DM's 36065)",
        "see which ones do: `unshard ctl binlog list {task_file} -s {source_id}`",
    ),
    "SYNC-071": Entry(
        "this process was to have the source by order {own} of its master; {worker} has it by a later one, {epoch}",
        "nothing, where the process was frozen or cut off for a while: its master takes the source away from it. "
        "Where the master's store was restored from a backup, resume the task, which gives a new order: "
        "`unshard ctl resume-task TASK -s {source_id}`",
    ),
    "SYNC-047": Entry(
        "a statement changed the table's structure during the dump, which was taken without a lock: its rows before "
        "and behind it can't be told apart",
        f"{ANEW}, without DDL meanwhile or with `--consistency flush`",
    ),
}
