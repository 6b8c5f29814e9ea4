"""The part of a comparison that runs in Spark tasks. It imports nothing of the driver."""
