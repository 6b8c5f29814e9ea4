"""The programs of this machine that tests, bench and demo need.

They are found even outside of an ordinary user's PATH (`/usr/sbin`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence


def program_version(command: Sequence[str]) -> str:
    """Return the version that a server program prints, `10.11.6-MariaDB` or the like."""
    told = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    return told.split("Ver ")[-1].split()[0]


_PACKAGES = {
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
    "mariadb": "mariadb-client",
    "mariadb-binlog": "mariadb-client",
    "mydumper": "mydumper",
    "myloader": "mydumper",
}


class MissingProgramError(RuntimeError):
    """Raised where a program that the tests, the bench or the demo need is not installed.

    The text names its Debian package.
    """


def program(name: str) -> str:
    """Return the full path of a program. Raises MissingProgramError, which says what to install."""
    path = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin")))
    if path is None:
        raise MissingProgramError(f"{name} is not installed: apt-get install {_PACKAGES.get(name, name)}")
    return path
