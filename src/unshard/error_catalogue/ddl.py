"""Errors of a statement in the log, or of one that an operator gives."""

from __future__ import annotations

from unshard.error_catalogue.entry import CatalogueEntry

DDL: dict[str, CatalogueEntry] = {
    "DDL-001": CatalogueEntry(
        "the statement cannot be read: {statement}",
        "compare it with the source's log; where it is whole there, make the same change on the target and leave it "
        "out, `unshard ctl binlog skip {task_file} -s {source_id}`; then start again",
    ),
    "DDL-002": CatalogueEntry(
        "the statement is of a kind that is not replicated: {statement}",
        "make the change on the target yourself if it is needed there, leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`, then start again",
    ),
    "DDL-003": CatalogueEntry(
        "the target's server cannot run the statement on an empty copy of its tables: {statement}",
        "if the cause is a privilege, grant it (the tutorial lists all) and start again; else give it in a form that "
        "the target takes, `unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`; or do its work by hand and "
        "leave it out, `unshard ctl binlog skip {task_file} -s {source_id}`; then start again",
    ),
    "DDL-004": CatalogueEntry(
        "the structure that {table} had before the statement is not known: {statement}",
        "give the structure of that moment, "
        "`unshard ctl binlog-schema update {task_file} DB TABLE FILE -s {source_id}`, and start again; or keep "
        "the table out by block-allow-list",
    ),
    "DDL-005": CatalogueEntry(
        "{table} is not on the target, but the statement needs it there: {statement}",
        "create it with the structure that it has upstream before the statement, or leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`; then start again",
    ),
    "DDL-006": CatalogueEntry(
        "{table} has on the target neither the structure from before the statement nor the one it should have "
        "after it: {statement}",
        "somebody has altered the table meanwhile. Undo that, so that it is one of the two shown above, and start "
        "again: as before, the statement is run, as after it, it is taken as done. Or keep it: where what is found has "
        "all that the statement brings, leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`; else give what is to be run on it, "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`; then start again. "
        "Nothing after the statement is applied yet",
    ),
    "DDL-007": CatalogueEntry(
        "the process ended around a statement whose effect does not show in the structure: {statement}",
        "look on the target whether it took effect (rows, partitions); if not run it there; in either case leave it "
        "out, `unshard ctl binlog skip {task_file} -s {source_id}`, then start again",
    ),
    "DDL-008": CatalogueEntry(
        "the target refused the statement: {statement}",
        "correct what the server reports, then start again; or leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`, or run another one in its place, "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`, and start again",
    ),
    "DDL-009": CatalogueEntry(
        "the statement was run in the time zone of the source's host, whose name no server tells and whose rules are "
        "not known here: {statement}",
        "start the source with a fixed `default_time_zone`, such as '+00:00'; for this statement, give one without "
        "that zone, `unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`, or leave it out with `skip`; then "
        "start again",
    ),
    "DDL-043": CatalogueEntry(
        "the statement was run in time zone {zone}, which the target does not know, and it may bring values of rows "
        "through its offsets: {statement}",
        "load the names of time zones into the target (`mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql -u root "
        "mysql`; on MariaDB `mariadb-tzinfo-to-sql`), then start again; or leave the statement out, `unshard ctl "
        "binlog skip {task_file} -s {source_id}`, or run another one in its place, `unshard ctl binlog replace "
        "{task_file} -s {source_id} 'SQL'`, and start again",
    ),
    "DDL-044": CatalogueEntry(
        "the target {does} digits of a second for which column {column} has no room any more, where the source {did} "
        "them, and has no SQL mode for it: {statement}",
        "give the column on the target, by an UPDATE, the values that the source has now; run the statement there by "
        "hand; leave it out, `unshard ctl binlog skip {task_file} -s {source_id}`; then start again",
    ),
    "DDL-010": CatalogueEntry(
        "the target does not know collation {collation}, the default for what the statement creates: {statement}",
        "give one that names a character set and collation which the target has, "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`, then start again",
    ),
    "DDL-020": CatalogueEntry(
        "{rule} stops the task at this statement ({event}): {statement}",
        "check what it does; then narrow the rule's events and sql-pattern, or make its action Ignore, and start again",
    ),
    "DDL-011": CatalogueEntry(
        "rows of {table}, which block-allow-list keeps out, become rows of a migrated table: {statement}",
        "do on the target what the statement does with tables that are there, such as giving the old one another name; "
        "copy that table as it is now to the target under its new name, leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`, and start with `safe-mode: true` under `syncers`: "
        "changes that the copy has already do no harm then. Take it off when the task has come past the copy. Or let "
        "both names through, or neither, and start anew",
    ),
    "DDL-012": CatalogueEntry(
        "the target has a table {table} already, a name that the statement gives to another: {statement}",
        "rename or drop that table on the target if nothing is migrated into it, then start again; where other tables "
        "are merged into it, move the rows there by hand, then leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "DDL-049": CatalogueEntry(
        "{name} would be {target} on the target, where {other} is {taken}: the target takes names for one that differ"
        " only in case, so the two would be one there",
        "give {name} another name there by a rule under `routes`, or keep it out by block-allow-list (`ignore-tables`,"
        " `ignore-dbs`). Write its name there as a regular expression in which case counts, `~^(?-i:NAME)$`. If the two"
        " are to be one, route both to the same name, in the same case. Then start again",
    ),
    "DDL-050": CatalogueEntry(
        "the statement makes database {schema} if it is not there, and whether it was can't be told any more. Made"
        " here, its default is {made}; on the source that is {there} now. By the wrong one, columns of later tables"
        " would get another character set or collation",
        "find out whether the source had the database before this statement. If it had, leave the statement out,"
        " `unshard ctl binlog skip {task_file} -s {source_id}`: its default then counts as that of now. If the"
        " statement made it, give the statement itself, `unshard ctl binlog replace {task_file} -s {source_id}"
        ' "CREATE DATABASE ..."`. Then start again',
    ),
    "DDL-056": CatalogueEntry(
        "the statement needs the source's time zone, {zone}, and a generated column of the table converts from UTC by"
        " CONVERT_TZ, so that in a session of that zone the server would compute it wrong: {statement}",
        "nothing of it is run. On the target, drop the generated column and the keys over it (`ALTER TABLE ... DROP"
        " COLUMN`), which no row needs, and start again; then the statement is run. Afterwards add the column again, in"
        " a session with time_zone = '+00:00'",
    ),
    "DDL-057": CatalogueEntry(
        "the statement depends on sql_mode {modes} of its session, which the target lacks: {statement}",
        "give it in a form that means the same without that mode (NULL for '' under EMPTY_STRING_IS_NULL, DATETIME for"
        " DATE under ORACLE, DATETIME for TIMESTAMP under MAXDB),"
        " `unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`; then start again",
    ),
    "DDL-013": CatalogueEntry(
        "sequences are not replicated: {statement}",
        "keep the name {sequence} out by block-allow-list, then start again; create the sequence on the target "
        "yourself "
        "if it is needed there",
    ),
    "DDL-047": CatalogueEntry(
        "a partition of {table} may have other rows on the target than on the source, so the statement might take rows "
        "that are still on the source: {statement}",
        "nothing of it is run. Do its work on the target by hand: for DROP or TRUNCATE, DELETE the rows that the "
        "source's partition had, by a condition on the partition's columns. Then leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`. Or give the target's table the source's partitions by "
        "ALTER TABLE there, if they can be equal. Or, if you know that the partition has the same rows, run the "
        "statement as it is, `unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`. Then start again",
    ),
    "DDL-023": CatalogueEntry(
        "{old} becomes a ghost table of online DDL by RENAME: {statement}",
        "rename it back upstream and leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`; or, if these are no tables of gh-ost or pt-osc, say so "
        "with shadow-table-rules and trash-table-rules of the task",
    ),
    "DDL-024": CatalogueEntry(
        "one helper table of online DDL becomes the ghost of another by RENAME: {statement}",
        "nobody can say which statements the new ghost table has already: bring the target's table to the source's "
        "structure by hand, then leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "DDL-025": CatalogueEntry(
        "{old} takes the place of {new}, but no statement on it was seen: {statement}",
        "gh-ost or pt-osc had begun before the task did, or the ghost was filled by other means. Give the ALTER "
        "that it ran, in the name of the table: "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'ALTER TABLE DB.TABLE ...'`, then start again",
    ),
    "DDL-041": CatalogueEntry(
        "rows move between {table} and {helper}, a helper table of online DDL that the target lacks: {statement}",
        "do the same to the rows of the target by hand, then leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`; or, if {helper} is no table of gh-ost or pt-osc, say so "
        "with shadow-table-rules and trash-table-rules of the task",
    ),
    "DDL-042": CatalogueEntry(
        "{table} is dropped, while {ghost}, a copy of it by online DDL, may take its place: {statement}",
        "if pt-osc runs with `--alter-foreign-keys-method=drop_swap`, leave the statement out, "
        "`unshard ctl binlog skip {task_file} -s {source_id}`: the RENAME behind it brings the ALTER. If the table is "
        "dropped for good, give the statement, "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'DROP TABLE DB.TABLE'`. Then start again",
    ),
    "DDL-026": CatalogueEntry(
        "what is given for an operator is no DDL on tables with their schema: {statement}",
        "give whole statements on tables or schemas, each name as `db.table`; change rows by hand on the target",
    ),
    "DDL-033": CatalogueEntry(
        "what is given for an operator is on names that the task does not take: {statement}",
        "names are the source's, and have to pass block-allow-list; take it back, "
        "`unshard ctl binlog revert {task_file} -s {source_id} -b FILE:POS`, and give it in other names, or run it on "
        "the target by hand and leave the statement out, `unshard ctl binlog skip` with the same place",
    ),
    "DDL-034": CatalogueEntry(
        "the statement fills {columns} of rows that are there already with what its run on the source alone gave (a"
        " random value, a number by the order of rows, the time at which a tool copied a row, what a default computes"
        " from a column that a column mapping writes, another type that TiDB makes otherwise of the old value). On the"
        " target they would get other values, and those of the source can't be brought: {why}. The statement is"
        " {statement}",
        "give a statement without that, `unshard ctl binlog replace {task_file} -s {source_id} 'ALTER TABLE DB.TABLE"
        " ...'`: add the column with a constant or no default, then set the default and copy the values of those rows"
        " by hand. Or, as for AUTO_INCREMENT, copy the table again: make it on the target what the source has now,"
        " leave the statement out, `unshard ctl binlog skip {task_file} -s {source_id}`, and start with"
        " `safe-mode: true` under `syncers`. The same statement as it is, given to `replace`, is run: where"
        " nobody needs those values, or you set them by an UPDATE afterwards, as after another type. Rows that are"
        " written after the statement arrive with their values in any case",
    ),
    "DDL-035": CatalogueEntry(
        "a session that does not log in ROW format makes a temporary table, and its TRUNCATE, ALTER or RENAME of it"
        " looks in the log as that of a real table: {statement}",
        "set binlog_format=ROW on the source (globally, and in sessions that are open, or end them). Leave this"
        " statement out, `unshard ctl binlog skip {task_file} -s {source_id}`, and those on the same name that"
        " the session has logged since then, `unshard ctl binlog skip {task_file} -s {source_id} --binlog-pos"
        " FILE:POSITION` (`unshard binlog show` lists them); then start again. What an ALTER that is left out would"
        " have made of the real table is taken to be its structure: where the task stops at the next rows of that table"
        " (SYNC-007, BINLOG-022), `unshard ctl binlog-schema update {task_file} DB TABLE --from-source -s SOURCE.yaml`",
    ),
    "DDL-036": CatalogueEntry(
        "the target gives a table without a primary key one of its own (sql_generate_invisible_primary_key is ON), and"
        " the task's account may not turn that off for its sessions",
        "GRANT SESSION_VARIABLES_ADMIN ON *.* to the task's account on the target, or SET GLOBAL"
        " sql_generate_invisible_primary_key = OFF there; then start again",
    ),
    "DDL-037": CatalogueEntry(
        "the structure after the statement can't be computed, as a TiDB target needs it: {statement}",
        "run it on the target by hand, in a form that TiDB takes; give the structure after it, "
        "`unshard ctl binlog-schema update {task_file} DB TABLE --from-source -s {source_id}`; leave the statement "
        "out, `unshard ctl binlog skip {task_file} -s {source_id}`; then start again",
    ),
    "DDL-038": CatalogueEntry(
        "TiDB does not support this statement: {statement}",
        "give it in a form that TiDB takes, `unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`; or do its "
        "work by hand and leave it out, `unshard ctl binlog skip {task_file} -s {source_id}`; then start again",
    ),
    "DDL-039": CatalogueEntry(
        "somebody has cancelled the DDL job on the target: {statement}",
        "start again to run it once more; or leave it out, `unshard ctl binlog skip {task_file} -s {source_id}`",
    ),
    "DDL-040": CatalogueEntry(
        "the target's table does not fit the statement, of which nothing is run: {statement}",
        "bring the target's table into the structure from before the statement and start again; or do its work by hand "
        "and leave it out, `unshard ctl binlog skip {task_file} -s {source_id}`; or give another one in its place, "
        "`unshard ctl binlog replace {task_file} -s {source_id} 'SQL'`; then start again",
    ),
    "DDL-028": CatalogueEntry(
        "`{op}` is for statements, and here are row changes",
        "take it back, `unshard ctl binlog revert {task_file} -s {source_id} -b FILE:POS`; leave the changes out, "
        "`unshard ctl binlog skip` with the same place, and make others on the target by hand",
    ),
    "DDL-029": CatalogueEntry(
        "a transaction that is applied piece by piece is half applied: nothing can be left out of it any more",
        "correct what the target refuses so that the rest can be applied; take the operator back, "
        "`unshard ctl binlog revert {task_file} -s {source_id} -b FILE:POS`, and start again",
    ),
    "DDL-030": CatalogueEntry(
        "no structure is tracked for the table: the task has not met it yet, or the name is wrong",
        "names are the source's; `unshard ctl binlog-schema update` gives it one",
    ),
    "DDL-031": CatalogueEntry(
        "the table is not there to take its structure from",
        "write its CREATE TABLE, as it was at the checkpoint, to a file and give that",
    ),
    "DDL-032": CatalogueEntry(
        "a batch is half applied with the old structures, which can't be changed now",
        "start the task so that the batch is finished, and stop it; what stops it on the way has to be corrected "
        "first, "
        "or left out by `unshard ctl binlog skip {task_file} -s {source_id} -b FILE:POS`",
    ),
    "DDL-027": CatalogueEntry(
        "{done} of the {all} operations of this statement are on the target already: nothing else can take its place",
        "run what is missing by hand, leave the rest out, `unshard ctl binlog skip {task_file} -s {source_id}`, and "
        "start again; or take back what was given: `unshard ctl binlog revert {task_file} -s {source_id}`",
    ),
}
