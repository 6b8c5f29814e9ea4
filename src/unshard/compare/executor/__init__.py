"""What a comparison does in Spark tasks. Nothing here knows the driver."""
