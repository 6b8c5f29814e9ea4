"""DROP, TRUNCATE, EXCHANGE and CONVERT PARTITION: on the target only where the partition has the same rows there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.statement_runs import Bench, bench_of
from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.partition_rows import check_partitions, takes_partition
from unshard.ddl.pieces import pieces
from unshard.ddl.provenance import Marks
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.schema.partition_options import partition_options
from unshard.testing.mariadb_server import MariadbServer


@pytest.fixture
def bench(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> Iterator[Bench]:
    with bench_of(source_server, target_server, schema) as found:
        yield found


def table(bench: Bench, mine: str, other: str, *values: str) -> None:
    """A table `q` of each side with the same rows."""
    bench.run(bench.source, f"create table q {mine}", *(f"insert into q values {value}" for value in values))
    bench.run(bench.target, f"create table q {other}", *(f"insert into q values {value}" for value in values))
    bench.tracker.get(TableName(bench.schema, "q"))


def rows_of(bench: Bench, name: str = "q") -> list[tuple[object, ...]]:
    with bench.target.cursor() as cursor:
        cursor.execute(f"select * from {name} order by 1")
        return list(cursor.fetchall())


BY_RANGE = "(a int) partition by range (a) (partition p0 values less than (5), partition p1 values less than maxvalue)"
OTHER = {
    "another bound": (
        BY_RANGE,
        BY_RANGE.replace("(5)", "(8)"),
        "on the source p0 LESS 5, on the target p0 LESS 8",
    ),
    "the names the other way round": (
        "(a int) partition by list (a) (partition p0 values in (1, 2), partition p1 values in (6, 7))",
        "(a int) partition by list (a) (partition p1 values in (1, 2), partition p0 values in (6, 7))",
        "on the source p0 IN 1 , 2, on the target p1 IN 1 , 2",
    ),
    "one more": (
        BY_RANGE,
        BY_RANGE.replace("(partition p0", "(partition p values less than (2), partition p0"),
        "on the source p0 LESS 5, on the target p LESS 2",
    ),
    "another number": (
        "(a int) partition by hash (a) partitions 2",
        "(a int) partition by hash (a) partitions 3",
        "there is none, on the target p2",
    ),
    "another expression": (
        "(a int) partition by hash (a) partitions 2",
        "(a int) partition by hash (a + 1) partitions 2",
        "by HASH (a), the target's by HASH (a + 1)",
    ),
    "none on the target": (BY_RANGE, "(a int)", "the target's has no partitions"),
    "a text of another collation": (
        "(a varchar(9) collate latin1_swedish_ci) charset latin1 partition by list columns (a)"
        " (partition p0 values in ('1', '2'), partition p1 values in ('6', '7'))",
        "(a varchar(9) collate latin1_bin) charset latin1 partition by list columns (a)"
        " (partition p0 values in ('1', '2'), partition p1 values in ('6', '7'))",
        "column a, on which the partition depends, has another collation: latin1_bin",
    ),
    "a key over text": (
        "(a varchar(9)) partition by key (a) partitions 2",
        "(a varchar(9)) partition by key (a) partitions 2",
        "KEY is by the bytes of column a",
    ),
    "a key over another type": (
        "(a int) partition by key (a) partitions 2",
        "(a bigint) partition by key (a) partitions 2",
        "KEY is by the bytes of column a",
    ),
    "a key over the primary key": (
        "(a int, primary key (a)) partition by key () partitions 2",
        "(a bigint, primary key (a)) partition by key () partitions 2",
        "KEY is by the bytes of column a",
    ),
    "subpartitions": (
        "(a int) partition by range (a) subpartition by hash (a) subpartitions 2"
        " (partition p0 values less than (5), partition p1 values less than maxvalue)",
        BY_RANGE,
        "subpartitions by HASH ( a ) 2",
    ),
}


@pytest.mark.server
@pytest.mark.parametrize("name", OTHER)
def test_rows_that_the_source_has_are_not_taken(bench: Bench, name: str) -> None:
    mine, other, why = OTHER[name]
    table(bench, mine, other, "(1)", "(2)", "(6)", "(7)")
    with pytest.raises(DdlError) as caught:
        bench.prepare("alter table q truncate partition p0")
    assert caught.value.code == "DDL-047"
    assert why in caught.value.cause
    assert f"{bench.schema}_t.q" in caught.value.message
    assert len(rows_of(bench)) == 4


EQUAL = {
    "by range": (BY_RANGE, BY_RANGE.replace("maxvalue", "(maxvalue)").replace("(a int)", "(`A` bigint)")),
    "by list": (
        "(a int) partition by list (a) (partition p0 values in (1, 2), partition p1 default)",
        "(a int) partition by list ((a)) (partition P0 values in (1, 1 + 1) comment 'x', partition p1 default)",
    ),
    "by hash": (
        "(a int) partition by hash (a) partitions 2",
        "(a int) partition by hash (a) (partition p0, partition p1)",
    ),
    "by linear hash": ("(a int) partition by linear hash (a) partitions 2",) * 2,
    "by key": ("(a int, primary key (a)) partition by key () partitions 2",) * 2,
    "by the text of a column": (
        "(a varchar(9)) charset utf8mb4 partition by range columns (a)"
        " (partition p0 values less than ('5'), partition p1 values less than (maxvalue))",
    )
    * 2,
    "by history": (
        "(a int) with system versioning partition by system_time limit 99 (partition p0 history, partition p current)",
        "(a int) with system versioning partition by system_time limit 77 (partition p0 history, partition p current)",
    ),
}


@pytest.mark.server
@pytest.mark.parametrize("name", EQUAL)
def test_the_same_rows_are_taken(bench: Bench, name: str) -> None:
    table(bench, *EQUAL[name], "(1)", "(2)", "(6)", "(7)")
    sql = f"alter table q {'drop' if name == 'by history' else 'truncate'} partition p0"
    if name == "by history":  # a partition of the history is dropped only beside another one
        for side in (bench.source, bench.target):
            bench.run(side, "alter table q add partition (partition p1 history)")
        bench.tracker.apply({TableName(bench.schema, "q"): read_table(bench.source, TableName(bench.schema, "q"))})
    bench.go(bench.intent(sql), resumed=False)
    bench.run(bench.source, sql)
    with bench.source.cursor() as cursor:
        cursor.execute("select * from q order by 1")
        assert list(cursor.fetchall()) == rows_of(bench)


@pytest.mark.server
@pytest.mark.parametrize(
    "sql",
    [
        "alter table p drop partition p0",
        "alter table p exchange partition p0 with table x",
        "alter table p convert partition p0 to table n",
    ],
)
def test_every_statement_that_takes_rows(bench: Bench, sql: str) -> None:
    bounds = "(partition p0 values less than (8), partition p1 values less than (9))"
    bench.run(bench.target, f"alter table p partition by range (id) {bounds}")
    with pytest.raises(DdlError, match="DDL-047"):
        bench.prepare(sql)
    assert rows_of(bench, "p") == [(1,), (7,)]


@pytest.mark.server
def test_statements_that_take_no_rows_of_others_pass(bench: Bench) -> None:
    table(bench, BY_RANGE, BY_RANGE.replace("(5)", "(8)"), "(1)", "(6)")
    assert bench.prepare("alter table q rebuild partition p0").intent is not None
    bench.go(bench.intent("alter table q truncate partition all"), resumed=False)
    assert rows_of(bench) == []


@pytest.mark.server
def test_the_target_gets_the_partitions_of_the_source(bench: Bench) -> None:
    table(bench, BY_RANGE, "(a int)", "(1)", "(6)")
    sql = "alter table q drop partition p0"
    with pytest.raises(DdlError, match="DDL-047"):
        bench.prepare(sql)
    bench.run(bench.target, f"alter table q {BY_RANGE.removeprefix('(a int)')}")
    bench.go(bench.intent(sql), resumed=False)
    assert rows_of(bench) == [(6,)]


@pytest.mark.server
def test_what_an_operator_gives_and_what_waits(bench: Bench) -> None:
    """An operator's statement is run; where the target lacks statements, the structure before them decides."""
    table(bench, BY_RANGE.replace("(5)", "(8)"), BY_RANGE)
    name = TableName(bench.schema, "q")
    rules = replace(bench.rules, route=lambda name: TableName(f"{bench.schema}_t", name.table))
    found = pieces(classify_ddl("alter table q drop partition p0", Context(bench.schema)), rules, bench.tracker.get)
    now, earlier = bench.tracker.get(name), read_table(bench.target, TableName(f"{bench.schema}_t", "q"))
    assert now is not None
    assert earlier is not None
    with pytest.raises(DdlError, match="DDL-047"):
        check_partitions(bench.target, found, bench.tracker.get, rules, [now])
    check_partitions(bench.target, found, bench.tracker.get, rules, [earlier])
    check_partitions(bench.target, [replace(one, given=True) for one in found], bench.tracker.get, rules)
    mapped = replace(rules, marks=lambda name: Marks(columns=("A",)))
    with pytest.raises(DdlError) as caught:
        check_partitions(bench.target, found, lambda name: earlier, mapped)
    assert caught.value.cause == "a column mapping changes column a, on which the partition depends"


@pytest.mark.parametrize(
    ("sql", "takes"),
    [
        ("ALTER TABLE t DROP PARTITION IF EXISTS a, b", True),
        ("ALTER TABLE t ALGORITHM=INPLACE, LOCK=NONE, DROP PARTITION a, b", True),
        ("ALTER TABLE t TRUNCATE PARTITION a", True),
        ("ALTER TABLE t TRUNCATE PARTITION ALL", False),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (9)", False),
        ("ALTER TABLE t REORGANIZE PARTITION a INTO (PARTITION b VALUES IN (1))", False),
        ("ALTER TABLE t DROP `PARTITION`", False),
        ("ALTER TABLE t ADD c INT", False),
        ("TRUNCATE TABLE t", False),
    ],
)
def test_which_statements_take_the_rows_of_partitions(sql: str, takes: bool) -> None:
    assert takes_partition(classify_ddl(sql, Context("s"))) is takes


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (  # MariaDB, MySQL and TiDB
            "PARTITION BY RANGE (to_days(`d`))\n(PARTITION `p0` VALUES LESS THAN (10) ENGINE = InnoDB,\n"
            " PARTITION `p1` VALUES LESS THAN MAXVALUE ENGINE = InnoDB)",
            "/*!50100 PARTITION BY RANGE (to_days(`d`))\n(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB,\n"
            " PARTITION p1 VALUES LESS THAN MAXVALUE ENGINE = InnoDB) */",
        ),
        (
            "PARTITION BY RANGE (TO_DAYS(`d`))\n(PARTITION `p0` VALUES LESS THAN (10))",
            "PARTITION BY RANGE (to_days(`d`))\n(PARTITION `p0` VALUES LESS THAN (10) COMMENT = 'it '')' ENGINE = x)",
        ),
        (
            "PARTITION BY HASH ((YEAR(`d`) DIV 2)) PARTITIONS 2",
            "/*!50100 PARTITION BY HASH (year(`D`) DIV 2)\nPARTITIONS 2 */",
        ),
        (
            "PARTITION BY RANGE COLUMNS(`d`,`v`) (PARTITION `p` VALUES LESS THAN ('a',MAXVALUE))",
            '/*!50500 PARTITION BY RANGE  COLUMNS(d,v) (PARTITION p VALUES LESS THAN ("a", maxvalue)) */',
        ),
        (
            "PARTITION BY LIST COLUMNS(`a`,`v`) (PARTITION `p` VALUES IN ((1,'a'),(2,'b')))",
            "PARTITION BY LIST  COLUMNS(`a`,`v`) (PARTITION `p` VALUES IN ((1,'a'),(2,'b')) ENGINE = InnoDB)",
        ),
        ("PARTITION BY HASH (a)", "PARTITION BY HASH (a) PARTITIONS 1"),
    ],
)
def test_one_definition_in_two_forms(one: str, other: str) -> None:
    head = "CREATE TABLE `t` (\n `d` date COMMENT 'PARTITION BY HASH (x)'\n) ENGINE=InnoDB COMMENT='PARTITION BY x'\n"
    assert partition_options(head) is None
    found = partition_options(head + one)
    assert found is not None
    assert found == partition_options(head + other)
