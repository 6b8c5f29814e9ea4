"""Sharding DDL in both modes, and rows that move between shards meanwhile. Runs on the driver.

`shard` has the protocols. The modules from `optimistic` on are for optimistic mode.

| module | contents |
|---|---|
| `table_owners` | the tables of each source by target table, recorded for the other sources |
| `snapshot` | sharding DDL that a copy contains already |
| `statements` | the effect of a statement on the target and on its group |
| `coordinator` | one source's side of the protocol: waiting tables, locks, re-sync |
| `owner` | the statements that the owner of a lock runs |
| `item_fills` | values that each source sets into its rows after the statement |
| `resync` | the re-sync: the changes that waited, read again and applied |
| `moved_rows` | the search for rows that moved between shards while a statement waited |
| `changed_keys` | the keys of these changes |
| `equal_keys` | the form in which keys are compared that the target may take for equal |
| `shared_keys` | the keys that more than one table has changed |
| `move_outcomes` | the decision about each change of such a key |
| `left_out_moves` | the changes that a batch of the re-sync leaves out by that decision |
| `optimistic` | one source's part in optimistic mode: its DDL, and its changes of merged tables |
| `optimistic_statements` | the effect of a statement in optimistic mode |
| `merged_members` | one source's shards in merged tables: registered and removed |
| `merged_changes` | the change of a merged table by one source |
"""
