"""A user's commands on a task's records in the target. The master and ctl call them.

| module | contents |
|---|---|
| `subject` | the task that a command is for, and DM's form of the answer |
| `binlog` | `binlog`: operators for positions of the binlog |
| `binlog_schema` | `binlog-schema`: the structure of a table at the checkpoint |
| `locks` | `shard-ddl-lock`: the locks of sharding DDL, listed and resolved |
| `validation` | `validation`: continuous validation |
| `reset` | `--reset`: a task's copy undone |
"""
