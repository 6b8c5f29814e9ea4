"""Continuous validation: rows that change are compared on both ends while the task runs.

| step | where | what |
|---|---|---|
| report | `sync/steps/report_keys.py` | tasks of a batch report which keys of the target they change |
| keep | `target/validation_backlog.py` | the keys commit with the checkpoint of the batch |
| look first | `compare/executor/changed.py` | which of these keys differ |
| look at the full load | `full_load.py`, `compare/executor/chunk.py` | which loaded rows differ, range by range |
| judge | `judge.py`, `compare/chase.py` | those keys again, once the target has what was seen in the source |
| tell | `target/validation_errors.py` | rows that differ are errors, until a later look finds them right |
"""
