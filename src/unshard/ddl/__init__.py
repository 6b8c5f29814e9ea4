"""DDL statements of the log: parsed, rewritten by the rules, tracked, planned, and run once.

| module | contents |
|---|---|
| `context` | the session that the binlog records for a statement |
| `statement` | a statement as a value |
| `cursor` | the cursor over the tokens of a statement |
| `names` | table names in a statement, and the end of a table's body |
| `inline_references` | REFERENCES in columns' definitions that the source reads over, taken out |
| `skipped_kinds` | kinds of statements that are skipped |
| `parse` | one SQL text as a statement, as a reason to skip it, or as an error |
| `pieces` | the effect of a source's rules on a statement, step by step |
| `online` | the statements of gh-ost and pt-online-schema-change |
| `events` | the names of statements in event filters |
| `modified` | the name of a MODIFY or CHANGE in event filters |
| `rewrite` | table names replaced in the text; RENAME and DROP split by table |
| `alter_parts` | an ALTER TABLE cut into its operations |
| `provenance` | statements refused because of a column mapping or an extracted column |
| `partition_bounds` | bounds of partitions that a statement computes, as values |
| `partition_rows` | statements refused because the target's partitions may have other rows |
| `renamed_table` | a target table as a source would define it |
| `engines` | InnoDB in the place of an engine without transactions |
| `prepare` | operations as changes of tracked structures and as an intent |
| `for_tidb` | statements translated for a TiDB target |
| `in_snapshot` | sharding DDL that the copies of some merged tables contain |
| `tracker` | the structure of every source table at the current position |
| `sandbox` | statements tried on empty copies of tables, in scratch schemas |
| `trials` | the results of the latest DDL trials |
| `evaluate` | structures after a statement, computed without a server |
| `schema_equality` | the comparison of two SHOW CREATE texts |
| `own_names` | names of constraints that a server makes |
| `plan` | the plan of an intent: the structures before and after each statement |
| `session` | the session of a statement on the target, set up |
| `zones` | the time zone of that session |
| `lost_modes` | the SQL modes of that session without those that the target lacks |
| `fractions` | the SQL mode of that session for digits of a second |
| `intent` | the stored intent of a statement |
| `execute` | the remaining steps of an intent, each run once |
| `backfill` | values that an ALTER TABLE writes into existing rows |
| `conversions` | columns whose values TiDB converts otherwise than the source |
"""
