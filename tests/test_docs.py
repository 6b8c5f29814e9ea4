"""Reference pages are what the code says, and links between pages lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from unshard.errors import UnshardError
from unshard.worker.auto_resume import makes_sense

ROOT = Path(__file__).parent.parent


def test_reference_pages_are_what_the_code_says() -> None:
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in link and not (page.parent / link).exists():
                broken.append(f"{page.relative_to(ROOT)}: {link}")
    assert broken == []


def test_the_quick_round_of_contributing_finds_what_its_tests_import() -> None:
    (words,) = re.findall(r"`(\.venv/bin/pytest -m .+)` is the quick round", (ROOT / "CONTRIBUTING.md").read_text())
    program, *rest = shlex.split(words)
    command = [str(Path(sys.executable).with_name(Path(program).name)), *rest, "--collect-only", "-q", "tests/bench"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_of_tests_names_each_folder() -> None:
    page = (ROOT / "tests" / "README.md").read_text()
    folders = {path.name for path in (ROOT / "tests").iterdir() if any(path.glob("*.py"))}
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`(\w+)`", "".join(rows))) == folders


def test_what_if_tells_of_each_end_whether_it_is_ridden_out() -> None:
    page = (ROOT / "docs" / "how-to" / "what-if.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    wrong = [
        f"{code}: {row}"
        for row in rows
        for code in re.findall(r"\[([A-Z]+-\d{3})\]", row)
        if makes_sense(UnshardError(code)) != ("goes on by itself" in row)
    ]
    assert any("SYNC-005" in row for row in rows)
    assert wrong == []
