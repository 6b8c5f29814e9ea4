"""Output that a page shows is what its command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unshard.cli.app import app

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(r"```sh\n(unshard (?:binlog show|explain) [^\n]+)\n```\n\n```text\n(.*?)\n```", re.DOTALL)
PAGES = {"look-into-a-binlog.md": 2, "why-was-it-not-migrated.md": 4}


def shown(page: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = SHOWN.findall((ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(("command", "output"), [one for page in PAGES for one in shown(page)])
def test_the_page_shows_what_the_command_prints(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0
    assert done.output.rstrip() == output


@pytest.mark.parametrize("page", PAGES)
def test_the_page_has_output(page: str) -> None:
    assert len(shown(page)) == PAGES[page]
