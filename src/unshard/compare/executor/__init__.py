"""The part of a comparison that runs in Spark tasks. It imports nothing of the driver.

| module | contents |
|---|---|
| `chunk` | one range of a table, compared by checksums and then by rows |
| `counted` | the target's rows counted in ranges that an earlier process has compared |
| `changed` | the first comparison of keys that batches have changed |
| `look` | a further look at single rows, by key |
| `keys` | keys as SQL conditions, and the keys that the target takes for one |
| `rows` | rows of either side as Arrow batches in one form |
| `silent` | statements that a server does not answer in time, ended there |
| `canonical` | the canonical form of a column's values |
| `row_digest` | digests of rows, which a server sums up |
| `repair` | statements that make rows of the target equal to those of the sources |
| `repair_rows` | the rows of both ends that these statements are made of |
| `unique_values` | the values of such rows in further unique keys |
"""
