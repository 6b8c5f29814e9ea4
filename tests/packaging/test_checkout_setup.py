"""The set-up of a checkout takes from the cache what others have built: kernels, Python libraries, mypy's results."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "src" / "unshard" / "kernels"
KERNEL = "seen_names"
PARTS = ("setup.py", "src/unshard/__init__.py", "src/unshard/testing/__init__.py", "src/unshard/testing/cache.py")
PYPROJECT = '[project]\nname = "unshard"\nversion = "0"\n[tool.setuptools.packages.find]\nwhere = ["src"]\n'


class Checkout:
    """A checkout with one kernel, whose cache is that of others in the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cache = folder.parent / "cache"
        declarations = [path.relative_to(ROOT) for path in KERNELS.glob("*.pxd")]
        kernel = (KERNELS / f"{KERNEL}.py").relative_to(ROOT)
        for part in (*map(Path, PARTS), *declarations, kernel, (KERNELS / "__init__.py").relative_to(ROOT)):
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / part, folder / part)
        (folder / "pyproject.toml").write_text(PYPROJECT)
        self.kernel = folder / kernel

    @property
    def entries(self) -> list[Path]:
        return sorted(path for path in (self.cache / "unshard" / "kernels").glob("*") if path.is_dir())

    @property
    def translated(self) -> bool:
        """Whether the kernel was compiled here."""
        return bool(list((self.folder / "build").glob(f"**/{KERNEL}.c")))

    @property
    def compiled(self) -> Path:
        (found,) = self.kernel.parent.glob(f"{KERNEL}.*.so")
        return found

    def build(self, *words: str) -> None:
        env = {**os.environ, "XDG_CACHE_HOME": str(self.cache)}
        command = [sys.executable, "setup.py", "-q", *(words or ("build_ext", "--inplace"))]
        done = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_kernel_is_compiled_once_for_all_checkouts(tmp_path: Path) -> None:
    first, second = Checkout(tmp_path / "first"), Checkout(tmp_path / "second")
    first.build()
    assert first.translated
    second.build()
    assert not second.translated
    assert second.compiled.read_bytes() == first.compiled.read_bytes()
    # newer than its source, by which it is known as that source's: tests/test_tidy.py
    assert second.compiled.stat().st_mtime > second.kernel.stat().st_mtime
    assert second.compiled.stat().st_nlink == 1, "who builds on does not change the cache"

    second.kernel.write_text(second.kernel.read_text() + "\n\nADDED = 1\n")
    second.build()
    assert second.translated
    assert len(second.entries) == 2
    assert second.compiled.read_bytes() != first.compiled.read_bytes()


def test_a_kernel_is_not_known_by_its_time(tmp_path: Path) -> None:
    """Another source with an older time, as of a file that was copied with its time, is compiled."""
    checkout = Checkout(tmp_path / "one")
    checkout.build()
    before = checkout.compiled.read_bytes()
    times = checkout.kernel.stat()
    checkout.kernel.write_text(checkout.kernel.read_text() + "\n\nADDED = 1\n")
    os.utime(checkout.kernel, ns=(times.st_atime_ns, times.st_mtime_ns - 10**12))
    checkout.build()
    assert checkout.compiled.read_bytes() != before
    assert len(checkout.entries) == 2


def test_compiled_kernels_of_deleted_sources_are_removed(tmp_path: Path) -> None:
    """A module that somebody deleted can't be imported, in a checkout that was built when it was there."""
    checkout = Checkout(tmp_path / "one")
    checkout.build()
    deleted = checkout.compiled.with_name(checkout.compiled.name.replace(KERNEL, "deleted"))
    shutil.copy(checkout.compiled, deleted)
    checkout.build()
    assert not deleted.exists()
    assert checkout.compiled.exists()


def test_make_compiles_again_where_a_source_was_deleted(tmp_path: Path) -> None:
    """Else the compiled kernel would stay until another source changes."""
    checkout = Checkout(tmp_path / "one")
    shutil.copy(ROOT / "Makefile", checkout.folder)
    checkout.build()
    (checkout.folder / ".venv").mkdir()
    (checkout.folder / ".venv" / ".kernels").touch()
    asked = ["make", "--question", "--assume-old=.venv/.package", ".venv/.kernels"]
    assert subprocess.run(asked, cwd=checkout.folder, check=False).returncode == 0, "all is built"
    checkout.compiled.with_name(checkout.compiled.name.replace(KERNEL, "deleted")).touch()
    assert subprocess.run(asked, cwd=checkout.folder, check=False).returncode == 1, "something is to be made"


def test_a_wheel_is_compiled_without_the_cache(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "one")
    checkout.build("build_ext")
    assert checkout.translated
    assert checkout.entries == []


class Setting:
    """A folder with checkouts that need one library, which has one program and is a wheel beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        wheel = folder / "thing-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as packed:
            info = "thing-1.0.dist-info"
            packed.writestr("thing.py", "import sys\n\ndef main():\n    print(sys.prefix, __file__)\n")
            packed.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n")
            packed.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            packed.writestr(f"{info}/entry_points.txt", "[console_scripts]\nthing = thing:main\n")
            packed.writestr(f"{info}/RECORD", "")
        self.lock = f"{wheel} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"

    def checkout(self, name: str) -> Path:
        checkout = self.folder / name
        (checkout / "tools").mkdir(parents=True)
        for tool in ("libraries", "cache", "python"):
            shutil.copy(ROOT / "tools" / tool, checkout / "tools" / tool)
        (checkout / "requirements.lock").write_text(self.lock)
        return checkout

    def set_up(self, checkout: Path) -> str:
        """What was printed."""
        env = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        command = [checkout / "tools" / "libraries"]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["second", "second with a space"])
def test_libraries_are_installed_once_for_all_checkouts(tmp_path: Path, name: str) -> None:
    setting = Setting(tmp_path)
    first, second = setting.checkout("first"), setting.checkout(name)
    assert "Installing Python libraries" in setting.set_up(first)
    assert setting.set_up(second) == ""
    for checkout in (first, second):
        told = subprocess.run([checkout / ".venv/bin/thing"], capture_output=True, text=True, check=True).stdout
        (module,) = (checkout / ".venv/lib").glob("python3.*/site-packages/thing.py")
        assert told == f"{checkout / '.venv'} {module}\n"
        assert module.stat().st_nlink == 3, "both checkouts' and the cache's are one file"
    shutil.rmtree(tmp_path / "cache")
    subprocess.run([second / ".venv/bin/pip", "uninstall", "-q", "-y", "thing"], check=True)
    subprocess.run([first / ".venv/bin/thing"], capture_output=True, check=True)


TYPED = '[tool.mypy]\nstrict = true\nfiles = ["src"]\n'


def test_what_mypy_knows_of_unchanged_files_comes_from_the_newest_checkout(tmp_path: Path) -> None:
    """The next one begins with it, sees all the same which files are others, and leaves one entry."""
    entries: list[Path] = []
    for name, code, right in (
        ("first", "x: int = 1", True),
        ("second", "x: int = 2", True),
        ("third", "x: int = ''", False),
    ):
        folder = tmp_path / name
        for part in ("tools/types", "tools/cache", "requirements.lock"):
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / part, folder / part)
        (folder / "pyproject.toml").write_text(TYPED)
        (folder / "src").mkdir()
        (folder / "src" / "a.py").write_text(f"{code}\n")
        (folder / "src" / "conftest.py").write_text("")
        (folder / ".venv").symlink_to(ROOT / ".venv")
        env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "MYPYPATH": "src"}
        done = subprocess.run(
            ["tools/types", "conftest"], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == right, done.stdout + done.stderr
        assert "Incompatible types in assignment" in done.stdout or right
        assert (folder / ".mypy_cache" / "seen").exists() == bool(entries)
        found = sorted(path for path in (tmp_path / "cache" / "unshard" / "types").glob("*/*") if path.is_dir())
        assert len(found) == 1
        assert (found == entries) != right
        (found[0] / "seen").touch()
        entries = found
