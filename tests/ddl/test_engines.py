"""A table of an engine without transactions is one of InnoDB on the target, whatever statement of the log makes it."""

from __future__ import annotations

import pytest

from support.followed_ddl import Followed
from unshard.ddl.context import Context
from unshard.ddl.engines import with_transactions
from unshard.ddl.parse import classify_ddl
from unshard.model.table import Table, TableName
from unshard.testing.mariadb_server import MariadbServer

ARIA = Table(TableName("a", "t"), (), create_sql="CREATE TABLE `t` (\n  `a` int\n) ENGINE=Aria")
PLAIN = Table(TableName("a", "t"), (), create_sql="CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB")


@pytest.mark.parametrize(
    ("statement", "upstream", "made"),
    [
        ("CREATE TABLE t (a INT) ENGINE=MyISAM", None, "CREATE TABLE t (a INT) ENGINE=InnoDB"),
        ("CREATE TABLE t (a INT) engine 'heap' x=1", None, "CREATE TABLE t (a INT) engine InnoDB x=1"),
        (
            "CREATE TABLE t (a INT) ENGINE=Aria, TRANSACTIONAL = 0, ROW_FORMAT=PAGE",
            None,
            "CREATE TABLE t (a INT) ENGINE=InnoDB, ROW_FORMAT=DEFAULT",
        ),
        (
            "CREATE TABLE t (a INT) ENGINE=MyISAM PARTITION BY HASH (a) (PARTITION p ENGINE = MyISAM)",
            None,
            "CREATE TABLE t (a INT) ENGINE=InnoDB PARTITION BY HASH (a) (PARTITION p ENGINE = InnoDB)",
        ),
        ("ALTER TABLE t ADD b INT, ENGINE=MEMORY", PLAIN, "ALTER TABLE t ADD b INT, ENGINE=InnoDB"),
        ("ALTER TABLE t ROW_FORMAT=PAGE, COMMENT 'x'", ARIA, "ALTER TABLE t ROW_FORMAT=DEFAULT, COMMENT 'x'"),
        ("ALTER TABLE t ROW_FORMAT=FIXED", PLAIN, "ALTER TABLE t ROW_FORMAT=FIXED"),
        ("CREATE TABLE t (engine INT, memory INT) ENGINE=InnoDB COMMENT 'ENGINE=MyISAM'", None, None),
        ("CREATE TABLE t (a INT) ENGINE=ROCKSDB", None, None),
        ("DROP TABLE t", ARIA, None),
    ],
)
def test_statements(statement: str, upstream: Table | None, made: str | None) -> None:
    found = with_transactions(classify_ddl(statement, Context("a", mariadb=True)), upstream)
    assert found.text == (made or statement)


@pytest.mark.server
def test_on_a_server(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> None:
    followed = Followed(source_server, target_server, schema)
    try:
        for sql in (
            "CREATE TABLE isam (id INT PRIMARY KEY, v CHAR(9), KEY (v)) ENGINE=MyISAM ROW_FORMAT=FIXED",
            "CREATE TABLE aria (id INT PRIMARY KEY) ENGINE=Aria TRANSACTIONAL=1 ROW_FORMAT=PAGE",
            "ALTER TABLE aria ADD v INT, TRANSACTIONAL=0",
            "CREATE TABLE likewise LIKE isam",
            "CREATE TABLE filled ENGINE=MEMORY SELECT * FROM isam",
            "ALTER TABLE filled ENGINE=InnoDB",
            "CREATE TABLE parted (a INT) ENGINE=MyISAM PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5))",
            "ALTER TABLE parted ADD PARTITION (PARTITION q VALUES LESS THAN (9) ENGINE = MyISAM)",
            "ALTER TABLE isam ROW_FORMAT=FIXED",
        ):
            followed.run(sql)
            followed.assert_equal()
    finally:
        followed.close()
