"""The dump unit: a consistent snapshot, chunk by chunk, to files.

`unit` shares the tables out (`plan`) and has them read from snapshots that start together (`locked`), or from a
snapshot for each table (`lock_free`). A task reads rows (`read`) and writes files (`write`), which get their final
names when the dump is whole (`folder`). The state of a dump is on disk (`metadata`): an interrupted one is resumed from
that (`folder`).
"""
