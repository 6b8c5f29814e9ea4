"""From a range of the log to the plan of a batch. Runs on the driver."""
