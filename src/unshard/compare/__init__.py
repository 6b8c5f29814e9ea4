"""Comparing the rows of the sources with those of the target: `unshard compare`.

The driver's part lies in this folder, what runs in Spark tasks in `executor/`. The way of a comparison:

| step | where | what |
|---|---|---|
| plan | `plan.py` | source tables by target table, the columns and the key that are compared, what can't be compared |
| cut | `ranges.py`, `pace.py` | key ranges, sized by the time that the last ones took |
| compare | `executor/chunk.py` | a checksum of each side; where they differ, the keys of the rows that differ |
| look again | `chase.py`, `executor/look.py` | those keys, once the target has caught up |
| tell | `result.py`, `report.py` | differences by key, a verdict for each table and for all |
| repair | `repairer.py`, `executor/repair.py`; `repair.py` | where it is asked for: rows of the target, or a file |

`cutover.py` leads through the end of a migration, of which a comparison is the last step; `report.py` shows it.
"""
