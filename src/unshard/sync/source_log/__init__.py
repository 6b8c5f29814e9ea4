"""Turns the relay log into work for the sync: the next rows or statement after a location, or those of an open batch.

| module | contents |
|---|---|
| `reader` | the next work after a location |
| `open_batch` | the work of an open batch, read again by its stored plan |
| `tail` | the same at the end of a log that grows, without reading an incomplete transaction again and again |
| `seek` | the location of a GTID set |
| `prepared_xa` | prepared XA transactions |
| `failover` | locations translated to the binlog of another server |
"""
