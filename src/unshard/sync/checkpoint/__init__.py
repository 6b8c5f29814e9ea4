"""The durable part of a source's progress: claims, open batches, checkpoints, safe mode. Runs on the driver."""
