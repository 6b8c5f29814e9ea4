"""A user's commands on a task's records in the target. The master and ctl call them.

| module | contents |
|---|---|
| `subject` | the task that a command addresses, and the answer in dmctl's format |
| `binlog` | `binlog`: operators for positions of the binlog |
| `binlog_schema` | `binlog-schema`: the structure of a table at the checkpoint |
| `locks` | `shard-ddl-lock`: the locks of sharding DDL, listed and unlocked |
| `validation` | `validation`: continuous validation |
| `reset` | `--reset`: a task's copy undone |
"""
