"""Planning of a batch from a range of the log. Runs on the driver."""
