"""Sharding DDL: the two levels of the pessimistic protocol as pure state machines. DESIGN.md has the protocol."""
