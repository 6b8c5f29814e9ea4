"""Binlog bytes to an index and to row images. Opens no socket."""
