"""Compiles the kernels: every file of `unshard/kernels` is Python to read and a C extension when installed.

All other settings stand in pyproject.toml. Bounds checks and the like are set by directives in the files themselves.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

KERNELS = sorted(path for path in Path("src/unshard/kernels").glob("*.py") if path.name != "__init__.py")


def missing_package() -> tuple[str, str] | None:
    """What the build lacks and the Debian package that has it, or None where all is there."""
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[0]
    if not (shutil.which(compiler) or shutil.which("cc")):
        return "a C compiler", "gcc"
    include = Path(sysconfig.get_path("include"))
    if not (include / "Python.h").exists():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"Python.h of Python {version}", f"python{version}-dev"
    if not (_driver_is_built() or _client_headers_are_there()):
        return "the headers of the MariaDB client library", "libmariadb-dev"
    return None


def _driver_is_built() -> bool:
    return Path(sysconfig.get_path("platlib"), "MySQLdb").is_dir()


def _client_headers_are_there() -> bool:
    """Looks as mysqlclient's own build does: pkg-config first, then the `*_config` programs."""
    if shutil.which("pkg-config"):
        for library in ("mysqlclient", "mariadb", "libmariadb", "perconaserverclient"):
            if subprocess.run(["pkg-config", "--exists", library], check=False).returncode == 0:
                return True
    return any(shutil.which(program) for program in ("mysql_config", "mariadb_config"))


def extensions() -> list[Extension]:
    """The kernels as extension modules, translated to C under `build/`."""
    if not KERNELS:
        return []
    from Cython.Build import cythonize  # only where there is something to translate

    modules = [
        Extension(f"unshard.kernels.{path.stem}", [path.as_posix()], extra_compile_args=["-O3", "-g0"])
        for path in KERNELS
    ]
    return list(cythonize(modules, build_dir="build/cython", language_level=3, quiet=True))


if not {"sdist", "clean"}.intersection(sys.argv):
    lack = missing_package()
    if lack:
        sys.exit(f"unshard can't be built without {lack[0]}: apt-get install {lack[1]}")

setup(ext_modules=extensions())
