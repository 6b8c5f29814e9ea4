"""A statement on its way past the rules: its single operations, and what is left of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.context import Context
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import (
    AlterOperation,
    OperationNote,
    StatementRules,
    StructureOf,
    all_pieces,
    parse_given,
    pieces,
)
from unshard.ddl.statement import Ddl
from unshard.errors import DdlError
from unshard.model.table import TableName
from unshard.transform.event_filter import Verdict

CASES = yaml.safe_load(Path(__file__).with_name("parts.yaml").read_text(encoding="utf-8"))
CONTEXT = Context(schema="d")
LEFT_OUT = Verdict("Ignore", "filters.f")
RULES = StatementRules(
    allows=lambda name: not name.table.startswith("shut"),
    allows_schema=lambda schema: schema != "shut",
    route=lambda name: TableName("r", "one" if name.table.startswith("shard") else name.table),
    route_schema=lambda schema: "r",
)


def left(sql: str, rules: StatementRules = RULES) -> tuple[AlterOperation, ...]:
    return pieces(classify_ddl(sql, CONTEXT), rules, lambda name: None)


def run(sql: str, rules: StatementRules = RULES) -> list[str]:
    return [part.text for piece in left(sql, rules) for part in piece.run]


@pytest.mark.parametrize(("whole", "parts"), [tuple(case.values()) for case in CASES])
def test_parts_of_an_alter(whole: str, parts: list[str]) -> None:
    ddl = classify_ddl(f"alter table t {whole}", CONTEXT)
    assert [part.text for part in alter_parts(ddl)] == [f"alter table t {part}" for part in parts]


def test_the_head_goes_with_every_part() -> None:
    ddl = classify_ddl("/*!50003 alter ignore table */ if exists e.t nowait add a int, drop b", CONTEXT)
    head = "alter ignore table if exists e.t nowait"
    assert [part.text for part in alter_parts(ddl)] == [f"{head} add a int", f"{head} drop b"]
    assert {part.tables for part in alter_parts(ddl)} == {(TableName("e", "t"),)}


@pytest.mark.parametrize("sql", ["alter table t", "create index i on t (a, b)", "drop table t, u", "alter database d"])
def test_what_has_no_parts_is_its_own(sql: str) -> None:
    if sql == "alter database d":
        sql += " charset utf8"
    ddl = classify_ddl(sql, CONTEXT)
    assert alter_parts(ddl) == (ddl,)


def test_parts_are_read_in_the_statements_own_session() -> None:
    ddl = classify_ddl('alter table "t" add "a,b" int, comment \'\\\'', Context("d", sql_mode=4 | 1 << 20))
    assert [part.text for part in alter_parts(ddl)] == [
        'alter table "t" add "a,b" int',
        "alter table \"t\" comment '\\'",
    ]


def test_block_allow_list_takes_whole_pieces() -> None:
    assert run("drop table a, shut_b, c") == ["drop table a", "drop table c"]
    assert run("rename table a to b, shut_x to shut_y") == ["rename table a to b"]
    assert run("create table shut (a int)") == run("drop database shut") == []
    assert run("drop database d") == ["drop database d"]


def test_a_leaving_table_frees_its_name() -> None:
    (one, other) = left("rename table a to shut_a, new_a to a")
    assert (one.leaves, [part.text for part in one.run]) == (TableName("d", "a"), ["rename table a to shut_a"])
    assert (other.leaves, [part.text for part in other.run]) == (None, ["rename table new_a to a"])


def test_names_on_the_way_of_a_swap_are_let_through() -> None:
    swap = "rename table a to shut_t, b to a, shut_t to b"
    assert run(swap) == ["rename table a to shut_t", "rename table b to a", "rename table shut_t to b"]
    for sql in ("rename table shut_t to b", "rename table a to b, shut_t to a", "rename table shut_x to y, y to z"):
        with pytest.raises(DdlError, match="DDL-011"):
            left(sql)


def test_sequences_are_passed_over_where_their_names_are_kept_out() -> None:
    assert run("create sequence shut start with 5") == run("drop sequence shut, shut_b") == []
    with pytest.raises(DdlError, match="DDL-013") as caught:
        left("drop sequence if exists shut, s")
    assert "d.s" in str(caught.value)
    assert left("create sequence s", replace(RULES, judge=lambda whole, ddl, structure: LEFT_OUT)) == ()


def test_temporary_tables_are_refused_where_the_real_one_of_that_name_is_followed() -> None:
    assert run("create temporary table shut (a int)") == []
    for sql in ("create temporary table t (a int)", "create or replace temporary table if not exists t like shut"):
        with pytest.raises(DdlError, match="DDL-035") as caught:
            left(sql)
        assert "d.t" in str(caught.value)
        assert sql in str(caught.value)
        assert left(sql, replace(RULES, judge=lambda whole, ddl, structure: LEFT_OUT)) == ()


def test_files_of_a_table_are_moved_unseen_only_where_its_name_is_kept_out() -> None:
    assert run("alter table shut discard tablespace") == run("alter table shut import partition p0 tablespace") == []
    for sql in ("alter table t discard tablespace", "alter table t import tablespace"):
        with pytest.raises(DdlError, match="DDL-002") as caught:
            left(sql)
        assert "d.t" in str(caught.value)
        assert "not in the log" in str(caught.value)
        assert left(sql, replace(RULES, judge=lambda whole, ddl, structure: LEFT_OUT)) == ()
        with pytest.raises(DdlError, match="DDL-026"):
            parse_given(sql, CONTEXT)


def test_shards_of_one_table_change_their_names() -> None:
    (piece,) = left("rename table shard_1 to shard_2")
    assert (piece.run, piece.ddl.text) == ((), "rename table shard_1 to shard_2")
    assert run("alter table shard_1 rename shard_2, add a int") == ["alter table shard_1 add a int"]
    assert run("rename table shard_1 to other") == ["rename table shard_1 to other"]


def test_the_event_filter_is_asked_for_every_part() -> None:
    asked: list[str] = []

    def judge(whole: Ddl, ddl: Ddl, structure: StructureOf) -> Verdict | None:
        assert ddl.text in (part.text for part in alter_parts(whole))
        assert structure(ddl.tables[0]) is None
        asked.append(ddl.text)
        return LEFT_OUT if "drop" in ddl.text else None

    rules = replace(RULES, judge=judge)
    whole = "alter table t add a int, add b int"
    assert run(whole, rules) == [whole]
    assert run("alter table t add a int, drop b, add c int", rules) == [
        "alter table t add a int",
        "alter table t add c int",
    ]
    (piece,) = left("alter table t drop b", rules)
    assert (piece.run, piece.ddl.text) == ((), "alter table t drop b")
    assert len(asked) == 6
    assert run("alter table shut drop b", rules) == []
    assert len(asked) == 6


@pytest.mark.parametrize(
    ("sql", "dropped", "note"),
    [
        ("drop database shut", True, OperationNote("block-allow-list", "shut is kept out")),
        ("drop table shut_a", True, OperationNote("block-allow-list", "d.shut_a kept out")),
        (
            "rename table a to shut_a",
            False,
            OperationNote(
                "block-allow-list", "d.a leaves for d.shut_a, which is kept out: its rows are followed no longer"
            ),
        ),
        (
            "rename table shard_1 to shard_2",
            False,
            OperationNote("route", "old and new name are one on the target: there is nothing to rename there"),
        ),
    ],
)
def test_a_piece_says_what_was_done_to_it(sql: str, dropped: bool, note: OperationNote) -> None:
    (piece,) = all_pieces(classify_ddl(sql, CONTEXT), RULES, lambda name: None)
    assert (piece.dropped, piece.notes) == (dropped, (note,))
    assert left(sql) == (() if dropped else (piece,))


def test_a_piece_says_what_the_event_filter_says_of_its_parts() -> None:
    rules = replace(RULES, judge=lambda whole, ddl, structure: LEFT_OUT if "drop" in ddl.text else None)
    (piece,) = left("alter table t add a int, drop b", rules)
    assert [(part.text, verdict) for part, verdict in piece.parts] == [
        ("alter table t add a int", None),
        ("alter table t drop b", LEFT_OUT),
    ]
    why = "left out by filters.f, and the rest is run part by part; the tracker follows it whole"
    assert piece.notes == (OperationNote("event-filter", why),)
