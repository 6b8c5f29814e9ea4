"""Turns the relay log into work: the next rows or statement behind a position, and what an open batch still needs.

| module | contents |
|---|---|
| `reader` | the next work after a location |
| `open_batch` | the work of an open batch, read again by its record |
| `seek` | the location of a GTID set |
| `prepared_xa` | prepared XA transactions |
| `failover` | locations translated to the binlog of another server |
"""
