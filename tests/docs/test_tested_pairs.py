"""The table of pairs that are tested is the suite that tests them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from suites.catalogue import SUITES
from suites.pairs import PAIRS, SUBJECTS, Pair, table

ROOT = Path(__file__).parents[2]


def test_the_table_of_the_page_is_the_suite() -> None:
    assert table() in (ROOT / "docs" / "explanation" / "limits.md").read_text(encoding="utf-8")
    (suite,) = [suite for suite in SUITES if suite.name == "pairs"]
    assert [(step.name, step.paths, step.environment) for step in suite.steps] == [
        (pair.name, pair.paths, pair.environment) for pair in PAIRS
    ]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_pair_names_tests_that_exist(pair: Pair) -> None:
    assert set(pair.subjects) <= SUBJECTS.keys()
    for path in pair.paths:
        assert (ROOT / path.partition("::")[0]).is_file(), path
    for test, why in pair.without:
        path, _, name = test.partition("::")
        assert path in pair.paths, "it is left out of what the pair does not run"
        assert not name or f"def {name.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8")
        assert why


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.source != "mariadb"], ids=lambda pair: pair.name)
def test_no_table_is_copied_later_than_the_others_from_mysql(pair: Pair) -> None:
    """Such a test locks a table, which holds up the whole copy under a lock: it would wait until its end."""
    left_out = {test for test, _ in pair.without}
    late = [
        f"{path}::{test.name}"
        for path in pair.paths
        for test in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
        if isinstance(test, ast.FunctionDef) and "copied_late" in {getattr(node, "attr", "") for node in ast.walk(test)}
    ]
    folders = ROOT / "tests" / "scenarios" / "shard_ddl"
    of_sources = [path for path in folders.glob("*/setup*.sql") if path.name != "setup.target.sql"]
    locking = {path.parent.name for path in of_sources if "LOCK TABLES" in path.read_text("utf-8")}
    assert locking
    played = "tests/scenarios/test_shard_ddl.py"
    if played in pair.paths:
        assert late
        late += [f"{played}::test_the_merged_table_is_as_the_folder_says[{folder}]" for folder in locking]
    assert [test for test in late if test not in left_out] == []
