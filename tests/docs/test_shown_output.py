"""Output that a page shows is what its command prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unshard.cli.app import app

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(r"```sh\n(unshard binlog show [^\n]+)\n```\n\n```text\n(.*?)\n```", re.DOTALL)
PAGE = ROOT / "docs" / "how-to" / "look-into-a-binlog.md"


@pytest.mark.parametrize(("command", "output"), SHOWN.findall(PAGE.read_text(encoding="utf-8")))
def test_the_page_shows_what_the_command_prints(command: str, output: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0
    assert done.output.rstrip() == output


def test_the_page_has_output() -> None:
    assert len(SHOWN.findall(PAGE.read_text(encoding="utf-8"))) == 2
