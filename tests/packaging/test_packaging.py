"""What is packaged: units, image and archive name files and commands that are there."""

from __future__ import annotations

import ast
import http.server
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.main import get_group

from support.waiting import wait_until
from unshard.cli.app import app
from unshard.worker.subtask_runner import WAIT_ON_STOP_SECONDS

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
    verb = get_group(app).commands[command[0]]
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
        command = [sys.executable, str(HEALTHCHECK), f"127.0.0.1:{server.server_port}"]
        # it waits for three seconds, and an engine asks it again
        wait_until(lambda: subprocess.run(command, check=False).returncode == code, f"exit code {code}")
        server.shutdown()


def test_the_health_of_nothing() -> None:
    assert subprocess.run([sys.executable, HEALTHCHECK, "127.0.0.1:1"], check=False).returncode == 1


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the wheel lays beside `bin`."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(folder), "install_data", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder / "share" / "unshard"


def test_the_pages_that_the_units_name_are_brought(share: Path) -> None:
    """`systemctl status` shows them."""
    for unit in UNITS:
        page = settings(unit)["Documentation"].removeprefix("file:///opt/unshard/share/unshard/")
        assert (share / page).read_bytes() == (ROOT / page).read_bytes()


def test_the_wheel_brings_examples_and_units(share: Path) -> None:
    for there, here in (("examples", ROOT / "examples"), ("systemd", PACKAGING / "systemd")):
        found = {file.relative_to(share / there): file.read_bytes() for file in (share / there).rglob("*.*")}
        assert found == {file.relative_to(here): file.read_bytes() for file in here.rglob("*.*")}


def test_master_and_worker_start_by_the_examples(share: Path, tmp_path: Path) -> None:
    """Anywhere, as they are; the test only gives them ports that are free, and leaves Spark out."""
    worker = tmp_path / "worker.yaml"
    worker.write_text(re.sub(r"(?m)^spark: .*", "", (share / "examples" / "cluster" / "worker.yaml").read_text()))
    master = started(tmp_path, "master", share / "examples" / "cluster" / "master.yaml")
    with master as addr, started(tmp_path, "worker", worker, "--join", addr):
        words = ["ctl", "list-member", "--master-addr", addr]
        wait_until(lambda: '"worker-1"' in unshard(tmp_path, *words).stdout, "the worker is known")


@contextmanager
def started(folder: Path, verb: str, file: Path, *words: str) -> Iterator[str]:
    """A process by its file, in good order to its end; where it serves."""
    command = [sys.executable, "-m", "unshard", verb, "--config", str(file), f"--{verb}-addr", "127.0.0.1:0", *words]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert " serves at http://" in line, line
            yield line.rpartition("//")[2].strip()
        finally:
            process.terminate()
    assert process.returncode == 0


def unshard(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "unshard", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_wheel_has_of_the_tools_for_tests_what_the_demo_needs(tmp_path: Path) -> None:
    command = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(tmp_path), "build_py", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    built = tmp_path / "unshard"
    tools = {file for file in (built / "testing").glob("*.py") if file.name != "__init__.py"}
    needed = {file for file in built.rglob("*.py") if file.parent.name != "testing"}
    waiting = list(needed)
    while waiting:
        for name in imported_tools(waiting.pop()):
            file = built / "testing" / f"{name}.py"
            assert file in tools, f"{name} is not in the wheel"
            if file not in needed:
                needed.add(file)
                waiting.append(file)
    assert {file.stem for file in tools - needed} == set()


def imported_tools(file: Path) -> set[str]:
    """The modules of `unshard.testing` that a file imports, wherever in it."""
    nodes = ast.walk(ast.parse(file.read_text()))
    names = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    return {name.removeprefix("unshard.testing.") for name in names if name.startswith("unshard.testing.")}


def test_the_source_archive_is_complete(tmp_path: Path) -> None:
    """Every tracked file but those that only the repository needs: so it builds and is tested from the archive."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    tracked = [name for name in listed.splitlines() if (ROOT / name).is_file()]
    tree = tmp_path / "tree"  # what is packed stands in a folder meanwhile, which others must not find in the project
    for name in tracked:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    command = [sys.executable, "setup.py", "-q", "egg_info", "-e", str(tmp_path), "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}
    missing = {name for name in tracked if name not in packed}
    assert {name for name in missing if not name.startswith((".ci/", ".git", ".containerignore"))} == set()


def test_the_version_is_told() -> None:
    told = subprocess.run([sys.executable, "-m", "unshard", "--version"], capture_output=True, text=True, check=False)
    assert re.fullmatch(r"unshard \d+\.\d+\.\d+\n", told.stdout), told
