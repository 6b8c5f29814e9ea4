"""The steps that take a batch from bytes of the log to rows in the target. Run on executors."""
