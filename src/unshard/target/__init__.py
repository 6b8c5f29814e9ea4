"""The downstream server: statements, meta tables, receipts.

`meta` has the tables that are kept there; each other file is named after what its rows mean. `receipts` is how a batch
is applied exactly once. Rows are written by `writer`; the limits that all writers share are in `rate_limiter`.
"""
