"""The database programs of this machine, found also where an ordinary user's PATH does not lead (`/usr/sbin`)."""

from __future__ import annotations

import os
import shutil

_PACKAGES = {
    "mariadbd": "mariadb-server-core",
    "mariadb-install-db": "mariadb-server-core",
    "mariadb": "mariadb-client",
    "mariadb-binlog": "mariadb-client",
    "mydumper": "mydumper",
    "myloader": "mydumper",
}


class MissingProgramError(RuntimeError):
    """A program that the tests, the bench or the demo run is not installed; the text names its Debian package."""


def program(name: str) -> str:
    """The full path of a program. Raises MissingProgramError, which says what to install."""
    path = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin")))
    if path is None:
        raise MissingProgramError(f"{name} is not installed: apt-get install {_PACKAGES.get(name, name)}")
    return path
