"""Structures that are computed from statements are those that a real MariaDB has behind them."""

from __future__ import annotations

import pytest

from support.charset_statements import CONVERSIONS
from support.evaluated_ddl import Evaluated, assert_evaluated
from support.random_ddl import MARIADB, RandomDdl
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

STATEMENTS = [
    "create table p (id int primary key, v varchar(30), w varchar(9) charset utf8mb4, x text)",
    "create table c (id int auto_increment primary key, p int, foreign key (p) references p (id)) auto_increment = 70",
    "alter table c add q int, add foreign key (q) references p (id), add check (q > 3)",
    "alter table c drop foreign key c_ibfk_1, rename to c2",
    "alter table c2 modify p bigint unsigned not null default 7 comment 'references `x`.`y`' first",
    "create table l like c2",
    "create or replace table l (a enum('x','y''z') , b set('1','2'), c bit(9), d decimal(9,3) unsigned zerofill, "
    "e datetime(3) default now(3) on update now(3), f timestamp null, g year, h double(9,2), i json, j geometry)",
    "create unique index i1 on l (a, d)",
    "create index i2 on l (i(20))",
    "drop index i1 on l",
    "alter table l add v int as (d + 1) stored, add w int as (d + 2) virtual, add z int invisible, add index (v)",
    "alter table l convert to character set utf8mb4 collate utf8mb4_bin, engine = aria",
    "alter table l rename column z to y, change c c2 binary(4), drop h, alter g set default 2001",
    "rename table l to tmp, p to l, tmp to p",
    "create table part (a int, b date) partition by range (a) (partition p0 values less than (5), "
    "partition p1 values less than (9))",
    "alter table part add partition (partition p2 values less than maxvalue)",
    "alter table part drop partition p1",
    "create table x1 (a int, b date)",
    "alter table part exchange partition p2 with table x1",
    "alter table part remove partitioning",
    "create table v (a int, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end, "
    "period for system_time (s, e)) with system versioning",
    "truncate table part",
    "create table `a``b 表` (`c``d` int key, `ü` char(3) default 'ä''\\\\')",
    "alter table `a``b 表` rename `e.f`",
    "drop table if exists `e.f`, x1",
    "create table sw (a int, b varchar(9), c text character set latin1)",
    "alter table sw change a b int, change b a varchar(9) first",
    "alter table sw rename column a to b, rename column b to a",
    "alter table sw drop column a, add column a bigint after c, add d char(5) after a, modify c mediumtext first",
    "alter table sw convert to character set utf8mb4, add e tinytext",
    "alter table sw add f char(2), default character set latin2",
    "alter table sw add (g varchar(3) collate utf8mb4_bin, h varchar(3) character set binary, unique key (g, h))",
    "alter table sw add column if not exists g int, drop column if exists nothing, modify if exists nothing int",
    "alter table sw drop key g, drop column g, add unique (h), add unique (h)",
    "set statement explicit_defaults_for_timestamp = 0 for"
    " create table ts (a timestamp, b timestamp, c timestamp null)",
    "set statement explicit_defaults_for_timestamp = 0 for alter table ts add d timestamp first",
    "create table tz (a timestamp default '2020-1-1', b timestamp(3) default '2020-1-1 1:2:3',"
    " c timestamp null default 0, d timestamp(2) default '20200101')",
    "create table n1 (id serial, b bool, c nchar(3), d long varchar, e text(70000), f float(30), g dec,"
    " h int(3) signed)",
    "alter table n1 alter column b set default 1, alter c drop default, force, order by id, b",
    "alter table n1 rename index id to ix, add fulltext (d), add key kd (d(9) desc) comment 'x'",
    "alter table n1 add primary key (id), drop index ix",
    "create table ye (a year default 0, b year default '0', c year default '0000', d year default 7, e year default 99,"
    " f year not null default '70', g year default '000', h year default 1.6)",
    "alter table ye add j year default '5', alter a set default '0'",
    "create table n2 (a decimal(65,30) not null default 1, b decimal(65,30) default -0.5,"
    " c decimal(65,0) default 12345678901234567890123456789012345, d decimal(40,2) default 999999999999999999999999.5)",
    "alter table n2 add e decimal(5,2) default 0.125, add f decimal(5) default 1.5, add g int default 2.5,"
    " add h decimal(5,1) default -0.25, add i bigint default -3.5, add j decimal(5,2) default -0.001",
]


def test_after_every_statement_of_a_list(source_server: MariadbServer, schema: str) -> None:
    assert_evaluated(source_server, schema, STATEMENTS, "CHARACTER SET latin1 COLLATE latin1_german1_ci")


VOID = (
    "DROP KEY k, ADD KEY IF NOT EXISTS k (c)",
    "DROP COLUMN b, ADD COLUMN IF NOT EXISTS b BIGINT",
    "RENAME COLUMN b TO z, ADD COLUMN IF NOT EXISTS b BIGINT",
    "ADD COLUMN x INT, ADD COLUMN IF NOT EXISTS x BIGINT",
    "ADD COLUMN IF NOT EXISTS x INT, ADD COLUMN IF NOT EXISTS X BIGINT",
    "ADD COLUMN x INT, DROP COLUMN IF EXISTS x",
    "ADD KEY kk (b), ADD KEY IF NOT EXISTS kk (c)",
    "ADD CONSTRAINT ck CHECK (b > 0), DROP CONSTRAINT IF EXISTS ck",
    "DROP CONSTRAINT ch, ADD CONSTRAINT IF NOT EXISTS ch CHECK (b > 1)",
    "DROP INDEX IF EXISTS `PRIMARY`, ADD PRIMARY KEY IF NOT EXISTS (b)",
)


@pytest.mark.parametrize("change", VOID)
def test_what_does_nothing_is_judged_by_the_table_before(
    source_server: MariadbServer, schema: str, change: str
) -> None:
    made = "create table t (a int primary key, b int, c int, key k (b), constraint ch check (b < 9))"
    assert_evaluated(source_server, schema, [made, f"alter table t {change}"])


def test_conversions_with_a_default(source_server: MariadbServer, schema: str) -> None:
    assert_evaluated(source_server, schema, CONVERSIONS)


@pytest.mark.parametrize("seed", range(100, 104))
def test_random_statements(source_server: MariadbServer, schema: str, seed: int) -> None:
    followed = Evaluated(source_server, schema)
    try:
        assert followed.wander(RandomDdl(seed, MARIADB), 20) > 10
        assert {why for _, why in followed.refused} <= {"ADD PERIOD", "CONVERT of a partition"}
    finally:
        followed.close()
