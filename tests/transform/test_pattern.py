"""Patterns against names, held to fnmatch and re."""

from __future__ import annotations

import fnmatch
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.transform.pattern import Pattern

CHARACTERS = "aAbBzZ_09-.^\\$é名"
NAMES = st.text(CHARACTERS, max_size=8)
SETS = st.builds(
    lambda outside, pairs: "[" + "!" * outside + "".join(f"{min(pair)}-{max(pair)}" for pair in pairs) + "]",
    st.booleans(),
    st.lists(st.tuples(st.sampled_from("abzAZ019é名"), st.sampled_from("abzAZ019é名")), min_size=1, max_size=3),
)
PIECES = st.one_of(st.sampled_from(CHARACTERS), st.just("?"), SETS)
WILDCARDS = st.lists(st.one_of(PIECES, st.just("*")), max_size=6).map("".join)


@given(WILDCARDS, NAMES)
def test_wildcards_match_as_fnmatch_does(pattern: str, name: str) -> None:
    compiled = Pattern.compile(pattern, case_sensitive=True, star_anywhere=True)
    assert compiled.matches(name) == fnmatch.fnmatchcase(name, pattern)


@given(WILDCARDS.filter(lambda pattern: "[" not in pattern), NAMES)
def test_case_is_folded_on_both_sides_unless_it_counts(pattern: str, name: str) -> None:
    compiled = Pattern.compile(pattern, star_anywhere=True)
    assert compiled.matches(name) == compiled.matches(name.upper()) == compiled.matches(name.lower())
    assert compiled.matches(name) == fnmatch.fnmatchcase(name.lower(), pattern.lower())


@given(st.text("ab^$.*|", max_size=5), NAMES)
def test_regular_expressions_match_as_re_searches(expression: str, name: str) -> None:
    try:
        oracle = re.compile(expression, re.IGNORECASE)
    except re.error:
        with pytest.raises(re.error):
            Pattern.compile("~" + expression)
        return
    assert Pattern.compile("~" + expression).matches(name) == (oracle.search(name) is not None)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("shop_*", "shop_1", True),
        ("shop_*", "shop_", True),
        ("shop_*", "shop", False),
        ("shop_?", "shop_12", False),
        ("t_[0-9]", "t_5", True),
        ("t_[!0-9]", "t_5", False),
        ("t_[!0-9]", "t_x", True),
        ("t_[-x]", "t_-", True),
        ("t_[]]", "t_]", None),
        ("a.b", "axb", False),
        ("a*", "a\nb", True),
        ("a", "a\n", False),
        ("~^t_\\d+$", "T_12", True),
        ("~d", "abcdef", True),
        ("名*", "名前", True),
    ],
)
def test_examples(pattern: str, name: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="an empty set"):
            Pattern.compile(pattern)
    else:
        assert Pattern.compile(pattern).matches(name) is expected


def test_case_counts_on_demand() -> None:
    assert not Pattern.compile("Shop_*", case_sensitive=True).matches("shop_1")
    assert not Pattern.compile("~Shop", case_sensitive=True).matches("shop_1")
    assert Pattern.compile("[A-C]*").matches("b")


def test_a_pattern_pickles() -> None:
    for text in ("a*", "~a"):
        pattern = Pattern.compile(text)
        assert pickle.loads(pickle.dumps(pattern)) == pattern
