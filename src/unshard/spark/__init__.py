"""Spark sessions and jobs. The only package that imports pyspark.

| module | contents |
|---|---|
| `address` | the URL of a Spark master |
| `lazy` | a session that starts with its first job |
| `session` | the one session of a process |
| `class_archive` | an archive of classes, from which the JVM starts faster |
| `daemon` | the process from which Spark forks its Python workers |
| `survey` | the executors: how many tasks they run at a time, whether their versions are the same |
| `folders` | whether executors see the folders of this machine |
| `jobs` | lists of tasks run as jobs, their end from another thread, their errors |
| `batches` | a batch as one job, with either exchange; a small one in this process |
| `batch_tasks` | the tasks of a batch's job |
| `python_worker` | the end of a task in a Python worker; the barrier between tasks |
| `binlog` | binlog files as a Spark data source |
"""
