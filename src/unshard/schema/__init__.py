"""Table structures as values: read from SQL text, altered, and written as a server would write them.

Nothing here asks a server.

| module | contents |
|---|---|
| `lex` | SQL text as tokens |
| `statements` | CREATE TABLE, ALTER TABLE, CREATE INDEX and DROP INDEX, read from their tokens |
| `columns` | the definitions of columns |
| `keys` | the definitions of keys, constraints and table options; the order of keys |
| `definition` | the definition of a table as a value |
| `operations` | the operations of ALTER TABLE as values |
| `implied` | everything that a statement leaves to the server, filled in |
| `alter` | operations applied to a definition |
| `text` | a definition as SHOW CREATE TABLE |
| `tidb` | definitions translated for TiDB |
| `tidb_alter` | operations translated for TiDB |
"""
