"""Unshard: copy, follow and merge sharded MySQL and MariaDB tables into one target, exactly once.

| module | contents |
|---|---|
| `__main__` | the script `unshard`, and `python -m unshard` |
| `cli` | the command line: `unshard run`, `compare`, `cutover`, `explain`, `demo` and the others |
| `ctl` | `unshard ctl`, the client of a master |
| `config` | task files, source files, and the config files of processes |
| `web` | HTTP of master and worker, and the page for browsers |
| `master` | the cluster: tasks, sources, workers, and the election of the leader |
| `api` | the messages between ctl, master and worker |
| `worker` | one source, its relay, and a subtask for each task |
| `explain` | the rules that decide about a table or a statement |
| `checks` | the checks before a task starts |
| `source` | the source server: snapshots and the replica stream |
| `dump` | the dump unit: tables to files |
| `load` | the load unit: files to the target |
| `relay` | the relay unit: the source's binlog files on disk |
| `binlog` | the bytes of a binlog: index, events, row images |
| `sync` | the sync unit: from the relay log to the target, batch by batch |
| `transform` | filters, routes, column mappings and extracted columns |
| `ddl` | DDL statements: parsed, rewritten, tracked and run once |
| `schema` | table structures as values, without a server |
| `shard` | the protocols of sharding DDL, without I/O |
| `target` | the target server: meta tables, receipts, checkpoint, transactions |
| `compare` | rows of the sources compared with those of the target; repair; cut-over |
| `validation` | continuous validation of the rows that change |
| `operate` | a user's commands on a task's records in the target |
| `spark` | Spark sessions and jobs |
| `kernels` | the compiled loops over bytes and values |
| `mysql` | connections, types, collations and structures of MySQL, MariaDB and TiDB |
| `model` | the values that all packages share |
| `metrics` | the metrics for Prometheus, their graphs and alerts |
| `log` | the log lines |
| `errors` | the exceptions, and their transport from a Spark task to the driver |
| `error_catalogue` | the text and the remedy of each error code |
| `run_tasks` | the call by which a unit has its tasks run on Spark's executors |
| `credentials` | passwords and tokens in texts, replaced |
| `retry` | the number of attempts at a failed operation, and the pauses between them |
| `crash_point` | the places at which a test may kill or freeze the process |
| `testing` | throwaway servers, workloads and comparisons |
"""
