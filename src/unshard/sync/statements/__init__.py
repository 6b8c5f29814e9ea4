"""DDL and other statements of the log. Runs on the driver.

| module | contents |
|---|---|
| `event_filter` | the event filter's decision about each operation |
| `reader` | a statement of the log as operations |
| `crossings` | statements between the snapshots of the tables that they name |
| `refused` | statements that are refused without `shard-mode` |
| `uncoordinated` | statements that need no coordination between shards |
| `plan_record` | the plan of a statement's batch as JSON |
| `steps` | the steps of a plan, and the list of tables that they make |
| `backfill` | values of the source copied to the target's rows after an ALTER TABLE |
| `tracked_tables` | the tables at the current position, for the next checkpoint |
"""
