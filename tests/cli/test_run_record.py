"""What `unshard ctl` says of a run that lives no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unshard.cli.app import app
from unshard.cli.run_file import recorded
from unshard.ctl.runs import RunRecord, record_in, write_record
from unshard.errors import LoadError

GONE = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(*flags: str) -> str:
    done = CliRunner().invoke(app, ["ctl", *flags, "query-status"])
    assert done.exit_code == 1
    return done.stderr


@pytest.mark.parametrize("flags", [(), ("--master-addr", GONE)], ids=["by the folder", "by the address"])
def test_a_run_that_an_error_ended_is_told_with_the_error_and_what_to_do(flags: tuple[str, ...]) -> None:
    error = LoadError("LOAD-001", values={"fault": "there is no such folder"})

    def fail() -> None:
        with recorded(Path("unshard.log"), "shop", redact=False) as run:
            run.at(GONE)
            raise error

    with pytest.raises(LoadError, match="LOAD-001"):
        fail()
    text = told(*flags)
    assert text.startswith("CLUSTER-098")
    assert "the run of task shop began at" in text
    assert "and ended at" in text
    assert "LOAD-001: this folder holds no dump" in text
    assert error.hint in text
    assert "refused" not in text


def test_a_run_that_was_killed_is_told_with_the_time_of_its_last_log_line() -> None:
    write_record(Path("unshard.run"), RunRecord("shop", "2026-01-02 03:04:05 UTC", GONE))
    Path("unshard.addr").write_text(f"{GONE}\n")
    Path("unshard.log").write_text("{}\n")
    text = told()
    assert text.startswith("CLUSTER-098")
    assert "was killed, or its machine went down; the last line of its log is" in text


@pytest.mark.parametrize("log", ["shop.txt", "shop", "shop.2026.log"])
def test_the_log_is_named_as_the_run_was_told_to_write_it(log: str) -> None:
    with recorded(Path(log), "shop", redact=False) as run:
        run.over("somebody stopped it")
    assert f"(log: {log})" in told()


def test_the_log_of_a_run_of_an_earlier_version_is_named_as_its_record() -> None:
    form = {"task": "shop", "began": "2026-01-02 03:04:05 UTC", "address": GONE, "ended": "", "outcome": ""}
    Path("shop.run").write_text(json.dumps(form))
    assert "(log: shop.log)" in told()


def test_a_run_that_was_stopped_is_told_so() -> None:
    with recorded(Path("unshard.log"), "shop", redact=False) as run:
        run.over("somebody stopped it")
    assert "somebody stopped it" in told()


def test_a_record_tells_no_values_where_they_are_to_be_redacted() -> None:
    with pytest.raises(LoadError), recorded(Path("unshard.log"), "shop", redact=True):
        raise LoadError("LOAD-001", values={"fault": "row 4711"})
    record = record_in(Path("unshard.run"))
    assert record is not None
    assert record.outcome == "it was ended by LOAD-001"


def test_what_is_no_record_is_passed_over() -> None:
    Path("unshard.run").write_text("nonsense")
    Path("other.run").write_text("[1]")
    assert told().startswith("CLUSTER-040")
