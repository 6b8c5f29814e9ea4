"""Where `unshard ctl` finds a run: the file names one that lives, and goes with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from unshard.cli.run_file import address_in


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "unshard.addr"


@pytest.fixture
def living() -> Iterator[str]:
    """The address of a server that answers."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_it_is_there_for_as_long_as_the_run(file: Path) -> None:
    with address_in(file, "127.0.0.1:7"):
        assert file.read_text() == "127.0.0.1:7\n"
    assert not file.exists()


@pytest.mark.parametrize("left", ["127.0.0.1:1\n", "", "no address: of anything"])
def test_what_a_killed_run_left_is_replaced(left: str, file: Path) -> None:
    file.write_text(left)
    with address_in(file, "127.0.0.1:7"):
        assert file.read_text() == "127.0.0.1:7\n"


def test_two_runs_that_live_are_both_found(file: Path, living: str) -> None:
    file.write_text(living)
    with address_in(file, "127.0.0.1:7"):
        assert file.read_text() == living
        assert (file.parent / "unshard.7.addr").read_text() == "127.0.0.1:7\n"
    assert [path.read_text() for path in file.parent.iterdir()] == [living]


def test_one_that_has_taken_the_place_stays(file: Path) -> None:
    with address_in(file, "127.0.0.1:7"):
        file.write_text("127.0.0.1:8\n")
    assert file.read_text() == "127.0.0.1:8\n"
