"""Binlog files as a Spark data source: `spark.dataSource.register(BinlogDataSource)`, then format("binlog")."""

from unshard.spark.binlog.source import BinlogDataSource

__all__ = ["BinlogDataSource"]
