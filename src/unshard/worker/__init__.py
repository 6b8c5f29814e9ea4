"""A worker's side: one source, its relay, and the subtask of each of its tasks, a chain of units.

`agent` obeys the master, `source_worker` and `subtask_runner` hold what it asks for, `build` wires a subtask of its
config, and `subtask` runs its units. `report` and `metrics` only read.
"""
