"""The row changes of a batch, from bytes of the log to the statements of a chunk.

The steps here are functions from batches to batches. Executors run them for a batch, in the order of
`sync/steps/pipeline.py`. The driver asks the same functions where it looks into the log before a batch, and `explain`
where it shows what would be written. None of them asks a server.

| module | contents |
|---|---|
| `decode` | steps *decode* and *versions*: bytes to row images |
| `filter` | step *filter*: changes left out by rules |
| `documents` | step *documents*: a stop at JSON that the target would store with other values |
| `clamp` | step *clamp*: TIME beyond the range of the target |
| `map` | step *map*: column mapping and extracted columns |
| `causality` | step *causality*: changes that stay in the order of the log |
| `gather` | step *encode* for all tables of a batch |
| `encode` | step *encode* for one table: row images to SQL text and partitions |
| `stages` | step *encode* for a batch from which changes were excluded while it was open |
| `partial_images` | steps *map* and *encode* for partial row images |
| `order` | steps *compact* and *order* for a partition |
| `compact` | step *compact*: one change for each key |
| `safe_mode_moves` | changes of rows that another shard has replaced, left out in safe mode |
| `merge` | step *merge*: changes to chunks of statements |
"""
