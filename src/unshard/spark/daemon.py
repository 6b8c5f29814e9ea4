"""The process that Spark forks Python workers from on this machine: pyspark's own, which has loaded what tasks need.

By itself each worker loads it anew, pyspark from a zip file without compiled code: over a second of processor before
its first task.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

MODULE = "unshard.spark.daemon"
_WITHOUT_THREADS = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""What numpy and pyarrow must be told before they are loaded. No task calculates by OpenBLAS, or uses jemalloc."""


def load() -> bool:
    """Load it; whether this process may be forked: it has one thread still, as far as that can be seen."""
    os.environ.update(_WITHOUT_THREADS)
    sys.path[:] = _compiled(sys.path, os.environ.get("SPARK_HOME", ""))
    import_module("pyspark.worker")
    import_module("unshard.spark.batches")
    _without_pandas()
    gc.collect()
    gc.freeze()
    threads = Path("/proc/self/task")
    return threads.is_dir() and len(list(threads.iterdir())) == 1


class _NoPandas(MetaPathFinder):
    """Asked first where a module is, it has the import of pandas fail."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _without_pandas() -> None:
    """Let pyarrow find no pandas, which it loads with the first array if it can and looks for once only: a third of
    all that is loaded here, and no task has a use for it."""
    import pyarrow as pa

    absent = _NoPandas()
    sys.meta_path.insert(0, absent)
    pa.array([0])
    sys.meta_path.remove(absent)


def _compiled(paths: Sequence[str], spark: str) -> list[str]:
    """Without the zip files and jars of the Spark in that folder, where the interpreter's pyspark is the same one."""
    folders = [path for path in paths if os.path.isdir(path)]
    found = PathFinder.find_spec("pyspark", folders)
    if found is None or not found.origin or Path(found.origin).parent.resolve() != Path(spark).resolve():
        return list(paths)
    return [path for path in paths if path in folders or not path.startswith(spark)]


def main() -> None:
    if not load():
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
