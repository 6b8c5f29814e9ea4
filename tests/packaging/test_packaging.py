"""What is packaged: units, image and archive name files and commands that are there."""

from __future__ import annotations

import ast
import http.server
import re
import shlex
import subprocess
import sys
import tarfile
import threading
from pathlib import Path

import pytest
from typer.main import get_group

from unshard.cli.app import app
from unshard.worker.hosted import WAIT_ON_STOP_SECONDS

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
UNITS = sorted((PACKAGING / "systemd").glob("*.service"))
CONTAINERFILE = PACKAGING / "Containerfile"
HEALTHCHECK = PACKAGING / "healthcheck.py"


def settings(unit: Path) -> dict[str, str]:
    lines = unit.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def instructions() -> list[tuple[str, str]]:
    """The Containerfile's instructions, each on one line."""
    text = re.sub(r"\\\n", " ", CONTAINERFILE.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_are_hardened_and_stop_in_good_order(unit: Path) -> None:
    found = settings(unit)
    assert found["User"] == "unshard"
    assert found["KillMode"] == "mixed", "Spark's JVM would be told to end before the batch in hand is"
    assert float(found["TimeoutStopSec"]) > WAIT_ON_STOP_SECONDS
    assert found["ProtectSystem"] == "strict"
    assert found["NoNewPrivileges"] == "yes"
    assert found["CapabilityBoundingSet"] == ""
    assert "MemoryDenyWriteExecute" not in found, "a JVM compiles while it runs"


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_units_name_their_own_process(unit: Path) -> None:
    program, verb, option, file = shlex.split(settings(unit)["ExecStart"])
    kind = unit.stem.removeprefix("unshard-")
    assert (program, option) == ("/opt/unshard/bin/unshard", "--config")
    assert verb == kind.rstrip("@")
    assert file == (f"/etc/unshard/{verb}-%i.yaml" if kind.endswith("@") else f"/etc/unshard/{verb}.yaml")


def test_the_image_copies_what_is_there() -> None:
    copied = [rest.split()[:-1] for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    assert copied
    for path in (word for words in copied for word in words):
        assert (ROOT / path).exists(), path


def test_the_image_runs_as_a_user_and_is_watched() -> None:
    found = instructions()
    last = max(number for number, (name, _) in enumerate(found) if name == "FROM")
    names = [name for name, _ in found[last:]]
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert dict(found)["USER"] == "unshard"
    assert "healthcheck.py" in dict(found)["HEALTHCHECK"]
    command = ast.literal_eval(dict(found)["CMD"])
    verb = get_group(app).commands[command[0]]  # type: ignore[attr-defined]
    assert command[1] in {option for parameter in verb.params for option in parameter.opts}
    assert ast.literal_eval(dict(found)["ENTRYPOINT"])[-1] == "unshard"


def test_the_image_starts_from_one_release_of_debian() -> None:
    assert len({rest.split()[0] for name, rest in instructions() if name == "FROM"}) == 1


@pytest.mark.parametrize(("status", "code"), [(200, 0), (401, 0), (500, 1)])
def test_the_health_of_a_process(status: int, code: int) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *told: object) -> None:
            del told

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asked = subprocess.run([sys.executable, HEALTHCHECK, f"127.0.0.1:{server.server_port}"], check=False)
        server.shutdown()
    assert asked.returncode == code


def test_the_health_of_nothing() -> None:
    assert subprocess.run([sys.executable, HEALTHCHECK, "127.0.0.1:1"], check=False).returncode == 1


def test_the_source_archive_is_complete(tmp_path: Path) -> None:
    """Every tracked file but those that only the repository needs: so it builds and is tested from the archive."""
    command = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(tmp_path), "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    missing = {name for name in listed.splitlines() if name not in packed and (ROOT / name).is_file()}
    assert {name for name in missing if not name.startswith((".ci/", ".git", ".containerignore"))} == set()


def test_the_version_is_told() -> None:
    told = subprocess.run([sys.executable, "-m", "unshard", "--version"], capture_output=True, text=True, check=False)
    assert re.fullmatch(r"unshard \d+\.\d+\.\d+\n", told.stdout), told
