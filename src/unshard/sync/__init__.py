"""The sync unit: follows the relay log and applies it batch by batch, exactly once.

`steps` runs in Spark executors, `batch` and `changes` run in executors and on the driver, all else on the driver.

| module | contents |
|---|---|
| `unit` | the loop, which decides what comes next |
| `source_log` | the relay log turned into work: the next rows or statement |
| `rows` | one batch of rows: planned, stored, run, closed |
| `planning` | from a range of the log to the plan of a batch |
| `batch` | the plan of a batch, its stored form, its counts and limits |
| `changes` | the row changes of a batch, from bytes of the log to statements |
| `steps` | the steps of a batch in their order, and the writes into the target |
| `checkpoint` | claims, open batches, checkpoints, safe mode |
| `statement` | one statement: read, prepared, run once, closed |
| `statements` | the parts of `statement`: reading, refusing, recording, and setting values in existing rows |
| `sharding` | sharding DDL, pessimistic and optimistic; its re-sync; rows that move between shards |
| `merged_runs` | the batches that run changes of merged tables in optimistic mode |
| `operate` | binlog operators across stops and starts of a source |
| `lag` | the lag of a source |
| `status` | the figures for the status line and `query-status` |
"""
