"""Continuous validation: rows that change are compared on both ends while the task runs.

Spark tasks report the keys that they change (`sync/steps/report_keys.py`). These commit with the batch's checkpoint
(`target/changed_keys.py`). Keys that differ are looked at again by the functions of `compare`. Rows that differ
are on record in the target (`target/validation_errors.py`) until a later look finds them right.

| module | contents |
|---|---|
| `on_demand` | the validator of a subtask, created on demand |
| `validator` | the thread of one source's validator, and its status |
| `tables` | the plan of how the tables are compared |
| `first_look` | the first comparison of keys that batches have changed |
| `full_load` | the rows of the full load, compared range by range |
| `judge` | keys that differed, compared again until each is decided |
| `verdicts` | the stored result for each key, and questions between the sources |
"""
