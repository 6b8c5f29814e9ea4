"""GTID sets of both flavours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.model.gtid import MariadbGtidSet, MysqlGtidSet

ONE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TWO = "4e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("", ""),
        ("0-1-100", "0-1-100"),
        ("5-2-7, 0-1-100", "0-1-100,5-2-7"),
        ("0-1-100,0-2-101", "0-2-101"),
    ],
)
def test_mariadb_text(text: str, same: str) -> None:
    assert str(MariadbGtidSet.parse(text)) == same


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("", ""),
        (f"{ONE.upper()}:1-5", f"{ONE}:1-5"),
        (f"{TWO}:3,\n{ONE}:7:1-5:6", f"{ONE}:1-7,{TWO}:3"),
        (f"{ONE}:1-2:4-5:Tag:1:9", f"{ONE}:1-2:4-5,{ONE}:tag:1:9"),
    ],
)
def test_mysql_text(text: str, same: str) -> None:
    assert str(MysqlGtidSet.parse(text)) == same
    assert MysqlGtidSet.parse(same) == MysqlGtidSet.parse(text)


@pytest.mark.parametrize("text", ["0-1", "a-b-c", "0-1-2-3", "0-1--1"])
def test_what_mariadb_does_not_write(text: str) -> None:
    with pytest.raises(ValueError, match="MariaDB"):
        MariadbGtidSet.parse(text)


@pytest.mark.parametrize("text", [ONE, f"{ONE}:", f"{ONE}:x-1", "0-1-2", f"{ONE}:5-1", f"{ONE}:0"])
def test_what_mysql_does_not_write(text: str) -> None:
    with pytest.raises(ValueError, match=r"MySQL|interval"):
        MysqlGtidSet.parse(text)


def test_mariadb_contains() -> None:
    known = MariadbGtidSet.parse("0-1-100,1-1-5")
    assert known.contains(MariadbGtidSet.parse("0-9-100"))
    assert known.contains(MariadbGtidSet())
    assert not known.contains(MariadbGtidSet.parse("0-1-101"))
    assert not known.contains(MariadbGtidSet.parse("2-1-1"))


@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)))
def test_mysql_sets_are_sets(one: set[int], other: set[int]) -> None:
    first = MysqlGtidSet().add(*((ONE, number, number) for number in one))
    second = MysqlGtidSet().add(*((ONE, number, number) for number in other))
    assert first.contains(second) == (other <= one)
    assert MysqlGtidSet.parse(str(first)) == first
    assert first.add(*((ONE, number, number) for number in other)).contains(second)
