"""The upstream server: snapshots and the replica stream. No row of it is changed."""
