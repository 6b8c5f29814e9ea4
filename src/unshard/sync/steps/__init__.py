"""The steps that take a batch from bytes of the log to rows in the target. Run on executors.

The modules stand in the order of the steps.

| module | contents |
|---|---|
| `pipeline` | the order of the steps; step *order* |
| `decode` | steps *decode* and *versions*: bytes to row images |
| `filter` | step *filter*: changes left out by rules |
| `documents` | step *documents*: a stop at JSON that the target would store with other values |
| `map` | step *map*: column mapping and extracted columns |
| `report_keys` | the keys that a batch changes, for continuous validation |
| `causality` | step *causality*: changes that stay in the order of the log |
| `encode` | step *encode*: row images to SQL text and partitions |
| `partial_images` | steps *map* and *encode* for images that lack columns |
| `compact` | step *compact*: one change for each key |
| `safe_mode_moves` | changes of rows that another shard has replaced, left out in safe mode |
| `merge` | step *merge*: changes to chunks of statements |
| `apply` | step *apply*: each chunk and its receipt in one transaction |
| `execute` | the statements of a chunk, and the rows that they find |
"""
