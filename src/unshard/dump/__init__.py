"""The dump unit: a consistent snapshot, chunk by chunk, to files.

`unit` shares the tables out (`plan`) and has them read from snapshots that start together (`locked`), or from one of
each table's own (`lock_free`). A task reads rows (`read`) and writes files (`write`, with `sql_file` or
`parquet_file`), which get their final names when a table is whole (`publish`). What is known of a dump is on disk
(`metadata`): one that was broken off goes on by that (`start`).
"""
