"""The files of one `unshard cutover` are different files: the report is not written over what the command needs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from unshard.cli.app import app


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--report", "own", "--state", "own.json"], "own.json is the file of --state too"),
        (["--report", "unshard-cutover-shop.state"], "unshard-cutover-shop.state.json is the file of --state too"),
        (["--report", "here/own", "--log", "here/own.txt"], "here/own.txt is the file of --log too"),
    ],
)
def test_a_report_over_another_file_is_refused(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    database = {"host": "127.0.0.1", "user": "root", "port": 1}
    Path("s1.yaml").write_text(yaml.safe_dump({"source-id": "s1", "from": database}))
    task = {"name": "shop", "task-mode": "all", "target-database": database, "mysql-instances": [{"source-id": "s1"}]}
    Path("task.yaml").write_text(yaml.safe_dump(task))
    done = CliRunner().invoke(app, ["cutover", "task.yaml", "-s", "s1.yaml", "--yes", *words], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert told in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s1.yaml", "task.yaml"]
