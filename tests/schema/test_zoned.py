"""Generated columns and keys that a session of another time zone computes otherwise."""

from __future__ import annotations

import pytest

from unshard.errors import SyncError, Where
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect
from unshard.schema.text import read_show_create, to_table
from unshard.schema.zoned import condition_depends, zone_faults
from unshard.sync.planning.target_plan import plan_target

CHINA = "+08:00"
COLUMNS = """CREATE TABLE `t` (
  `id` int(11) NOT NULL,
  `n` int(11) DEFAULT NULL,
  `ts` timestamp NULL DEFAULT NULL,
  `gone` timestamp NULL DEFAULT NULL,
  `dt` datetime DEFAULT NULL,
{rest}
  PRIMARY KEY (`id`)
) ENGINE=InnoDB"""
UTC, LOCAL = "'+00:00'", "'+08:00'"


def table(*rest: str, dialect: Dialect = Dialect.MARIADB) -> Table:
    text = COLUMNS.format(rest="".join(f"  {line},\n" for line in rest).rstrip("\n"))
    return to_table(read_show_create(text, dialect), TableName("d", "t"), dialect)


def faults(own: Table, other: Table | None = None, zone: str = CHINA) -> list[str]:
    return zone_faults(own, other or own, lambda: zone)


@pytest.mark.parametrize(
    "expression",
    [
        "cast(`ts` as date)",
        "date(`ts`)",
        "`ts`",
        "concat(`ts`,'x')",
        "coalesce(`gone`,'1970-01-01')",
        "if((`gone` is null),cast(`ts` as date),NULL)",
        "from_unixtime(`n`)",
        "unix_timestamp(`dt`)",
        f"convert_tz(`ts`,{UTC},{LOCAL})",
        f"unix_timestamp(convert_tz(`dt`,{LOCAL},{UTC}))",
    ],
)
def test_a_value_that_depends_on_the_zone(expression: str) -> None:
    one = table(f"`v` varchar(40) GENERATED ALWAYS AS ({expression}) STORED")
    (fault,) = faults(one)
    assert fault.startswith(f"the generated column v, {expression}, depends on the session's time zone")
    assert faults(one, zone="Asia/Shanghai")
    assert faults(one, zone="UTC") == faults(one, zone="") == faults(one, zone="+00:00") == []


@pytest.mark.parametrize(
    "expression",
    [
        "if((`gone` is null),1,NULL)",
        "if(`gone` is not null,`n`,`id`)",
        "isnull(`gone`)",
        "unix_timestamp(`ts`)",
        "(`ts` <= `gone`)",
        "cast(`dt` as date)",
        "concat('ts',`n`)",
    ],
)
def test_a_value_that_does_not(expression: str) -> None:
    assert faults(table(f"`v` varchar(40) GENERATED ALWAYS AS ({expression}) STORED")) == []


def test_only_what_is_written_with_the_row() -> None:
    """A VIRTUAL column in no key is computed by who reads it, in the reader's zone on both ends."""
    virtual = "`v` date GENERATED ALWAYS AS (cast(`ts` as date)) VIRTUAL"
    assert faults(table(virtual)) == []
    assert len(faults(table(virtual, "UNIQUE KEY `k` (`n`,`v`)"))) == 1
    (fault,) = faults(table(virtual, "`w` int(11) GENERATED ALWAYS AS (year(`v`)) STORED"))
    assert "the generated column w" in fault


def test_a_key_over_an_expression() -> None:
    key = "UNIQUE KEY `k` (`ts`,(cast(`ts` as date)),`n`)"
    (fault,) = faults(table(key, dialect=Dialect.MYSQL))
    assert fault.startswith("the key k, cast(`ts` as date), depends")
    assert faults(table("KEY `k` (`ts`)", dialect=Dialect.MYSQL)) == []
    assert faults(table("KEY `k` (((`n` + 1)),`ts`)", dialect=Dialect.MYSQL)) == []


def test_a_timestamp_that_is_computed() -> None:
    line = "`v` timestamp GENERATED ALWAYS AS ({}) STORED NULL"
    assert faults(table(line.format("`ts`"))) == []
    assert len(faults(table(line.format("`dt`")))) == 1
    assert faults(table(line.format("`dt`")), table(line.format(f"convert_tz(`dt`,{LOCAL},{UTC})"))) == []


@pytest.mark.parametrize(
    ("own", "other"),
    [
        ("cast(`ts` as date)", f"cast(convert_tz(`ts`,{UTC},{LOCAL}) as date)"),
        ("cast(`ts` as date)", f"date(convert_tz(`ts`, _utf8mb4{UTC}, _utf8mb4'Asia/Shanghai'))"),
        ("from_unixtime(`n`)", f"convert_tz(from_unixtime(`n`),{UTC},{LOCAL})"),
        ("unix_timestamp(`dt`)", f"unix_timestamp(convert_tz(`dt`,{LOCAL},{UTC}))"),
    ],
)
def test_the_targets_expression_converts_from_utc(own: str, other: str) -> None:
    made = "`v` varchar(40) GENERATED ALWAYS AS ({}) STORED"
    assert faults(table(made.format(own)), table(made.format(other))) == []
    assert len(faults(table(made.format(own)), table(made.format(other.replace("+00:00", "+01:00"))))) == 1


def test_what_the_source_lacks_is_nothing_of_the_task() -> None:
    own = table("`v` date GENERATED ALWAYS AS (cast(`ts` as date)) STORED")
    assert faults(table(), own) == faults(own, table()) == []


def test_rows_are_not_planned() -> None:
    one = table("`day` date GENERATED ALWAYS AS (cast(`ts` as date)) STORED")
    with pytest.raises(SyncError) as caught:
        plan_target(one, one, Where(), zone=lambda: CHINA)
    assert caught.value.code == "SYNC-007"
    assert "CONVERT_TZ(`ts`, '+00:00', '+08:00') in place of `ts`" in caught.value.cause
    assert plan_target(one, one, Where()).columns == ("id", "n", "ts", "gone", "dt")


@pytest.mark.parametrize(
    ("condition", "depends"),
    [
        ("ts >= '2024-05-01'", True),
        ("`ts` BETWEEN '2024-05-01' AND '2024-05-02'", True),
        ("dt > NOW() - INTERVAL 1 DAY", True),
        ("dt >= CURDATE()", True),
        ("n > 5 AND dt >= '2024-05-01'", False),
        ("ts IS NOT NULL", False),
        ("UNIX_TIMESTAMP(ts) >= 1714492800", False),
        ("ts >= CONVERT_TZ('2024-05-01 00:00:00', '+08:00', '+00:00')", False),
        ("v = 'ts'", False),
    ],
)
def test_the_condition_of_a_copy(condition: str, depends: bool) -> None:
    assert condition_depends(condition, table()) is depends
