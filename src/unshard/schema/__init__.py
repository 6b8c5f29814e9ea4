"""Table structures as values: read from SQL text, altered, and written as a server would write them.

Nothing here asks a server.

| module | contents |
|---|---|
| `lex` | SQL text as tokens |
| `words` | the reader of the tokens of one statement |
| `statements` | CREATE TABLE, ALTER TABLE, CREATE INDEX and DROP INDEX, read from their tokens |
| `columns` | the definitions of columns |
| `keys` | the definitions of keys, constraints and table options |
| `definition` | the definition of a table as a value |
| `operations` | the operations of ALTER TABLE as values |
| `implied` | everything that a statement leaves to the server, filled in |
| `utc_defaults` | the default of a TIMESTAMP, brought from a session's time zone to UTC |
| `zoned` | generated columns, keys and conditions that depend on the time zone of a session |
| `arranged_keys` | keys as a server keeps them: their names, order and prefixes |
| `alter` | operations applied to a definition |
| `partitions` | the partitions of a table after an ALTER TABLE |
| `partition_options` | the partitions of a table as a value |
| `text` | a definition as SHOW CREATE TABLE |
| `tidb` | definitions translated for TiDB |
| `tidb_alter` | operations translated for TiDB |
| `tidb_changes` | single changes of a table on TiDB, grouped into statements |
| `tidb_conversions` | conversions of old values that TiDB makes as the source does |
| `void_operations` | operations that their IF EXISTS or IF NOT EXISTS makes void |
| `free_names` | an ALTER TABLE in which columns or keys take over each other's names |
"""
