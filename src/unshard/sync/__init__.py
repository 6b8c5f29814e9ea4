"""The sync unit: follows the relay log and applies it batch by batch, exactly once.

`batch` and `changes` are for driver and executors, `steps` for executors; all else runs on the driver.

| module | contents |
|---|---|
| `unit` | the loop, which decides what comes next |
| `source_log` | the relay log as work items: the next rows or statement, or those of an open batch |
| `rows` | one batch of rows: planned, stored, run, closed |
| `planning` | from a range of the log to the plan of a batch |
| `batch` | the plan of a batch, its stored form, its counts and limits |
| `changes` | the row changes of a batch, from bytes of the log to statements |
| `steps` | the steps of a batch in their order, and the writes into the target |
| `checkpoint` | claims, open batches, checkpoints, safe mode |
| `statement` | one statement: read, prepared, run once, closed |
| `statements` | the parts of that: a statement read, refused, recorded, its values set |
| `sharding` | sharding DDL in both modes, its re-sync, rows that move between shards |
| `merged_runs` | the batches that run changes of merged tables in optimistic mode |
| `operate` | operators for the open batch of a statement, and the record of where a source stops |
| `lag` | the lag of a source |
| `status` | the figures for the status line and `query-status` |
"""
