"""The target server: meta tables, receipts, transactions, writers.

| module | contents |
|---|---|
| `meta` | the tables in `meta-schema`, and their removal |
| `filled` | the target tables that a task's copy fills |
| `receipts` | claims, open batches, chunks: how a batch is applied exactly once |
| `checkpoint` | checkpoints, tracked structures, ghost tables, prepared XA transactions |
| `operators` | operators: a user's instruction for one position of the log |
| `sharding` | sharding groups, locks and merged tables |
| `fence` | the fence of DDL: only the owner of a source changes structures |
| `transactions` | the begin of a transaction, its retries, the end of a silent one |
| `writer` | the connections that write rows |
| `rate_limiter` | the limits of a target that all writers share |
| `error_values` | statements that write the error value of an ENUM |
| `row_counts` | the ledger: counts of changes by source and table |
| `waits` | the waits of the task's sessions, for the status |
| `recorded` | all records of a source, for a reader; the error that stopped it |
| `repairs` | transactions that repair rows between the batches |
| `validation` | the records of continuous validation |
| `validation_backlog` | changed keys and loaded rows that are not looked at yet |
| `validation_errors` | rows that differ, and questions between validators |
"""
