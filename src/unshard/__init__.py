"""Unshard: copy, follow and merge sharded MySQL and MariaDB tables into one target, exactly once."""
