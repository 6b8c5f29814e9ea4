"""DDL statements: parse, rewrite, track, carry out once."""
