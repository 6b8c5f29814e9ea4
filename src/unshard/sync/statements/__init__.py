"""DDL and other statements of the log. Runs on the driver.

| module | contents |
|---|---|
| `event_filter` | the event filter's decision about each operation |
| `reader` | a statement of the log as operations |
| `crossings` | statements between the snapshots of the tables that they name |
| `refused` | statements that are refused without `shard-mode` |
| `names_by_case` | statements on names that the target takes for those of others |
| `uncoordinated` | statements that wait for no other table, and what sharding groups need of them |
| `plan_record` | the plan of a statement's batch as JSON |
| `steps` | the steps of a plan, and the record of tables that they make |
| `backfill` | values that an ALTER TABLE generated in the source, copied to the target |
| `earlier_lists` | tables that an earlier block-allow list of the task left out |
| `tracked_tables` | the tables at the current position, for the next checkpoint |
"""
