"""The dump unit: a consistent snapshot of a source, chunk by chunk, to files.

An interrupted dump is resumed from the records in its folder.

| module | contents |
|---|---|
| `unit` | the unit: starts or resumes a dump and shares the tables out to Spark tasks |
| `plan` | tables, consistency, key ranges, shares of equal weight, and groups with one snapshot |
| `settings` | the user's settings |
| `folder` | the begin of a dump in its folder, and its end, when files get their final names |
| `locked` | dumps whose snapshots start under one lock, and dumps without a common snapshot |
| `lock_free` | dumps without a lock: a snapshot for each table, or for several small ones |
| `true_defaults` | the defaults that a source shows with other letters than they have |
| `ranges` | a large table, read over several connections that have one snapshot |
| `result_rows` | rows of a large result as Arrow columns, off the socket |
| `read` | the rows of a chunk as Arrow batches |
| `write` | rows into Parquet or SQL files |
| `parquet_file` | a Parquet file |
| `sql_file` | a file of INSERT statements |
| `files` | names of dump files |
| `durable` | durable, atomic writes of files |
| `metadata` | the state of a dump on disk: location, finished tables, files |
| `progress` | the progress of a dump, table by table |
"""
