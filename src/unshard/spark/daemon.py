"""The process that Spark forks Python workers from on this machine: pyspark's own, which has loaded what tasks need.

By itself each worker loads it anew, pyspark from a zip file without compiled code: over a second of processor before
its first task.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from pathlib import Path

MODULE = "unshard.spark.daemon"
_WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""What numpy and pyarrow must be told before they are loaded. No task calculates by OpenBLAS, or uses jemalloc."""


def load() -> bool:
    """Load it; whether this process may be forked: it has one thread still, as far as that can be seen."""
    os.environ.update(_WITHOUT_THREADS)
    spark = os.environ.get("SPARK_HOME")
    if spark:  # pyspark's zip file, and a jar: the interpreter has the same pyspark itself
        sys.path[:] = [path for path in sys.path if not path.startswith(spark) or os.path.isdir(path)]
    import_module("pyspark.worker")
    import_module("unshard.spark.batches")
    import pyarrow as pa

    pa.array([0])  # loads pandas
    gc.collect()
    gc.freeze()
    threads = Path("/proc/self/task")
    return threads.is_dir() and len(list(threads.iterdir())) == 1


def main() -> None:
    if not load():
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
