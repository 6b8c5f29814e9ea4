"""The upstream server: snapshots and the replica stream."""
