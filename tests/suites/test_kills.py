"""What `tools/try-kills` asks the test of a hard life for."""

from __future__ import annotations

from pathlib import Path

import pytest

from suites.kills import TEST, environment


def test_words_become_the_variables_of_the_test() -> None:
    assert (Path(__file__).parents[2] / TEST).is_file()
    assert environment(["--source", "mysql-8.0", "--target", "tidb", "--times", "5", "--seed", "7"], 1) == {
        "UNSHARD_TEST_SOURCE": "mysql-8.0",
        "UNSHARD_TEST_TARGET": "tidb",
        "UNSHARD_KILLS": "5",
        "UNSHARD_FUZZ_SEED": "7",
    }
    assert environment([], 99)["UNSHARD_FUZZ_SEED"] == "99", "a seed that is not said is a new one"


@pytest.mark.parametrize("words", [["--target", "oracle"], ["--times", "0"], ["--times", "many"], ["tidb"]])
def test_bad_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        environment(words, 1)
    assert "usage: tools/try-kills" in capsys.readouterr().err
