"""The target server: meta tables, receipts, transactions, writers.

| module | contents |
|---|---|
| `meta` | the tables in `meta-schema` |
| `forget` | everything that the target has on record of a task, dropped |
| `unfinished_dm` | unfinished work of DM, which is refused |
| `filled` | the target tables that a task's copy fills |
| `upstream` | the identity of the server to which a source's binlog names belong |
| `receipts` | claims, open batches, chunks: how a batch is applied exactly once |
| `checkpoint` | checkpoints, and tracked structures |
| `block_allow_lists` | the block-allow lists by which a source has been followed |
| `online_ddl` | the record of statements on ghost tables |
| `prepared_xa` | the record of prepared XA transactions |
| `operators` | operators: a user's instruction for one position of the log |
| `sharding` | the locks of sharding DDL, and merged tables |
| `sharding_groups` | the unresolved sharding groups of a source |
| `fence` | the fence of DDL: only the owner of a source changes structures |
| `ddl_jobs` | the DDL jobs of a TiDB, and the fence of each statement there |
| `transactions` | the begin of a transaction, and its retries |
| `silent_sessions` | the end of sessions that an earlier process has left silent |
| `writer` | the connections that write rows |
| `bulk_insert` | INSERTs of many rows as MariaDB's bulk statements |
| `rate_limiter` | the limits of a target that all writers share |
| `error_values` | statements that write the error value of an ENUM |
| `row_counts` | the ledger: counts of changes by source and table |
| `clamped_values` | the record of values that were clamped |
| `waits` | the waits of the task's sessions, for the status |
| `recorded` | progress, open batch, row counts and last error of a source, for a reader |
| `repairs` | transactions that repair rows between the batches |
| `validation_tables` | the tables of continuous validation |
| `validation` | the validator's record of a source |
| `changed_keys` | keys that batches have changed, and that validation has not looked at yet |
| `loaded_rows` | the progress of validation through the rows of the full load |
| `pending_keys` | keys that differed when they were last compared, and are not decided yet |
| `validation_questions` | questions about rows between the validators of a task |
| `validation_errors` | rows that differ |
"""
