"""Samples of this process itself (`of_process`)."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from unshard.metrics.sample import Sample

_BEGUN = time.time()
_STATM = Path("/proc/self/statm")


def process_samples() -> Iterator[Sample]:
    """The process as it is now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield Sample("unshard_build_info", {"version": own_version()}, 1)
    yield Sample("process_cpu_seconds_total", {}, used.ru_utime + used.ru_stime)
    yield Sample("process_start_time_seconds", {}, _BEGUN)
    if _STATM.exists():
        pages = int(_STATM.read_text().split()[1])
        yield Sample("process_resident_memory_bytes", {}, pages * os.sysconf("SC_PAGE_SIZE"))


def own_version() -> str:
    """Of this installation."""
    try:
        return version("unshard")
    except PackageNotFoundError:
        return "unknown"
