"""DDL and other statements of the log. Runs on the driver."""
