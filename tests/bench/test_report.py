"""`python -m bench.report`: the parts run, what can't run is told, and both files say the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import psutil
import pytest
from bench.report.__main__ import end_all
from bench.report.figures import combine, figures
from bench.report.page import page
from bench.report.parts import PARTS

from support.waiting import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
_PROGRAMS = ("env", "git", "unshare", "mount", "umount", "java", "bash", "sh", "mariadb", "mariadb-binlog", "mariadbd")
_EMPTY = {"br", "hr", "img", "input", "link", "meta"}


class _Tags(HTMLParser):
    """The visible text, the tags that refer to another file, and the tags that are open at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.outside: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.outside += [f"{tag} {name}={text}" for name, text in attrs if name in ("src", "href") and _leads_out(text)]
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _leads_out(text: str | None) -> bool:
    return not (text or "").startswith("#")


def read(html: str) -> str:
    """Return the visible text of a page, which must be whole and need no other file."""
    tags = _Tags()
    tags.feed(html)
    assert tags.open == []
    assert tags.outside == []
    return re.sub(r"\s+", " ", " ".join(tags.words))


def call(into: Path, *parts: str, path: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.report", "--size", "smallest", "--into", str(into), *parts]
    environment = {**os.environ, **({"PATH": path} if path else {})}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)


def report_of(into: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((into / "report.json").read_text())
    return found


def test_runs_become_a_median_and_a_spread() -> None:
    combined = combine([{"a": {"x_native": 2.0, "note": "n"}}, {"a": {"x_native": 3.0}}, {"a": {"x_native": 2.5}}][:1])
    assert combined["a"]["note"] == {"runs": ["n"]}
    combined = combine([{"a": {"x_native": value}} for value in (2.0, 3.0, 2.5)])
    assert list(figures(combined)) == [("a.x_native", {"runs": [2.0, 3.0, 2.5], "median": 2.5, "spread_percent": 40.0})]


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
@pytest.mark.recovery
def test_the_parts_that_prove_are_right_in_the_smallest_report(tmp_path: Path) -> None:
    done = call(tmp_path, "decode", "faults", "types")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "[2/3] Faults in each phase …" in done.stdout
    assert "  the task is killed, sync: equal, once" in done.stdout
    report = report_of(tmp_path)
    parts = report["parts"]
    assert [part["state"] for part in parts.values()] == ["done"] * 3
    assert report["machine"]["cores"] == os.cpu_count()
    assert parts["decode"]["result"]["bulk"]["x_native"]["median"] > 0
    (cell,) = parts["types"]["result"]["cells"]
    assert (cell["differing"], cell["reason"]) == ([], "")
    assert cell["columns"] > 300
    assert cell["rows"] > 300
    assert parts["faults"]["result"]["faults"]["the task is killed"]["sync"]["changes"] > 300
    text = read((tmp_path / "report.html").read_text())
    for words in ("Decoding a binlog", "decode.bulk.x_native", "the task is killed", "equal, once", "all equal"):
        assert words in text


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
@pytest.mark.mydumper
def test_a_part_without_its_program_is_left_out_and_the_others_go_on(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in filter(lambda name: "dumper" not in name and "loader" not in name, _every_program()):
        if not (programs / name).exists():
            (programs / name).symlink_to(_every_program()[name])

    done = call(tmp_path / "report", "load", "ddl", path=str(programs))

    assert done.returncode == 0, done.stdout + done.stderr
    parts = report_of(tmp_path / "report")["parts"]
    assert parts["load"]["state"] == "left out"
    assert parts["load"]["reason"] == "mydumper is not installed: apt-get install mydumper"
    assert parts["ddl"]["state"] == "done"
    assert "mydumper is not installed" in read((tmp_path / "report" / "report.html").read_text())


def _every_program() -> dict[str, Path]:
    folders = [Path(folder) for folder in os.environ["PATH"].split(os.pathsep) if Path(folder).is_dir()]
    return {file.name: file for folder in reversed(folders) for file in folder.iterdir() if os.access(file, os.X_OK)}


def test_a_page_shows_what_failed_and_cells_that_are_wrong() -> None:
    cells = {
        "sync": {"failed": True, "reason": "WrongError: <2> rows"},
        "load": {"failed": False, "reason": "left out"},
    }
    report = {
        "made_at": "2020-01-01",
        "size": "quick",
        "machine": {"cores": 2, "programs": {"java": "17"}},
        "parts": {
            "sync": {"title": "Applying", "state": "failed", "seconds": 1, "reason": "ended with 1\nno <room>"},
            "faults": {
                "title": "Faults",
                "state": "done",
                "seconds": 1,
                "result": {"phases": ["load", "sync"], "faults": {"killed": cells}, "wrong": ["killed, sync"]},
            },
        },
    }

    html = page(report)

    text = read(html)
    assert "too short to quote" in text
    assert "no <room>" in text
    assert "WrongError: <2> rows" in text
    assert '<td class="wrong">WrongError' in html
    assert '<td class="none">left out' in html


def test_a_part_that_is_stopped_leaves_no_process_of_another_group() -> None:
    line = "setsid sleep 600 & echo $!; wait"
    child = subprocess.Popen(["/bin/sh", "-c", line], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout is not None
    below = psutil.Process(int(child.stdout.readline()))

    end_all(child)

    below.wait(PATIENCE_SECONDS)
    assert not below.is_running()


def test_every_part_names_a_function_that_is_there() -> None:
    for part in PARTS:
        module, _, function = part.function.partition(":")
        assert re.search(rf"^def {function}\(size: Size\)", (ROOT / f"bench/report/{module}.py").read_text(), re.M)


def test_an_unknown_part_is_refused(tmp_path: Path) -> None:
    done = call(tmp_path, "speed")
    assert done.returncode == 2
    assert "no such part: speed" in done.stderr
