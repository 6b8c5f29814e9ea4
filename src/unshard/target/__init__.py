"""The downstream server: statements, meta tables, receipts.

`meta` has the tables that are kept there, the files of their names what the rows mean; `receipts` is how a batch is
applied exactly once. Rows are written by `writer`; the limits that all writers keep together are in `gate`.
"""
