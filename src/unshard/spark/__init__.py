"""Spark sessions and jobs: the only importer of pyspark."""
