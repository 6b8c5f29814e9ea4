"""The source's log as work: the next item, from which position, and what an open batch still needs.

| module | contents |
|---|---|
| `reader` | the next work after a location; the work of an open batch, read again |
| `prepared_xa` | prepared XA transactions |
| `failover` | locations translated to the binlog of another server |
"""
