"""A trial runs a suite many times. One that was broken off goes on where it was."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from suites import trial
from suites.catalogue import Step, Suite
from suites.report import Record
from suites.run import Result
from suites.trial import Done, Finished, commit, left, main

ONE = Suite("one", "", (Step("a"), Step("b")))
TWO = Suite("two", "", (Step("c"),))


class _Runs:
    """In place of the suites: which steps ran. Those that `fails` names fail; `ends` breaks off before that step."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.fails: dict[str, tuple[str, ...]] = {}
        self.ends = 0

    def __call__(self, suites: Sequence[Suite]) -> Iterator[Result]:
        for suite in suites:
            for step in suite.steps:
                if self.ends == len(self.ran) + 1:
                    raise KeyboardInterrupt
                self.ran.append(step.name)
                failed = self.fails.get(step.name)
                record = Record(failed=dict.fromkeys(failed or (), "why"))
                yield Result(suite.name, step.name, record, 1, int(failed is not None))
                if failed is not None:
                    break


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> _Runs:
    found = _Runs()
    monkeypatch.setattr(trial, "ran", found)
    monkeypatch.setattr(trial, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(trial, "commit", lambda: "c1")
    monkeypatch.setattr(trial, "named", lambda words: (ONE, TWO))
    return found


def test_all_runs_pass(runs: _Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["2", "all", "0"]) == 0
    assert runs.ran == ["a", "b", "c"] * 2
    assert capsys.readouterr().out.endswith("== run 2 of 2: 3 s, 2 of 2 passed\n2 of 2 runs passed\n")


def test_failures_are_counted_by_test_and_by_step(runs: _Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.fails = {"a": ("tests/x.py::test_x",), "c": ()}
    assert main(["3", "all", "0"]) == 1
    assert runs.ran == ["a", "c"] * 3
    told = capsys.readouterr().out.splitlines()[-3:]
    assert told == ["failed 3 of 3 times: tests/x.py::test_x", "failed 3 of 3 times: two, c", "0 of 3 runs passed"]


@pytest.mark.parametrize("ends", range(1, 7))
def test_a_trial_that_was_broken_off_goes_on_behind_its_last_step(
    runs: _Runs, capsys: pytest.CaptureFixture[str], ends: int
) -> None:
    runs.ends = ends
    with pytest.raises(KeyboardInterrupt):
        main(["2", "all", "0"])
    runs.ends = 0
    assert main(["2", "all", "0"]) == 0
    assert runs.ran == ["a", "b", "c"] * 2
    told = capsys.readouterr().out
    assert (f"== {ends - 1} steps of this trial are finished: it goes on behind them" in told) == (ends > 1)
    assert told.endswith("== run 2 of 2: 3 s, 2 of 2 passed\n2 of 2 runs passed\n"), "of all three steps"


def test_a_failure_before_the_break_counts(runs: _Runs) -> None:
    runs.fails, runs.ends = {"b": ("t",)}, 4
    with pytest.raises(KeyboardInterrupt):
        main(["2", "all", "0"])
    runs.fails, runs.ends = {}, 0
    assert main(["2", "all", "0"]) == 1


def test_a_trial_that_is_over_begins_anew(runs: _Runs) -> None:
    main(["1", "all", "0"])
    main(["1", "all", "0"])
    assert runs.ran == ["a", "b", "c"] * 2


@pytest.mark.parametrize("words", [["3", "all", "0"], ["2", "all", "4"]])
def test_other_words_are_another_trial_beside_it(runs: _Runs, words: list[str]) -> None:
    runs.ends = 3
    with pytest.raises(KeyboardInterrupt):
        main(["2", "all", "0"])
    runs.ran, runs.ends = [], 0
    main(words)
    assert runs.ran == ["a", "b", "c"] * int(words[0])
    runs.ran = []
    main(["2", "all", "0"])
    assert runs.ran == ["c", "a", "b", "c"]


def test_another_commit_is_another_trial(runs: _Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.ends = 3
    with pytest.raises(KeyboardInterrupt):
        main(["2", "all", "0"])
    monkeypatch.setattr(trial, "commit", lambda: "c2")
    runs.ran, runs.ends = [], 0
    main(["2", "all", "0"])
    assert runs.ran == ["a", "b", "c"] * 2


def test_what_a_run_still_has_to_do() -> None:
    assert left([ONE, TWO], []) == (ONE, TWO)
    assert left([ONE, TWO], [Done(1, "one", "a", good=True, seconds=1)]) == (Suite("one", "", (Step("b"),)), TWO)
    assert left([ONE, TWO], [Done(1, "one", "a", good=False, seconds=1)]) == (TWO,)
    assert (
        left([ONE, TWO], [Done(1, "one", "set-up", good=False, seconds=1), Done(1, "two", "c", good=True, seconds=1)])
        == ()
    )


def test_a_file_of_finished_steps_is_read_as_it_was_written(tmp_path: Path) -> None:
    first = Finished(tmp_path / "records" / "trial", "c1 2")
    first.add(1, Result("one", "a", Record(failed={"t": "why"}), 1, 1))
    again = Finished(tmp_path / "records" / "trial", "c1 2")
    assert again.steps == [Done(1, "one", "a", good=False, seconds=1, failed=("t",))]
    again.forget()
    assert list((tmp_path / "records").iterdir()) == []


@pytest.mark.parametrize("words", [["0"], ["some"], ["3", "test", "-1"], ["3", "test", "4", "5"]])
def test_wrong_words_are_answered(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: tools/try-suite" in capsys.readouterr().err


def test_a_checkout_with_other_files_than_its_commit_is_another_trial_each_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(trial, "RECORDS", tmp_path / "records")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    assert commit() == commit()
    assert len(commit()) == 40
    (tmp_path / "file").touch()
    assert commit() != commit()
