"""Spark sessions and jobs. The only package that imports pyspark."""
