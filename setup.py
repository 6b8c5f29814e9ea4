"""Compiles the kernels: every file of `unshard/kernels` is Python to read and a C extension when installed.

All other settings stand in pyproject.toml. Bounds checks and the like are set by directives in the files themselves.

Kernels that are compiled into a checkout are kept in the cache (`unshard.testing.cache`), where the next checkout finds
them. A wheel's kernels are always compiled.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

sys.path.insert(0, "src")  # for a module of this folder that needs no library
from unshard.testing.cache import cache_folder, made_once, short_sum

FOLDER = Path("src/unshard/kernels")
KERNELS = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")

OF_TESTS = frozenset({"applied_once", "cluster", "compare", "hold", "proxy", "spark_cluster", "type_cases"})
"""Modules of `unshard.testing` that only tests and benchmarks use: no wheel has them. The demo uses the others."""


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
    """The kernels as extension modules."""
    return [
        Extension(f"unshard.kernels.{path.stem}", [path.as_posix()], extra_compile_args=["-O3", "-g0"])
        for path in KERNELS
    ]


def remove_kernels_without_source() -> None:
    """Remove compiled kernels whose source was deleted. Python would still import them, with what they did then."""
    sources = {path.stem for path in KERNELS}
    for compiled in FOLDER.glob("*.so"):
        if compiled.name.partition(".")[0] not in sources:
            compiled.unlink()


class BuildModules(build_py):  # type: ignore[misc]
    """Copies the modules of a wheel, without those of the tests."""

    def build_module(self, module: str, module_file: str, package: str) -> object:
        name = package if isinstance(package, str) else ".".join(package)
        if name == "unshard.testing" and module in OF_TESTS:
            return module_file, False
        return super().build_module(module, module_file, package)


class BuildKernels(build_ext):  # type: ignore[misc]
    """Translates the kernels to C under `build/` and compiles them, but takes from the cache what a checkout can."""

    def run(self) -> None:
        self.into_checkout = bool(self.inplace)  # which the base class changes meanwhile
        self.force = True  # the times of files do not tell what is in them
        if self.into_checkout:
            remove_kernels_without_source()
        super().run()

    def build_extension(self, kernel: Extension) -> None:
        if not self.into_checkout:
            self.compile(kernel)
            return
        built = Path(self.get_ext_fullpath(kernel.name))

        def make(fresh: Path) -> None:
            self.compile(kernel)
            shutil.copyfile(built, fresh / built.name)

        entry = cache_folder() / "kernels" / f"{kernel.name.rpartition('.')[2]}-{self.key(kernel)}"
        kept = made_once(entry, make) / built.name
        built.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(kept, built)

    def compile(self, kernel: Extension) -> None:
        from Cython.Build import cythonize  # only where there is something to translate

        options = {"build_dir": "build/cython", "language_level": 3, "quiet": True, "force": True}
        (translated,) = cythonize([kernel], **options)
        kernel.sources = translated.sources
        super().build_extension(kernel)

    def key(self, kernel: Extension) -> str:
        """What a compiled kernel depends on: its source, the declarations of all, this file, compiler and Python."""
        import Cython

        commands = [*self.compiler.compiler_so, *self.compiler.linker_so]
        compiler = subprocess.run([commands[0], "--version"], capture_output=True, check=True).stdout
        files = [*kernel.sources, *sorted(FOLDER.glob("*.pxd")), Path(__file__)]
        versions = f"{commands} {sys.version} {Cython.__version__}"
        return short_sum(b"".join([*(Path(file).read_bytes() for file in files), compiler, versions.encode()]))


if not {"sdist", "clean"}.intersection(sys.argv):
    lack = missing_package()
    if lack:
        sys.exit(f"unshard can't be built without {lack[0]}: apt-get install {lack[1]}")

setup(ext_modules=extensions(), cmdclass={"build_py": BuildModules, "build_ext": BuildKernels})
