"""The load unit: dump files into the target, each row once.

| module | contents |
|---|---|
| `unit` | the unit: prepares the target and shares the files out to Spark tasks |
| `contents` | the contents of a dump folder, of any tool |
| `mydumper` | the contents of a dump folder of mydumper or dumpling |
| `create_statements` | the CREATE statements of a dump under another name |
| `structure` | the target's databases and tables: created, or compared with the source's |
| `creation` | CREATE statements for each kind of target |
| `counters` | the AUTO_INCREMENT counters of the target's tables |
| `deferred_keys` | secondary keys of large tables, built after their rows |
| `empty_tables` | empty tables of an earlier attempt, dropped |
| `widen` | the target's table altered to take the rows of copies that differ |
| `task` | the Spark task: some files, each piece by piece |
| `pieces` | the pieces of a file, the same in every attempt |
| `sql_dump` | the SQL text of a dump, rewritten for the target |
| `file_text` | the text of an SQL file, mapped into memory |
| `file_settings` | the SET statements of an SQL file: the character set and the time zone of its values |
| `backslashes` | the texts of an SQL file: whether backslashes begin escapes in them |
| `parts` | a piece that is too large for the target, divided into parts |
| `write` | a piece written in one transaction, or in parts if it is too large |
| `unlike_keys` | duplicate keys that come from unlike keys of merged tables |
| `checkpoint` | the progress of each file, stored in the target |
| `seen_states` | the progress of the load, read from its checkpoint and cached for the status |
"""
