"""The sync unit: follow the relay log and apply it exactly once.

| what | where |
|---|---|
| the loop, and what it wires | `unit` |
| what comes next in the log | `follow`, `seek`, `prepared`, `reread` |
| a batch of rows | `rows`; planned by `plan`, `tables` and `flow` into a `batch`; `forbidden`, `passed` |
| its steps, in order | `pipeline`, then the file that has the step's name; `partial` for images that lack columns |
| what belongs to *apply* | `split`, `missing`, `throttle` |
| bytes for tasks that can't read the log | `carry` |
| a statement | `statement`, read by `wanted` and `logged`, past `statement_filter` and `no_shard_mode` |
| DDL of merged tables | `sharded_statements`, `groups`, `group_ddl`, `copied`, `clash` |
| what was held for it, read again | `resync`, `moved`, `shared_keys` |
| what a human decides about a place | `operate`; of row changes `leave_out` on the driver, `left_out` in the tasks |
| what is durable | `store` writes it, `progress` knows it, `ledger` has to add up; else `safe_mode` |
| which tables are whose | `ownership` |
| a source that has failed over | `failover` |
| what it says of itself | `status`, `lag` |
"""
