"""The cache of servers and data: an entry is whole, made once, and where `tools/test-servers` says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.waiting import wait_until
from unshard.testing import cache
from unshard.testing.cache import CHECKOUT, cache_folder, made_once, server_folder
from unshard.testing.programs import MissingProgramError
from unshard.testing.throwaway_server import ServerBootError, template
from unshard.testing.tidb_server import tidb_program

PROGRAM = CHECKOUT / "tools" / "test-servers"
PINS = (CHECKOUT / "tools" / "servers.lock").read_text()
NAMES = sorted({line.split()[0] for line in PINS.splitlines() if line and not line.startswith("#")} | {"tidb"})
MAKER = """
import sys
from pathlib import Path
from unshard.testing.cache import made_once

def make(fresh):
    (fresh / "half").touch()
    print(fresh, flush=True)
    sys.stdin.read()

made_once(Path(sys.argv[1]), make)
"""


def where(name: str) -> Path:
    told = subprocess.run([PROGRAM, "--where", name], capture_output=True, text=True, check=True)
    return Path(told.stdout.removesuffix("\n"))


@pytest.mark.parametrize("name", NAMES)
def test_the_shell_and_python_mean_the_same_folder(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    variable = f"UNSHARD_{name.replace('-', '_').replace('.', '_').upper()}_ROOT"
    monkeypatch.delenv(variable, raising=False)
    assert server_folder(name) == where(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert server_folder(name) == where(name)
    assert where(name).parent == cache_folder() / "servers" == tmp_path / "unshard" / "servers"
    monkeypatch.setenv(variable, str(tmp_path / "mine"))
    assert server_folder(name) == where(name) == tmp_path / "mine"


def test_each_server_has_a_folder_of_its_own() -> None:
    assert len({server_folder(name) for name in NAMES}) == len(NAMES) == 9


def test_without_a_checkout_the_missing_tidb_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("UNSHARD_TIDB_ROOT", raising=False)
    monkeypatch.setattr(cache, "_PINNED", tmp_path / "tools" / "servers.lock")
    with pytest.raises(MissingProgramError, match=r"is not there\. `tools/test-servers tidb`.*UNSHARD_TIDB_ROOT"):
        tidb_program()
    monkeypatch.setenv("UNSHARD_TIDB_ROOT", str(tmp_path))
    (tmp_path / "tidb-server").touch()
    assert tidb_program() == tmp_path / "tidb-server"


def test_of_several_that_ask_at_once_one_makes_it(tmp_path: Path) -> None:
    together = threading.Barrier(4)
    made = []

    def make(fresh: Path) -> None:
        made.append(fresh)
        (fresh / "content").write_text("whole")

    def ask(_: int) -> str:
        together.wait()
        return (made_once(tmp_path / "entry", make) / "content").read_text()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == ["whole"] * 4
    assert len(made) == 1


def test_what_a_killed_process_made_does_not_count(tmp_path: Path) -> None:
    entry = tmp_path / "entry"
    maker = subprocess.Popen([sys.executable, "-c", MAKER, entry], stdin=-1, stdout=-1, text=True)
    assert maker.stdin is not None
    assert maker.stdout is not None
    fresh = Path(maker.stdout.readline().strip())
    waiting = subprocess.Popen([sys.executable, "-c", MAKER, entry], stdin=-1, stdout=-1, text=True)
    assert waiting.stdin is not None
    assert waiting.stdout is not None
    waiting.stdin.close()  # it may end as soon as it is its turn
    assert fresh.parent == tmp_path
    assert not entry.exists()
    os.kill(maker.pid, signal.SIGKILL)
    wait_until(entry.is_dir, "the one that waited has made it")
    waiting.stdout.close()
    assert (maker.wait(), waiting.wait()) == (-signal.SIGKILL, 0)
    assert not fresh.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"entry", "entry.lock"}


def test_a_cache_that_cannot_be_written_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ServerBootError, match=r"/file/unshard/templates: .*; XDG_CACHE_HOME names another folder"):
        template("thing", None, lambda fresh: None)


def test_an_entry_that_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    def fail(fresh: Path) -> None:
        (fresh / "half").touch()
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        made_once(tmp_path / "entry", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["entry.lock"]
    assert list(made_once(tmp_path / "entry", lambda fresh: None).iterdir()) == []
