"""Sharding DDL, the pessimistic protocol of shard-mode, and rows that move meanwhile. Runs on the driver."""
