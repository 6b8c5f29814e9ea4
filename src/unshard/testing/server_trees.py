"""Trees of unpacked packages, from which programs run that are not installed: database servers, and nginx for tests.

`tools/test-servers` fetches them. The programs use the libraries of their tree, through its own loader if it has one,
so they need neither an installation nor a chroot.
"""

from __future__ import annotations

from pathlib import Path

from unshard.testing.cache import server_folder
from unshard.testing.programs import MissingProgramError

_LOADER = Path("/lib64/ld-linux-x86-64.so.2")


def server_tree(name: str) -> Path:
    """Return the tree of unpacked packages called `mysql`, `mysql-5.6`, `nginx` and so on (see `server_folder`).

    Raises MissingProgramError if nothing is there.
    """
    tree = server_folder(name)
    how = f"`tools/test-servers {name}`, in a checkout of Unshard's sources, fetches it"
    if tree is None:
        raise MissingProgramError(f"{name} is not there. {how}")
    if not (tree / "usr").is_dir():
        raise MissingProgramError(f"{name} is not in {tree}. {how}")
    return tree


def unpacked(tree: Path, name: str) -> list[str]:
    """Return the command that runs a program of the tree: its loader, its libraries, the program; arguments may follow.

    A tree without a C library uses the system's loader.
    """
    (loader,) = {path.resolve() for path in tree.glob("usr/lib*/ld-linux*.so.*")} or {_LOADER}
    libraries = ":".join(str(path) for path in tree.glob("usr/lib/*-linux-gnu*") if path.is_dir())
    found = next((path for folder in ("sbin", "bin") if (path := tree / "usr" / folder / name).exists()), None)
    if found is None:
        raise MissingProgramError(f"{name} is not in {tree}: remove the folder and run tools/test-servers")
    return [str(loader), "--library-path", libraries, str(found)]
