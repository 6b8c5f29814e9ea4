"""The machine and the versions that a report was made with."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from unshard.testing.programs import MissingProgramError, program

_LIBRARIES = ("pyspark", "pyarrow", "mysqlclient", "numpy", "cython", "mysql-replication")
_PROGRAMS = {
    "mariadbd": ("--version",),
    "mariadb-binlog": ("--version",),
    "mydumper": ("--version",),
    "java": ("-version",),
}
_ROOT = Path(__file__).parents[2]


def describe() -> dict[str, Any]:
    """Return processor, cores, memory, load, system, and the versions of programs and libraries."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
        "revision": _said(["git", "-C", str(_ROOT), "rev-parse", "--short", "HEAD"]),
        "programs": {name: _said([name, *words]) for name, words in _PROGRAMS.items()},
        "libraries": {name: version(name) for name in _LIBRARIES},
    }


def _processor() -> str:
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def _said(command: Sequence[str]) -> str:
    """Return the first line that a program prints, or that it is not installed."""
    name, *words = command
    try:
        done = subprocess.run([program(name), *words], capture_output=True, text=True, check=False)
    except MissingProgramError:
        return "not installed"
    said = (done.stdout or done.stderr).strip().splitlines()
    return said[0].replace(f"{program(name)} ", "").strip() if said else "unknown"
