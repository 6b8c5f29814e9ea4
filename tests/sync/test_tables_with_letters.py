"""A new table and the shards that were copied: alike also where only the copy's structure has its default as it is."""

from __future__ import annotations

from contextlib import closing

import pytest

from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.sandbox import ScratchPlace
from unshard.ddl.tracker import SchemaTracker
from unshard.dump.true_defaults import with_true_defaults
from unshard.model.table import TableName
from unshard.mysql.structure import read_table
from unshard.sync.sharding import statements
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server

ROW = "(id INT PRIMARY KEY, v VARCHAR(9) NOT NULL DEFAULT '{}') CHARSET utf8mb4"


@pytest.mark.parametrize("text", [f"TABLE {{}}.t_2 {ROW.format('is it 😀?')}", "TABLE {}.t_2 LIKE {}.t_1"])
def test_a_new_table_is_like_one_that_was_copied(
    source_server: ThrowawayServer, target_server: ThrowawayServer, schema: str, text: str
) -> None:
    copied, new = TableName(schema, "t_1"), TableName(schema, "t_2")
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {copied} {ROW.format('is it 😀?')}",
        f"INSERT INTO {copied} (id) VALUES (1)",
    )
    tracker = SchemaTracker(ScratchPlace("dm_meta", schema, "s1"))
    with closing(source_server.connection()) as source, closing(target_server.connection()) as target:
        shown = read_table(source, copied)
        assert shown is not None
        dumped = with_true_defaults(source, shown)
        tracker.begin({copied: dumped})
        other = f"CREATE TABLE {schema}.t_3 {ROW.format('is it so?')}"
        found = tracker.after(target, classify_ddl(f"CREATE {text.format(schema, schema)}", Context(schema)))
        unlike = tracker.after(target, classify_ddl(other, Context(schema)))
    made, third = found[new], unlike[TableName(schema, "t_3")]
    assert made is not None
    assert third is not None
    assert statements._alike(made, dumped)
    assert not statements._alike(third, dumped)
