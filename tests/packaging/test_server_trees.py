"""`tools/test-servers`: a tree in the cache is whole, made once, and of the pinned packages."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.task_runs import called, processes_below
from support.waiting import wait_until

TOOLS = Path(__file__).parents[2] / "tools"

# Debian's archive is a folder here. The one that stands for debootstrap writes a line each time that it is called, and
# then waits until the file `go` is there.
DEBOOTSTRAP = """#!/bin/bash
archive=$(dirname "$0")/../archive
echo "$*" >>"$archive/calls"
until [ -e "$archive/go" ]; do sleep 0.02; done
for word in "$@"; do
  case $word in
    --include=*) packages=${word#--include=} ;;
    */system) system=$word ;;
  esac
done
mkdir -p "$system/var/cache/apt/archives"
for package in ${packages//,/ }; do
  [ -e "$archive/$package"_*.deb ] || { echo "E: Couldn't find these debs: $package" && exit 1; }
  cp "$archive/$package"_*.deb "$system/var/cache/apt/archives"
done
"""


class Checkout:
    """A checkout with nothing but the tools, a cache of its own, and an archive of Debian that has one package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.archive = folder / "archive"
        self.archive.mkdir()
        for name in ("test-servers", "cache"):
            (folder / "tools").mkdir(exist_ok=True)
            shutil.copy(TOOLS / name, folder / "tools" / name)
        program = folder / "bin" / "debootstrap"
        program.parent.mkdir()
        program.write_text(DEBOOTSTRAP)
        program.chmod(0o755)
        self.lock = folder / "tools" / "servers.lock"
        self.offer("1.0-1")
        self.pin("1.0-1")
        self.go()

    @property
    def trees(self) -> list[Path]:
        """The entries of the cache that count."""
        found = (self.folder / "cache" / "unshard" / "servers").glob("*")
        return sorted(path for path in found if path.is_dir() and ".part." not in path.name)

    @property
    def calls(self) -> list[str]:
        """The words of each call of debootstrap."""
        file = self.archive / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def offer(self, version: str, content: str = "") -> None:
        """Have the archive offer this version of the package, in place of others."""
        for old in self.archive.glob("*.deb"):
            old.unlink()
        content = content or version
        root = self.archive / "root"
        (root / "DEBIAN").mkdir(parents=True, exist_ok=True)
        (root / "usr" / "share" / "thing").mkdir(parents=True, exist_ok=True)
        (root / "usr" / "share" / "thing" / "content").write_text(content)
        (root / "DEBIAN" / "control").write_text(
            f"Package: thing-core\nVersion: {version}\nArchitecture: all\nMaintainer: nobody\nDescription: nothing\n"
        )
        built = self.archive / f"thing-core_{version}_all.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, built], check=True, capture_output=True)

    def pin(self, version: str) -> None:
        """Pin what the archive offers as this version."""
        (offered,) = self.archive.glob("*.deb")
        digest = hashlib.sha256(offered.read_bytes()).hexdigest()
        self.lock.write_text(f"# pins\nthing debian sid thing-core\nthing package thing-core {version} {digest}\n")

    def go(self) -> None:
        (self.archive / "go").touch()

    def hold(self) -> None:
        (self.archive / "go").unlink()

    def start(self, *words: str) -> subprocess.Popen[str]:
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.Popen(
            [self.folder / "tools" / "test-servers", *words],
            env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str) -> tuple[int, str]:
        """Exit code and all that was printed."""
        with self.start(*words) as process:
            out, err = process.communicate()
        return process.returncode, out + err

    def content(self) -> str:
        (tree,) = self.trees
        return (tree / "usr" / "share" / "thing" / "content").read_text()


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    checkout = Checkout(tmp_path)
    yield checkout
    checkout.go()  # what a failed test leaves ends


def test_a_tree_is_made_once(checkout: Checkout) -> None:
    assert checkout.run("thing")[0] == 0
    assert checkout.content() == "1.0-1"
    assert [str(checkout.trees[0])] == checkout.run("--where", "thing")[1].splitlines()
    assert checkout.run("thing") == (0, "")
    assert len(checkout.calls) == 1


def test_two_processes_at_once_make_one_tree(checkout: Checkout) -> None:
    checkout.hold()
    with checkout.start("thing") as first, checkout.start("thing") as second:
        wait_until(lambda: len(checkout.calls) == 1, "one of them fetches")
        wait_until(
            lambda: any(called(process) == "flock" for one in (first, second) for process in processes_below(one.pid)),
            "the other one waits",
        )
        checkout.go()
        assert (first.wait(), second.wait()) == (0, 0)
    assert len(checkout.calls) == 1
    assert checkout.content() == "1.0-1"


def test_a_killed_process_leaves_nothing_that_counts(checkout: Checkout) -> None:
    checkout.hold()
    with checkout.start("thing") as killed:
        wait_until(lambda: len(checkout.calls) == 1, "it fetches")
        os.killpg(killed.pid, signal.SIGKILL)
    assert checkout.trees == []
    checkout.go()
    assert checkout.run("thing")[0] == 0
    assert checkout.content() == "1.0-1"
    names = [path.name for path in checkout.trees[0].parent.iterdir()]
    assert sorted(names) == [checkout.trees[0].name, f"{checkout.trees[0].name}.lock"]


def test_a_version_that_is_no_longer_offered_is_taken_only_when_asked(checkout: Checkout) -> None:
    checkout.offer("1.0-2")
    code, told = checkout.run("thing")
    assert code == 1
    assert (
        "Debian sid no longer offers packages that tools/servers.lock pins for thing: thing-core 1.0-1 (now 1.0-2);"
        " `tools/test-servers --renew thing` takes the new versions and pins them.\n"
    ) in told
    assert checkout.trees == []
    pins = checkout.lock.read_text()

    code, told = checkout.run("--renew", "thing")
    assert (code, checkout.content()) == (0, "1.0-2"), told
    assert checkout.lock.read_text() != pins
    assert [line.split()[:4] for line in checkout.lock.read_text().splitlines()] == [
        ["#", "pins"],
        ["thing", "debian", "sid", "thing-core"],
        ["thing", "package", "thing-core", "1.0-2"],
    ]
    assert checkout.run("thing") == (0, "")


def test_a_package_that_is_no_longer_offered_is_named(checkout: Checkout) -> None:
    checkout.offer("1.0-2")
    (checkout.archive / "thing-core_1.0-2_all.deb").unlink()
    code, told = checkout.run("thing")
    assert code == 1
    assert "thing-core 1.0-1 (now none); `tools/test-servers --renew thing`" in told
    assert checkout.trees == []


def test_another_content_of_the_same_version_is_refused(checkout: Checkout) -> None:
    checkout.offer("1.0-1", "something else")
    code, told = checkout.run("thing")
    assert code == 1
    assert "thing-core 1.0-1 was fetched, but its checksum is not the one in tools/servers.lock." in told
    assert checkout.trees == []


def test_other_pins_are_another_tree(checkout: Checkout) -> None:
    checkout.run("thing")
    checkout.offer("1.0-2")
    checkout.pin("1.0-2")
    assert checkout.run("thing")[0] == 0
    assert len(checkout.trees) == 2


@pytest.mark.parametrize("words", [[], ["--where"], ["nothing"], ["--renew", "nothing"]])
def test_other_words_are_answered_with_the_usage(checkout: Checkout, words: list[str]) -> None:
    code, told = checkout.run(*words)
    assert code == 2
    assert "tools/test-servers --where NAME" in told
