"""What a statement of one source does to tables that are merged, with `shard-mode`."""

from __future__ import annotations

from typing import cast

import pytest

from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import AlterOperation
from unshard.errors import ShardError, Where
from unshard.sync.sharding.coordinator import ShardingGroups
from unshard.sync.sharding.statements import ShardedStatements

NO_GROUPS = cast(ShardingGroups, None)


@pytest.mark.parametrize("sql", ["drop database d", "create or replace database d", "drop table d.t", "truncate d.t"])
def test_a_statement_that_takes_a_shard_leaves_the_merged_rows(sql: str) -> None:
    ddl = classify_ddl(sql, Context())
    operation = AlterOperation(ddl, (ddl,))
    (left,) = ShardedStatements(NO_GROUPS, "ignore").share([operation], Where("s1")).pieces
    assert (left.ddl, left.run) == (ddl, ())
    with pytest.raises(ShardError, match="SHARD-023"):
        ShardedStatements(NO_GROUPS, "stop").share([operation], Where("s1"))


@pytest.mark.parametrize("sql", ["create database d", "alter database d charset utf8mb4"])
def test_a_statement_that_takes_no_table_is_run_at_once(sql: str) -> None:
    ddl = classify_ddl(sql, Context())
    operation = AlterOperation(ddl, (ddl,))
    assert ShardedStatements(NO_GROUPS, "stop").share([operation], Where("s1")).pieces == (operation,)
