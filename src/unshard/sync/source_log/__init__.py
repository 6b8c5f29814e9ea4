"""Reads a source's relay log as work items: the next rows or statement after a location, or those of an open batch.

| module | contents |
|---|---|
| `reader` | the next work item after a location |
| `open_batch` | the work item of an open batch, read again by its stored plan |
| `seek` | the location of a GTID set |
| `prepared_xa` | prepared XA transactions |
| `failover` | locations translated to the binlog of another server |
"""
