"""The planning of a batch from a range of the log. Runs on the driver.

| module | contents |
|---|---|
| `target_tables` | the target's structures, as read so far |
| `target_triggers` | triggers of target tables |
| `told_alterations` | log lines about columns whose values the target stores differently |
| `coarse_keys` | unique keys for which safe mode is refused |
| `table_plans` | steps *filter* and *route* by name: the tables of a batch, and their plans |
| `target_plan` | how rows are written to a target table |
| `batch_size` | the size of the next batch |
| `planner` | the plan of a batch: byte ranges, partitions, exchange |
| `skipped_events` | row events that are skipped undecoded |
| `refused_events` | row events that stop the task before the batch |
| `operators` | the row changes that binlog operators exclude |
| `pending_operators` | the pending operators, by which each batch is opened |
"""
