"""Spark sessions and jobs. The only package that imports pyspark.

| module | contents |
|---|---|
| `address` | the URL of a Spark master |
| `lazy` | a session that starts with its first job |
| `session` | the one session of a process |
| `class_archive` | an archive of classes, from which the JVM starts faster |
| `daemon` | the process from which Spark forks its Python workers |
| `folders` | whether executors see the folders of this machine |
| `survey` | how many tasks the executors run at a time, and whether they have the same versions |
| `job_data` | the data that a job's tasks have in common, which ends with the job |
| `jobs` | lists of tasks run as jobs, their end from another thread, their errors |
| `batches` | a batch as one job, with either exchange; a small one in this process |
| `batch_tasks` | the tasks of a batch, in worker processes |
| `worker_process` | functions that tasks call in their worker process: data of the job, barrier, counters |
| `binlog` | binlog files as a Spark data source |
"""
