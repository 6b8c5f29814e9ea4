"""Each statement that the tests of the parser know, run on a source, carried out on a TiDB, and both compared."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from support.followed_on_tidb import OnTidb
from support.parsed_statements import statements
from support.refusals import refusal
from unshard.errors import DdlError
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

STARTS = (
    (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL, b VARCHAR(20) NOT NULL, d INT, s DATE NOT NULL,"
        " e DATE NOT NULL, k INT, KEY i (a), KEY j (d), KEY k (k))",
        "CREATE TABLE u (id INT PRIMARY KEY, i INT UNIQUE)",
        "CREATE TABLE `on` (a INT)",
    ),
    (
        "CREATE TABLE t (id INT PRIMARY KEY, c INT, `rename` INT, d INT, KEY a (c), CONSTRAINT `on` UNIQUE (c))",
        "CREATE TABLE v (id INT PRIMARY KEY)",
    ),
    (
        "CREATE TABLE t (id INT PRIMARY KEY, a INT) PARTITION BY RANGE (id)"
        " (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (9))",
        "CREATE TABLE u (id INT PRIMARY KEY, a INT)",
        "CREATE TABLE tmp2 (id INT)",
    ),
    ("CREATE TABLE t (id INT PRIMARY KEY, a INT) PARTITION BY HASH (id) PARTITIONS 4",),
    ("CREATE TABLE t (a TEXT, b INT, c TEXT, v VARCHAR(9))", "CREATE TABLE `t``x` (i INT PRIMARY KEY)"),
    ("CREATE TABLE t (x INT)", "CREATE TABLE u (i INT PRIMARY KEY)", "CREATE TABLE `table` (x INT)"),
    ("CREATE TABLE t (a INT, b INT, c INT, KEY i (a), KEY j (b), KEY f (c))", "CREATE TABLE v (i INT PRIMARY KEY)"),
    ("CREATE TABLE u (id INT PRIMARY KEY, i INT)", "CREATE TABLE v (id INT PRIMARY KEY)"),
    (),
)
"""Tables that a source may have before: a statement runs on the first of these that let it run."""


LACKING = ("DDL-002", "DDL-037", "DDL-038")
"""Of statements that no target can have, or TiDB has nothing for."""
_OTHER_SCHEMA = re.compile(r"(?<![\w`])(`?)e\1(?=\s*(/\*.*?\*/)?\s*\.)")
NOT_RUN = (
    "CREATE TABLE `t` (\n  `id` int\n) START TRANSACTION",
    "alter table e.t import partition p0, p1 tablespace",
    "alter table t /*!80000 add c int */, /*! algorithm = inplace",
    "alter table t add c int references e.u (id), algorithm=insta",
    "alter table t add column (a int, b int), add index (a), add ",
    "alter table t add constraint c unique (a), add constraint pr",
    "alter table t add partition if not exists (partition p9 hist",
    "alter table t add system versioning, drop period for system_",
    "alter table t add vector index v (v) m=4",
    "alter table t alter index i invisible, alter index j ignored",
    "alter table t auto_random_base = 5, shard_row_id_bits = 3, s",
    "alter table t cache",
    "alter table t convert partition p to table u",
    "alter table t convert table u to partition p values less tha",
    "alter table t drop column if exists a cascade, drop b restri",
    "alter table t exchange partition p0 with table e.u with vali",
    "alter table t exchange partition p0 with table u without val",
    "alter table t rename column rename to `to`",
    "alter table t secondary_engine = null, secondary_load",
    "alter table t with validation, add x int",
    "create fulltext index i on e.t (a) with parser ngram",
    "create index i on t ((a + 1), b desc, c(10) asc)",
    "create spatial index i on t (a) algorithm=copy",
    "create table `a b`.`c d` (id int)",
    "create table e.t (like t)",
    "create table t (a char(9) default 'it''s ",
    "create table t (a int default (select_1), b int generated al",
    "create table t (a int default 1) select_1 = 2",
    "create table t (a int default 5--1)",
    "create table t (a int) charset=utf8mb4 collate utf8mb4_0900_",
    "create table t (a int) data directory = '/like' index direct",
    "create table t (a int) secondary_engine=rapid engine_attribu",
    "create table t (a int) start transaction",
    "create table t (a int, b int) partition by range columns (a)",
    "create table t (a varchar(9) compressed, b int masked with (",
    "create table t (d point srid 4326 not null default (point(1,",
    "create table t (id bigint auto_random(5, 54) primary key clu",
    "create table t (id int primary key, v vector(3), g int gener",
    "create table t (id int, v vector(3) not null, vector index (",
    "create table t (s timestamp(6) generated always as row start",
    "create table 数据.表 (id int)",
    "create unique index i using hash on t (a) key_block_size=8 c",
    "create vector index i on t (v)",
    "drop index `on` on t algorithm=inplace lock=none",
    "drop index if exists `PRIMARY` on e.t lock=none",
    "drop tables t, e.u , `v`",
    "truncate table t wait 1 reuse storage",
)
"""The beginnings of statements that the source refuses on all of these tables: words of other servers or releases."""


@pytest.fixture
def followed(source_server: ThrowawayServer, tidb: TidbServer, schema: str) -> Iterator[Iterator[OnTidb]]:
    """Schemas of both servers, one after the other, each with some of the tables in `STARTS`."""
    made: list[OnTidb] = []

    def started() -> Iterator[OnTidb]:
        for number, start in enumerate(STARTS):
            made.append(OnTidb(source_server, tidb, f"{schema}_{number}"))
            made[-1].run(*start)
            yield made[-1]

    yield started()
    for one in made:
        one.close()


@pytest.mark.parametrize("sql", [sql for sql in statements() if "engine=merge" not in sql])
def test_the_target_becomes_what_the_source_becomes(sql: str, followed: Iterator[OnTidb]) -> None:
    """A name in the schema `e` stands for one in the schema of the test. A MERGE table without others is unreadable."""
    taken: list[bool] = []
    for one in followed:
        text = _OTHER_SCHEMA.sub(one.schema, sql)
        refused = refusal(DdlError, lambda one=one, text=text: taken.append(one.taken(text)))  # type: ignore[misc]
        assert refused is None or refused.code in LACKING, refused
        if refused is None and taken[-1]:
            one.assert_equal()
        if refused is not None or taken[-1]:
            assert not sql.startswith(NOT_RUN)
            return
    assert sql.startswith(NOT_RUN)
