"""The protocols of sharding DDL as pure state machines. DESIGN.md describes both.

The pessimistic mode uses the modules up to `show`, the optimistic mode the others.

| module | contents |
|---|---|
| `sequence` | the pending sharding DDL of one source table |
| `same_ddl` | whether statements of several shards are the same DDL |
| `gone` | tables that were dropped or renamed while changes of their group waited |
| `group` | the tables of one source that are routed to one target table |
| `group_keeper` | all groups of a subtask |
| `lock_keeper` | the DDL locks of a target table, over all sources |
| `show` | the pending DDL in `query-status` and `shard-ddl-lock` |
| `merged_table` | a merged table of optimistic mode, and the decision about its next change |
| `merged_record` | the record from which it decides |
| `merged_parts` | dataclasses for the record: shards, requests, changes |
| `join` | the join of the shards' structures |
| `shard_structures` | the joins that one decision asks for, each computed once |
| `shown_text` | which defaults and members a server shows as they are |
| `merged_step` | the effect of one shard's statement on the merged table |
| `merged_difference` | the ALTER TABLE from one structure of a merged table to the next |
| `carried` | the structure that a shard's statement leads to where earlier ones were left out of the target |
| `forced` | the structure of a shard whose statement a user leaves out |
| `merged_form` | a merged table as JSON |
| `show_merged` | pending sharding DDL of optimistic mode |
"""
