"""Binlog files as a Spark data source: `spark.dataSource.register(BinlogDataSource)`, then format("binlog").

| module | contents |
|---|---|
| `source` | the data source: byte ranges, and the offsets of a stream |
| `options` | the options of a reader |
| `files` | the folder of binlog files as one log |
| `structures` | the structures by which rows are read |
| `rows` | decoded batches as rows with Spark's types |
"""

from unshard.spark.binlog.source import BinlogDataSource

__all__ = ["BinlogDataSource"]
