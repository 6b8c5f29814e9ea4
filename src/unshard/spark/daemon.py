"""The process from which Spark forks Python workers on this machine: pyspark's daemon, with tasks' modules loaded.

Otherwise each worker would load them again, pyspark from a zip file without compiled code, which takes more than a
second of CPU time before its first task.
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
"""Settings that numpy and pyarrow read when they are loaded. No task calculates by OpenBLAS, or uses jemalloc."""


def load() -> bool:
    """Load the modules; return whether this process may be forked.

    It may if it still has only one thread, as far as can be seen.
    """
    os.environ.update(_WITHOUT_THREADS)
    sys.path[:] = _compiled(sys.path, os.environ.get("SPARK_HOME", ""))
    import_module("pyspark.worker")
    import_module("unshard.spark.batch_tasks")
    _without_pandas()
    gc.collect()
    gc.freeze()
    threads = Path("/proc/self/task")
    return threads.is_dir() and len(list(threads.iterdir())) == 1


class _NoPandas(MetaPathFinder):
    """An import finder, asked before all others, that makes the import of pandas fail."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def _without_pandas() -> None:
    """Make pyarrow believe that there is no pandas.

    pyarrow looks for pandas only once, with the first array, and would load it: a third of all that is loaded here, and
    no task uses it.
    """
    import pyarrow as pa

    absent = _NoPandas()
    sys.meta_path.insert(0, absent)
    pa.array([0])
    sys.meta_path.remove(absent)


def _compiled(paths: Sequence[str], spark: str) -> list[str]:
    """Return the paths without the zip files and jars in the folder `spark`.

    All paths are returned unless the interpreter's pyspark is the same.
    """
    folders = [path for path in paths if os.path.isdir(path)]
    found = PathFinder.find_spec("pyspark", folders)
    if found is None or not found.origin or Path(found.origin).parent.resolve() != Path(spark).resolve():
        return list(paths)
    return [path for path in paths if path in folders or not path.startswith(spark)]


def main() -> None:
    """Serve as pyspark's daemon, with the modules loaded; run pyspark's own daemon where a fork is not safe."""
    if not load():
        os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
