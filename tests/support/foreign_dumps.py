"""The `metadata` of a finished dump, as mydumper 0.10 and dumpling write it."""

METADATA = """Started dump at: 2026-01-02 03:04:05
SHOW MASTER STATUS:
\tLog: mysql-bin.000007
\tPos: 4711
\tGTID:0-1-99

Finished dump at: 2026-01-02 03:04:06
"""
