"""The values that the driver and the executors share in a batch.

| module | contents |
|---|---|
| `plan` | the plan: ranges of relay files, tables, partitions |
| `shipped_log` | the bytes of the log, shipped to tasks that can't read it |
| `stored_plan` | the plan as it is stored in the target, and its digests |
| `excluded_changes` | row changes that are excluded from a batch |
| `throttle` | the rate and the connections that a batch may use |
| `row_counts` | the reports of tasks: counts of changes |
| `key_report` | the report of the keys that a batch changes |
"""
