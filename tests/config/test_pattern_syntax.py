"""Whether one pattern covers or meets another, held to the matching of every short name."""

from __future__ import annotations

import sys
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.config.patterns import OneOf, covers, may_meet, parse_wildcard
from unshard.transform.pattern import Pattern

ALPHABET = "abc-"
NAMES = ["".join(name) for length in range(4) for name in product(ALPHABET, repeat=length)]
PIECES = st.sampled_from(["a", "b", "-", "?", "[a-b]", "[!a]", "[bc]", "[a-]"])
PATTERNS = st.builds(
    lambda pieces, star: "".join(pieces) + star, st.lists(PIECES, min_size=1, max_size=3), st.sampled_from(["", "*"])
) | st.just("*")


@given(PATTERNS, PATTERNS)
def test_a_pattern_that_covers_matches_whatever_the_other_does(wide: str, narrow: str) -> None:
    outer, inner = Pattern.compile(wide), Pattern.compile(narrow)
    if covers(wide, narrow, case_sensitive=False):
        assert [name for name in NAMES if inner.matches(name) and not outer.matches(name)] == []


@given(PATTERNS, PATTERNS)
def test_patterns_meet_that_a_name_matches_both_of(one: str, other: str) -> None:
    first, second = Pattern.compile(one), Pattern.compile(other)
    assert may_meet(one, other, case_sensitive=False) == any(first.matches(n) and second.matches(n) for n in NAMES)


def test_whether_a_regular_expression_meets_a_pattern_is_not_decided() -> None:
    assert may_meet("~^b", "a*", case_sensitive=True)
    assert may_meet("a*", "~^b", case_sensitive=True)


@given(PATTERNS)
def test_every_pattern_covers_itself_and_is_covered_by_a_star(pattern: str) -> None:
    assert covers(pattern, pattern, case_sensitive=True)
    assert covers("*", pattern, case_sensitive=True)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("a*", "a", True),
        ("a", "a*", False),
        ("a?", "a*", False),
        ("a*", "*", False),
        ("a*", "b*", False),
        ("ab*", "a*", False),
        ("?*", "a", True),
        ("??", "a", False),
        ("[a-c]", "b", True),
        ("[!a]", "[b-d]", True),
        ("[!a]", "[a-d]", False),
        ("?", "[!a]", True),
        ("[a-c]", "[!x]", False),
        ("~b", "abc", True),
        ("~b", "acd", False),
        ("~B", "abc", True),
        ("~b", "b*", False),
        ("b*", "~^b", False),
        ("*", "~^b", True),
    ],
)
def test_covers(wide: str, narrow: str, expected: bool) -> None:
    assert covers(wide, narrow, case_sensitive=False) == expected


def test_case_of_a_regular_expression_counts_when_it_should() -> None:
    assert not covers("~B", "abc", case_sensitive=True)


@given(st.characters(), st.characters(), st.characters())
def test_a_set_is_within_another_when_no_character_is_in_it_alone(low: str, high: str, probe: str) -> None:
    one, other = OneOf(((min(low, high), max(low, high)),)), OneOf(((low, low), (high, high)), outside=True)
    assert one.within(OneOf((), outside=True))
    assert other.within(one) == ({low, high} == {"\0", chr(sys.maxunicode)})
    if one.within(other):
        assert not one.has(probe) or other.has(probe)


def test_stars_within_are_for_block_allow_lists_only() -> None:
    assert parse_wildcard("a*b", star_anywhere=True) == (OneOf((("a", "a"),)), None, OneOf((("b", "b"),)))
    with pytest.raises(ValueError, match="may only be the last character"):
        parse_wildcard("a*b")
