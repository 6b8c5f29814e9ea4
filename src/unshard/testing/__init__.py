"""Throwaway servers, workloads and comparisons, for tests, bench and demo; for tests alone: `tests/support`.

The wheel has what the demo uses (`OF_TESTS` in setup.py names the others).

| module | contents |
|---|---|
| `cache` | the cache of everything that is fetched or made once |
| `guard` | child processes that end with their parent |
| `programs` | the database programs of this machine |
| `throwaway_server` | the base of all throwaway servers |
| `mariadb_server` | throwaway MariaDB servers, of the installed version |
| `server_trees` | trees of unpacked packages, from which programs run that are not installed |
| `mysql_server` | throwaway servers of packages that are not installed: MySQL, and other releases of MariaDB |
| `tidb_server` | throwaway TiDB servers |
| `cluster` | a throwaway cluster of masters and workers |
| `spark_cluster` | a throwaway Spark cluster |
| `proxy` | a TCP proxy that cuts, stalls and damages connections |
| `shapes` | kinds of test tables |
| `type_cases` | column types with values that must arrive unchanged |
| `workload` | seeded random work on shard tables |
| `hold` | batches held up by locked rows |
| `compare` | source tables compared with the target table |
| `applied_once` | the check that each change was applied exactly once |
| `binlog_count` | the row changes in a server's own binlog |
| `tidb_history` | the versions of rows in a TiDB |
"""
