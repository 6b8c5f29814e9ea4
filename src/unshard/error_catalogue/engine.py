"""Errors of Spark: its session, its jobs, its executors."""

from __future__ import annotations

from unshard.error_catalogue.entry import CatalogueEntry

ENGINE: dict[str, CatalogueEntry] = {
    "ENGINE-001": CatalogueEntry(
        "Spark can't be started on {master}",
        "read {log}, check that `java -version` says 17 or newer, and check the settings under `conf` of the task's "
        "`spark`",
    ),
    "ENGINE-002": CatalogueEntry(
        "a Spark job failed ({task})", "see the Spark log beside the task's data; start again", retryable=True
    ),
    "ENGINE-003": CatalogueEntry(
        "Spark has ended in the middle of a job ({task}): its JVM, or its server, has ended",
        "see the Spark log beside the task's data, and the kernel's log for a process that was killed for lack of "
        "memory; "
        "start the same command again: it goes on from here, and nothing is lost or applied twice",
    ),
    "ENGINE-004": CatalogueEntry(
        "Spark is out of reach at {master}",
        "check that it runs, that the address is the one it listens on, and that no firewall is in between; then start "
        "again",
        retryable=True,
    ),
    "ENGINE-005": CatalogueEntry(
        "Spark's executors run other versions than this process: {differences}",
        "install the same release of Unshard, with the libraries of its lock file, on every machine of the cluster, "
        "and name its interpreter with `python` under `spark`; or send a packed environment with `archives`",
    ),
    "ENGINE-006": CatalogueEntry(
        "Spark's executors can't run Unshard",
        "install Unshard on every machine of the cluster and name its interpreter with `python` under `spark`, or send "
        "a packed environment with `archives`",
    ),
    "ENGINE-007": CatalogueEntry(
        "no Spark executor came within {seconds} s",
        "check the cluster's own pages for free cores and memory; lower spark.executor.memory and spark.cores.max "
        "under "
        "`conf`, or end what holds them; then start again",
        retryable=True,
    ),
    "ENGINE-008": CatalogueEntry(
        "Spark's executors don't see the files of this folder, which the dump's files go through",
        "set `dir` under `loaders` to a folder of a filesystem that all machines of the cluster have at the same path "
        "(NFS, CephFS), with the right to write for the executors' user; or run this task with `master: local[*]`",
    ),
    "ENGINE-009": CatalogueEntry(
        "the session at the Spark Connect server is lost ({task}): the server has ended, was started anew, or can't be "
        "reached",
        "see that the server runs; start the same command again: it goes on from here, and nothing is lost or applied "
        "twice",
        retryable=True,
    ),
    "ENGINE-010": CatalogueEntry(
        "a dump under a lock needs all of its tasks at once, which Spark doesn't give with dynamic allocation",
        'set spark.dynamicAllocation.enabled to "false" under `conf`, or for Spark Connect at its server; or dump '
        "with `consistency: none`",
    ),
    "ENGINE-011": CatalogueEntry(
        "the batch is {size} MiB of log and Spark's executors don't see the relay log: no more than {limit} MiB can be "
        "sent along",
        "put `relay-dir` on a filesystem that all machines of the cluster have at the same path, so that {folder} is "
        "seen there; or run this task with `master: local[*]`",
    ),
    "ENGINE-012": CatalogueEntry(
        "Java is not installed, and Spark needs it",
        "install Java 17 or newer, on Debian and Ubuntu by `apt-get install default-jre-headless`, or set JAVA_HOME to "
        "the folder of one that is installed; then start again",
    ),
    "ENGINE-013": CatalogueEntry(
        "Spark, which the next step needs, is not started any more: the run is being stopped",
        "nothing has to be done: start the same command again, and it goes on from here",
    ),
}
