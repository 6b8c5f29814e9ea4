"""What goes wrong in the incremental migration: sync, statements, Spark."""

from __future__ import annotations

from unshard.error_catalogue.entry import Entry

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
        "create it, or run the task in mode `all` so that it is created from the source; then start again",
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
    "SYNC-010": Entry("the target table is gone", "create it again with its rows, or remove the task's checkpoint"),
    "SYNC-011": Entry(
        "DDL on a sharded table (several source tables merge into {target}): not supported yet",
        "apply the change by hand on the target, and on all shards; at each shard's statement the task stops: leave it "
        "out, `unshard ctl binlog skip {task_file} -s {source_id}`, and start again",
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
        "a statement on several tables fell between their snapshots: one holds its effect already, another does not",
        "remove the task's copy and its tables in the meta-schema, and start again from nothing",
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
        "the target's rows are made of the column as it was: undo the change on the source before going on, or remove"
        " the task's copy and its tables in the meta-schema, and start again from nothing",
    ),
    "SYNC-018": Entry(
        "the table becomes {name}, but its rows in the target carry its old name (column mapping, extracted columns)",
        "stop the task, write the new values to those rows by hand and start behind this place; or remove the task's"
        " copy and its tables in the meta-schema, and start again from nothing",
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
        "old server's order (`replica_preserve_commit_order`, `gtid_strict_mode`), or copy anew",
    ),
    "SYNC-062": Entry(
        "XA transactions that were prepared before the fail-over are not prepared in the new server's binlog: {xid}",
        "commit or roll them back on the old server, let the task pass that, and fail over then; or copy anew",
    ),
    "SYNC-030": Entry(
        "a row image lacks what finds its row in the target {target}: its key column {missing}",
        "set binlog_row_image=FULL on the source (globally, and in sessions that are open) and copy the table again; "
        "a target table with the source's own primary key does without",
    ),
    "SYNC-031": Entry(
        "an INSERT's row image lacks columns whose default is no constant: {missing}",
        "set binlog_row_image=FULL on the source (globally, and in sessions that are open) and copy the table again; "
        "or insert the row in the target by hand and start behind it",
    ),
    "SYNC-032": Entry(
        "an INSERT's row image lacks column {column}, which column mapping {rule} reads",
        "set binlog_row_image=FULL on the source (globally, and in sessions that are open) and copy the table again; "
        "or insert the row in the target by hand and start behind it",
    ),
    "SYNC-043": Entry(
        "the table has no key in the target, so a change that is applied again would double a row, unseen",
        "give the target table a primary key, or use `delivery: exactly-once` with a dump under a lock; "
        "of a task taken over from DM, stop it in DM by `stop-task` first, so that nothing comes again",
    ),
    "SYNC-044": Entry(
        "row images that lack columns can't be applied in safe mode: a REPLACE of half a row would lose the other half",
        "set binlog_row_image=FULL on the source (globally, and in sessions that are open) and copy the table again",
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
        "Where the master's store was restored from a backup, let it give a new order: "
        "`unshard ctl transfer-source {source_id} WORKER`",
    ),
    "SYNC-047": Entry(
        "a statement changed the table's structure during the dump, which was taken without a lock: its rows before "
        "and behind it can't be told apart",
        "remove the task's copy and its tables in the meta-schema, and start again from nothing without DDL meanwhile, "
        "or with `--consistency flush`",
    ),
}

DDL: dict[str, Entry] = {
    "DDL-001": Entry(
        "the statement cannot be read: {statement}",
        "compare it with the source's log; where it is whole there, make the same change on the target and leave it "
        "out, `unshard ctl binlog skip {task_file} -s {source_id}`; then start again",
    ),
    "DDL-002": Entry(
        "the statement is none that can be carried: {statement}",
        "carry the change out on the target yourself where it is needed there, leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`, then start again",
    ),
    "DDL-003": Entry(
        "the target's server cannot run the statement on an empty copy of its tables: {statement}",
        "if the cause is a privilege, grant it (the tutorial lists all) and start again; else give it in a form that "
        "the target takes, `unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`; or do its work by hand and "
        "leave it out, `unshard ctl binlog skip {task_file} -s {source_id}`; then start again",
    ),
    "DDL-004": Entry(
        "the structure that {table} had before the statement is not known: {statement}",
        "give the structure of that moment, "
        "`unshard ctl binlog-schema update {task_file} DB TABLE FILE -s {source_id}`, and start again; or keep "
        "the table out by block-allow-list",
    ),
    "DDL-005": Entry(
        "{table} is not on the target, but the statement needs it there: {statement}",
        "create it with the structure that it has upstream before the statement, or leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`; then start again",
    ),
    "DDL-006": Entry(
        "{table} has on the target neither the structure from before the statement nor the one it should have "
        "after it: {statement}",
        "somebody has altered the table meanwhile. Undo that, so that it is one of the two shown above, and start "
        "again: as before, the statement is run, as after it, it is taken as done. Or keep it: where what is found has "
        "all that the statement brings, leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`; else give what is to be run on it, "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`; then start again. "
        "Nothing behind the statement is applied yet",
    ),
    "DDL-007": Entry(
        "the process ended around a statement whose effect does not show in the structure: {statement}",
        "look on the target whether it took effect (rows, partitions); if not run it there; in either case leave it "
        "out, `unshard ctl binlog skip {task_file} -s {source_id}`, then start again",
    ),
    "DDL-008": Entry(
        "the target refused the statement: {statement}",
        "mend what the server names, start again; or leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`, or run another one in its place, "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`, and start again",
    ),
    "DDL-009": Entry(
        "the statement was run in the time zone of the source's host, which the log does not name: {statement}",
        "start the source with a fixed `default_time_zone`, such as '+00:00'; for this statement, give one without "
        "that zone, `unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`, or leave it out with `skip`; then "
        "start again",
    ),
    "DDL-010": Entry(
        "the target does not know collation {collation}, the default for what the statement creates: {statement}",
        "give one that names a character set and collation which the target has, "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`, then start again",
    ),
    "DDL-020": Entry(
        "{rule} stops the task at this statement ({event}): {statement}",
        "look what it does; then narrow the rule's events and sql-pattern, or make its action Ignore, and start again",
    ),
    "DDL-011": Entry(
        "rows of {table}, which block-allow-list keeps out, become rows of a migrated table: {statement}",
        "copy that table as it is now to the target under its new name, leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`, and start with `safe-mode: true` under `syncers`: "
        "changes that the copy has already do no harm then. Take it off when the task has come past the copy. Or let "
        "both names through, or neither, and start anew",
    ),
    "DDL-012": Entry(
        "the target has a table {table} already, a name that the statement gives to another: {statement}",
        "rename or drop that table on the target if nothing is migrated into it, then start again; where other tables "
        "are merged into it, move the rows there by hand, then leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "DDL-013": Entry(
        "sequences are not carried: {statement}",
        "keep the name {sequence} out by block-allow-list, then start again; make the sequence on the target yourself "
        "where it is needed there",
    ),
    "DDL-023": Entry(
        "{old} becomes a ghost table of online DDL by RENAME: {statement}",
        "rename it back upstream and leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`; or, if these are no tables of gh-ost or pt-osc, say so "
        "with shadow-table-rules and trash-table-rules of the task",
    ),
    "DDL-024": Entry(
        "one helper table of online DDL becomes the ghost of another by RENAME: {statement}",
        "nobody can say which statements the new ghost has behind it: bring the target's table to the source's "
        "structure by hand, then leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "DDL-025": Entry(
        "{old} takes the place of {new}, but no statement on it was seen: {statement}",
        "gh-ost or pt-osc had begun before the task did, or the ghost was filled by other means. Give the ALTER "
        "that it ran, in the name of the table: "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'ALTER TABLE DB.TABLE ...'`, then start again",
    ),
}

DDL |= {
    "DDL-026": Entry(
        "what is given for an operator is no DDL on tables with their schema: {statement}",
        "give whole statements on tables or schemas, each name as `db.table`; change rows by hand on the target",
    ),
    "DDL-033": Entry(
        "what is given for an operator is on names that the task does not take: {statement}",
        "names are the source's, and have to pass block-allow-list; take it back, "
        "`unshard ctl binlog revert {task_file} -s {source_id} -b FILE:POS`, and give it in other names, or run it on "
        "the target by hand and leave the statement out, `unshard ctl binlog skip` with the same place",
    ),
    "DDL-034": Entry(
        "the statement fills {columns} of rows that are there already with what its run on the source alone gave (a"
        " random value, a number by the order of rows, the time at which a tool copied a row); on the target they would"
        " get other values: {statement}",
        "give a statement without that, `unshard ctl binlog replace {task_file} -s {source_id} 'ALTER TABLE DB.TABLE"
        " ...'`: add the column with a constant or no default, then set the default and copy the values of those rows"
        " by hand. Or, as for AUTO_INCREMENT, copy the table again: make it on the target what the source has now,"
        " leave the statement out, `unshard ctl binlog skip {task_file} -s {source_id}`, and start with"
        " `safe-mode: true` under `syncers`. The same statement as it is, given to `replace`, is run: where"
        " nobody needs those values. Rows that are written behind the statement come with their values in any case",
    ),
    "DDL-028": Entry(
        "`{op}` is for statements, and here are row changes",
        "take it back, `unshard ctl binlog revert {task_file} -s {source_id} -b FILE:POS`; leave the changes out, "
        "`unshard ctl binlog skip` with the same place, and make others on the target by hand",
    ),
    "DDL-029": Entry(
        "a transaction that is applied piece by piece is half applied: nothing can be left out of it any more",
        "mend what the target refuses so that the rest can be applied; take the operator back, "
        "`unshard ctl binlog revert {task_file} -s {source_id} -b FILE:POS`, and start again",
    ),
    "DDL-030": Entry(
        "no structure is tracked for the table: it wasn't met yet, or the name is another one",
        "names are the source's; `unshard ctl binlog-schema update` gives it one",
    ),
    "DDL-031": Entry(
        "the table is not there to take its structure from",
        "write its CREATE TABLE, as it was at the checkpoint, to a file and give that",
    ),
    "DDL-032": Entry(
        "a batch is half applied by the structures from before: they can't be others now",
        "start the task so that the batch is finished, and stop it; what stops it on the way has to be mended first, "
        "or left out by `unshard ctl binlog skip {task_file} -s {source_id} -b FILE:POS`",
    ),
    "DDL-027": Entry(
        "{done} of the {all} operations of this statement are on the target already: nothing else can take its place",
        "run what is missing by hand, leave the rest out, `unshard ctl binlog skip {task_file} -s {source_id}`, and "
        "start again; or take back what was given: `unshard ctl binlog revert {task_file} -s {source_id}`",
    ),
}

ENGINE: dict[str, Entry] = {
    "ENGINE-001": Entry(
        "Spark can't be started on {master}",
        "check that Java 17 is installed (package openjdk-17-jre-headless), see the settings under `conf`, and {log}",
    ),
    "ENGINE-002": Entry(
        "a Spark job failed ({task})", "see the Spark log beside the task's data; start again", retryable=True
    ),
    "ENGINE-003": Entry(
        "Spark has ended in the middle of a job ({task}): its JVM, or its server, is gone",
        "see the Spark log beside the task's data, and the kernel's for one killed for want of memory; start the same "
        "command again: it goes on from here, and nothing is lost or applied twice",
    ),
    "ENGINE-004": Entry(
        "Spark is out of reach at {master}",
        "check that it runs, that the address is the one it listens on, and that no firewall is in between; then start "
        "again",
        retryable=True,
    ),
    "ENGINE-005": Entry(
        "Spark's executors don't run what this process runs: {differences}",
        "install the same release of Unshard, with the libraries of its lock file, on every machine of the cluster, "
        "and name its interpreter with `python` under `spark`; or send a packed environment with `archives`",
    ),
    "ENGINE-006": Entry(
        "Spark's executors can't run Unshard",
        "install Unshard on every machine of the cluster and name its interpreter with `python` under `spark`, or send "
        "a packed environment with `archives`",
    ),
    "ENGINE-007": Entry(
        "no Spark executor came within {seconds} s",
        "see the cluster's own pages for free cores and memory; lower spark.executor.memory and spark.cores.max under "
        "`conf`, or end what holds them; then start again",
        retryable=True,
    ),
    "ENGINE-008": Entry(
        "Spark's executors don't see the files of this folder, and dump files are handed on through it",
        "set `dir` under `loaders` to a folder of a filesystem that all machines of the cluster have at the same path "
        "(NFS, CephFS), with the right to write for the executors' user; or run this task with `master: local[*]`",
    ),
    "ENGINE-009": Entry(
        "the session at the Spark Connect server is lost ({task}): the server has ended, was started anew, or can't be "
        "reached",
        "see that the server runs; start the same command again: it goes on from here, and nothing is lost or applied "
        "twice",
        retryable=True,
    ),
    "ENGINE-010": Entry(
        "a dump under a lock needs all of its tasks at once, which Spark doesn't give with dynamic allocation",
        'set spark.dynamicAllocation.enabled to "false" under `conf`, or for Spark Connect at its server; or dump '
        "with `consistency: none`",
    ),
    "ENGINE-011": Entry(
        "the batch is {size} MiB of log and Spark's executors don't see the relay log: no more than {limit} MiB can be "
        "sent along",
        "put `relay-dir` on a filesystem that all machines of the cluster have at the same path, so that {folder} is "
        "seen there; or run this task with `master: local[*]`",
    ),
}
