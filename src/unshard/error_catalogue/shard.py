"""Errors of sharding DDL."""

from __future__ import annotations

from unshard.error_catalogue.entry import ANEW, CatalogueEntry

SHARD: dict[str, CatalogueEntry] = {
    "SHARD-001": CatalogueEntry(
        "this table meets another statement than the tables that are merged into {target} with it: all of them must"
        " have the same statements in the same order",
        "the two lists are shown above, number by number. Where the statement is wrong or was run too early, leave it"
        " out with `unshard ctl binlog skip TASK.yaml -s {source_id} --binlog-pos POSITION`, or replace it"
        " by the expected one with `binlog replace`; then bring the tables of the source into the same structure",
    ),
    "SHARD-002": CatalogueEntry(
        "a new table joins those that are merged into {target}, in the middle of their change, without it: it has the"
        " first {met} of the statements that wait, and at least {needed} are needed",
        "a new table needs the structure that the other tables have or are getting. Drop it in the source and create it"
        " with that structure; `unshard ctl query-status` shows the statements that wait",
    ),
    "SHARD-003": CatalogueEntry(
        "there is no lock {id}",
        "`unshard ctl shard-ddl-lock TASK` shows the locks that there are; it may have been resolved meanwhile",
    ),
    "SHARD-004": CatalogueEntry(
        "this source can't own the lock {id}: its owner has to have met the DDL, and only {reported} have",
        "name one of those with `--owner`, or leave the option out",
    ),
    "SHARD-005": CatalogueEntry(
        "the lock {id} is resolved, and its owner may be running the DDL just now",
        "wait for it. If the owner will never come back, `--force-remove` gives the lock up: then nobody runs the"
        " DDL, and you have to run it on the target yourself",
    ),
    "SHARD-006": CatalogueEntry(
        "the lock {id} is unlocked, but its owner has not run the DDL within {seconds:.0f} s",
        "it will, once it runs; see `unshard ctl query-status`. If it will never come back, `--force-remove` gives"
        " the lock up: then nobody runs the DDL, and you have to run it on the target yourself",
    ),
    "SHARD-020": CatalogueEntry(
        "changes of this table wait for a sharding DDL, and the structure that they have is not known any more",
        "give it with `unshard ctl binlog-schema update {task_file}`, then start the task again",
    ),
    "SHARD-021": CatalogueEntry(
        "a table that is merged with others can't be renamed to another target table, nor be replaced",
        "where the rows are to leave the merged table, move them there by hand, then leave the statement out with"
        " `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SHARD-022": CatalogueEntry(
        "one statement changes several tables that are merged, or renames one and changes it too",
        "each table needs a statement of its own. Replace it: `unshard ctl binlog replace {task_file} -s {source_id}"
        "` with one statement, or leave it out with `binlog skip`",
    ),
    "SHARD-023": CatalogueEntry(
        "the statement takes rows of merged tables away, and the task has `shard-drop: stop`",
        "delete those rows in the target by hand where they are to go, then leave the statement out with"
        " `unshard ctl binlog skip {task_file} -s {source_id}`; with `shard-drop: ignore` such"
        " statements do nothing there",
    ),
    "SHARD-024": CatalogueEntry(
        "a new table joins those that are merged into {target} while their structure changes, and has neither the old"
        " nor a new structure",
        "drop it in the source and create it with the structure that the other tables have or are getting;"
        " `unshard ctl query-status` shows the statements that wait",
    ),
    "SHARD-025": CatalogueEntry(
        "this source gets its first table of {target} while a sharding DDL is being run there, and that takes too long",
        "`unshard ctl shard-ddl-lock TASK` shows who runs it; start the task again when it is done",
    ),
    "SHARD-027": CatalogueEntry(
        "a sharding DDL of {target} waits, and the rules of the task don't send this table there any more",
        "give the task the routes and lists back that it had, until the DDL is resolved; `unshard ctl query-status`"
        " shows what waits",
    ),
    "SHARD-028": CatalogueEntry(
        "the task has no `shard-mode` any more, and changes wait for a sharding DDL of {targets}",
        "give the task `shard-mode: pessimistic` back until the DDL is resolved; `unshard ctl query-status` shows what"
        " waits",
    ),
    "SHARD-035": CatalogueEntry(
        "a row of the source meets a row with the same key in the target, while changes of {held} wait for the sharding"
        " DDL of the lock {id}: it may be one that they delete, or one that has moved between shards",
        "don't remove the row in the target: a DELETE that waits would also delete the new one. Let the source pass "
        "with"
        " `unshard ctl binlog skip {task_file} -s {source_id}`, run the DDL on the shards that lack it, and when"
        " `unshard ctl shard-ddl-lock TASK` shows the lock no more, make the rows of this statement in the target by"
        " hand what the sources have. Until then move no rows between shards. If shards share key values, add"
        " a column mapping (`partition id`) or route them apart",
    ),
    "SHARD-031": CatalogueEntry(
        "a change that waited for a sharding DDL meets a row of another shard with the same key, which was written to"
        " {target} after it: both shards have the row, or the change frees a key that another shard uses now",
        "decide which shard is to have the row, and delete it in the others. Skip the change with"
        " `unshard ctl binlog skip {task_file} -s {source_id}`. When `unshard ctl shard-ddl-lock TASK` does not"
        " show the lock any more, correct the rows of this change in the target by hand. If shards share"
        " key values, add a column mapping (`partition id`) or route them apart",
    ),
    "SHARD-032": CatalogueEntry(
        "before changes that waited for a sharding DDL of {target} are applied, the log is looked through for rows that"
        " have moved between shards meanwhile, and here it can't be told: such a row would be lost unseen",
        "find out whether rows have moved from or to this table since the DDL began. If none has, or you will put them"
        " right by hand: `unshard ctl binlog skip {task_file} -s {source_id} --binlog-pos {position}` lets the source"
        " pass, and leaves out what this very place itself has to apply; then start the task again. With"
        " `delivery: exactly-once` and without `safe-mode` the target refuses a second row of a key, so the task"
        " doesn't stop here",
    ),
    "SHARD-036": CatalogueEntry(
        "all shards have this statement. It fills {columns} of rows that are there already with what only its own run"
        " gives (its time, a number, a random value, what a default computes from a column that a column mapping"
        " writes, another type that TiDB makes otherwise of the old value), and {target} can't get the values that the"
        " sources have: {why}",
        "give the source that has stopped another statement, once for all shards: `unshard ctl binlog replace"
        ' {task_file} -s {source_id} "ALTER TABLE ..."` with the column and no default or a constant one, then'
        " set it in those rows as the sources have it. The same statement again runs it as it is: where nobody needs"
        " the values of old rows, or you set them afterwards, as after another type."
        " Where another source has run the statement already, `unshard ctl binlog skip"
        " {task_file} -s {source_id}` lets this one go on without the values of its old rows."
        " Rows that are written after the statement arrive with their values in any case",
    ),
    "SHARD-037": CatalogueEntry(
        "a sharding DDL of {target} waits, and the rules of the task send this table there now, which did not before:"
        " nobody knows whether it has the DDL",
        "give the task the routes and lists back that it had, until the DDL is resolved; `unshard ctl query-status`"
        " shows what waits",
    ),
    "SHARD-038": CatalogueEntry(
        "the target checks foreign keys (`foreign_key_checks: 1`), which connect {target} with {others}: these tables"
        " have to keep the order of the log, and changes that wait for this sharding DDL would come after later ones"
        " of the others, so a CASCADE would take the wrong rows",
        "let nothing be written to these tables upstream that a CASCADE or SET NULL would act on. Take"
        " `foreign_key_checks` out of the target's session and start; when `unshard ctl shard-ddl-lock TASK` shows the"
        " lock no more, put it back",
    ),
    "SHARD-029": CatalogueEntry(
        "the copies of the tables that are merged into {target} differ, and can't be brought together: {why}",
        "run the DDL on all shards of all sources, then"
        f" {ANEW}; while shards are copied, let ADD COLUMN and DROP COLUMN alone run on"
        " them",
    ),
    "SHARD-030": CatalogueEntry(
        "the first table of this source that lands in {target} has not the structure that {target} has now: {faults}",
        "a source that owned no table there joins after the statements that are run. Drop the table in the source and"
        " create it with the structure of {target}: it then needs the statements that wait like all others. Leave this"
        " CREATE out with `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SHARD-040": CatalogueEntry(
        "no structure takes the rows of this table and those of the others that are merged into {target}: {why}",
        "bring the tables of the sources into structures that have a common one (the reference on sharding DDL lists"
        " what can differ), or route this table elsewhere; then start the task again",
    ),
    "SHARD-041": CatalogueEntry(
        "`shard-mode: optimistic` needs the structure of every table that is merged into {target}, and this one is not"
        " understood: {why}",
        "where a statement has led to it, leave that out of {target} with `unshard ctl binlog skip {task_file} -s"
        " {source_id}`, and bring {target} into this structure by hand. Where the table has it from the beginning, use"
        " `shard-mode: pessimistic` for the task, or route this table elsewhere",
    ),
    "SHARD-042": CatalogueEntry(
        "the tables that are merged into {target} are of sources of different products (MariaDB and MySQL), which"
        " `shard-mode: optimistic` does not compare",
        "use `shard-mode: pessimistic` for the task, or one task for each product",
    ),
    "SHARD-044": CatalogueEntry(
        "the statement would wait, because schema conflict detected: the task has `strict-optimistic-shard-mode: true`,"
        " and {target} can't have it yet: {why}",
        "run the statement on the other shards first where it waits for them, then start the task again; or leave it"
        " out with `unshard ctl binlog skip {task_file} -s {source_id}`; or take `strict-optimistic-shard-mode` out of"
        " the task's file, then the table waits and all others go on",
    ),
    "SHARD-045": CatalogueEntry(
        "a new table joins those that are merged into {target}, and {target} can't take its rows: {why}",
        "`unshard ctl binlog skip {task_file} -s {source_id}`, then start the task again: the table is merged all the"
        " same, and {target} gets what it lacks. Only a column whose type has none in common with that of {target} is"
        " left out of the table's rows. To have the table like the other shards, drop it and create it anew after that",
    ),
    "SHARD-046": CatalogueEntry(
        "this table, which is merged into {target}, waited with an earlier statement when it was dropped or renamed,"
        " and a table of its name is made again",
        "start the task again, as the wait may be over. If it stops here again, give the command for this table that"
        " `unshard ctl shard-ddl-lock {task_file}` shows under `help`, and start the task again; once for each"
        " statement that the earlier table waits with",
    ),
    "SHARD-047": CatalogueEntry(
        "what this statement makes of the structure of {target} is not computed: {why}",
        "give the source that has stopped another statement, once for all shards: `unshard ctl binlog replace"
        ' {task_file} -s {source_id} "ALTER TABLE ..."`. Or run the statement on {target} by hand, and leave it out'
        " with `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SHARD-048": CatalogueEntry(
        "rows of this table lack the columns {columns}, which other shards have, and {target} has no key to find its"
        " rows by",
        "give {target} a primary key over columns that are NOT NULL in all shards and tell their rows apart (ALTER"
        " TABLE {target} ADD PRIMARY KEY …), then start the task again. Where no columns do so, add {columns} to this"
        f" table too, and {ANEW}",
    ),
    "SHARD-049": CatalogueEntry(
        "tables that are merged into {target} do not have the same columns ({columns} are not in all of them), and"
        " nothing says what rows without them get",
        "bring the tables into the same structure; or use `shard-mode: optimistic`, in which a shard may have a column"
        " before the others. In that mode it is the DROP of a key's column that was left out of {target}: let"
        " {columns} be NULL there (ALTER TABLE {target} MODIFY …), then start the task again; rows of the shard have"
        " NULL",
    ),
    "SHARD-050": CatalogueEntry(
        "with `shard-mode: optimistic` an unlock with `--action exec` lets one shard have a column that others of"
        " {target} have with other values, and one with `--action skip` leaves a statement out of the target. This"
        " shard waits for no such thing, or {target} is being changed by its statement now",
        "`unshard ctl shard-ddl-lock TASK` shows what each shard waits for, and the command that ends it. Where a"
        " source has stopped at the statement, its error says what to do",
    ),
    "SHARD-051": CatalogueEntry(
        "the task has another `shard-mode` now, and a sharding DDL of {targets} is under way in the mode that it had",
        "give the task its `shard-mode` back and let it run until all shards have the same structure and"
        " `unshard ctl shard-ddl-lock TASK` shows nothing; then change the mode",
    ),
    "SHARD-052": CatalogueEntry(
        "the table has met a statement, but its source has not asked {target} for it within {seconds} seconds: the"
        " source does not run, or it writes earlier changes of the table first. Nothing was changed",
        "start the source, or wait until `unshard ctl shard-ddl-lock TASK` names the table under `synced`; then give"
        " the command again",
    ),
    "SHARD-053": CatalogueEntry(
        "{target} was altered by hand, and the statement that gives all shards what they need would round values in it:"
        " {why}",
        "give the column of {target} a type that takes the values of both, with ALTER TABLE, then start the task again:"
        " the column keeps it. Or leave the statement out with `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "SHARD-054": CatalogueEntry(
        "{target} refuses the statement by which it gets what all of its shards have in common now: {statement}",
        "change at {target} what the cause names, such as a generated column or a key that somebody has added, or grant"
        " the privilege; or, where the statement drops a column or a key, drop that yourself. Then start the task"
        " again: what {target} no longer has counts as dropped. The statement is from no binlog, so `binlog skip` can't"
        " leave it out",
    ),
}
