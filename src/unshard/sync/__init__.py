"""The sync unit: follow the relay log and apply it exactly once.

| what | where |
|---|---|
| the loop | `unit`; an operator's decisions in `operate`; its status in `status` |
| one batch of rows | `rows`, with `throttle` |
| what comes next in the relay log; open batches, prepared XA transactions, fail-over | `source_log` |
| from a range of the log to the plan of a batch | `planning` |
| the plan and the counts that driver and executors share | `batch` |
| the steps of a batch on the executors | `steps`: `pipeline` has their order |
| checkpoints, open batches, safe mode | `checkpoint` |
| DDL and other statements | `statements` |
| sharding DDL, its re-sync, and rows that move between shards | `sharding` |
"""
