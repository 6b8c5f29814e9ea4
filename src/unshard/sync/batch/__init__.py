"""Values that the driver and the executors share: the plan of a batch, its stored form, counts and exclusions."""
