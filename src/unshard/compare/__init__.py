"""Comparison of the sources' rows with those of the target: `unshard compare`, `unshard cutover`.

Modules of this folder run on the driver, those of `executor` in Spark tasks.

| module | contents |
|---|---|
| `sides` | the sources and the options for each table, from a task's files or from another tool's |
| `sync_diff_file` | the configuration file of sync-diff-inspector |
| `tables` | the pairs of a target table and its source tables |
| `plan` | the plan: which columns and which key are compared, and which tables can't be |
| `changed_plan` | the tables whose structures or source tables have changed during the comparison |
| `run` | a whole comparison, some ranges at a time |
| `ranges` | key ranges, and their SQL conditions on each side |
| `pace` | the size of the ranges |
| `lock_patience` | the bounded wait for tables that somebody has locked |
| `source_load` | the load on the sources, and the rests that limit it |
| `progress_file` | the progress file, from which an interrupted comparison resumes |
| `target_state` | the state of the target's tables, by which a comparison that resumes knows them again |
| `executor` | the Spark tasks: a range compared, single rows looked at again |
| `places` | the ends of the sources' binlogs, and the task's checkpoint in the target |
| `moments` | the positions of a source at one moment, and whether it rested between two |
| `chase` | the repeated comparison of keys that differ, until each is decided |
| `last_change` | the last change of a row in the relay log |
| `result` | the result: differences by key, a verdict for each table and for all |
| `report` | the result as text and as Parquet |
| `cutover_report` | the report of a cut-over |
| `repair` | `--sql FILE`: statements that correct the rows |
| `repairer` | `--repair`: the rows corrected in the target, while the task continues |
| `repair_steps` | the order in which rows are repaired, so that no unique value stands in the way |
| `repair_transaction` | one transaction of a repair on the target, and its receipt |
| `cutover` | `unshard cutover`: the steps to the end of a migration |
| `counters` | the target's AUTO_INCREMENT counters, raised to those of the sources |
"""
