"""What statements of gh-ost and pt-online-schema-change become: the table of `unshard.ddl.online`, row by row."""

from __future__ import annotations

import pytest

from unshard.config.task import TaskConfig
from unshard.ddl.context import Context
from unshard.ddl.online import Kept, Meaning, OnlineDdl
from unshard.ddl.parse import classify_ddl
from unshard.ddl.pieces import StatementRules, pieces
from unshard.errors import DdlError, Where
from unshard.model.table import TableName
from unshard.transform.online_tables import OnlineTablePart, OnlineTables

FIELDS = TaskConfig.model_fields
TABLES = OnlineTables.compile(FIELDS["shadow_table_rules"].default, FIELDS["trash_table_rules"].default)
GHOST, NEW = TableName("d", "_t_gho"), TableName("d", "_t_new")
MODE = Context(schema="d", sql_mode="ANSI_QUOTES", where=Where(position="binlog.000001:4"))
WHERE = Where(position="binlog.000009:4")
KEPT = Kept('alter table "_t_gho" add "a" int', MODE)


def online(*kept: Kept) -> OnlineDdl:
    return OnlineDdl(TABLES, {GHOST: kept} if kept else {})


def meaning(sql: str, *kept: Kept) -> Meaning | None:
    ddl = classify_ddl(sql, Context(schema="d", where=WHERE))
    return online(*kept).meaning(ddl, lambda name: name.table != "shut")


@pytest.mark.parametrize(
    ("table", "part", "real"),
    [
        ("_t_gho", OnlineTablePart.GHOST, "t"),
        ("_a_b_new", OnlineTablePart.GHOST, "a_b"),
        ("_t_ghc", OnlineTablePart.TRASH, "t"),
        ("_t_del", OnlineTablePart.TRASH, "t"),
        ("_t_old", OnlineTablePart.TRASH, "t"),
        ("__t_old", OnlineTablePart.TRASH, "_t"),
        ("t_gho", OnlineTablePart.REAL, "t_gho"),
        ("_t_ghost", OnlineTablePart.REAL, "_t_ghost"),
        ("__new", OnlineTablePart.REAL, "__new"),
        ("_größe_new", OnlineTablePart.GHOST, "größe"),
    ],
)
def test_names_by_dms_rules(table: str, part: OnlineTablePart, real: str) -> None:
    assert TABLES.told(TableName("d", table))[:2] == (part, TableName("d", real))
    assert OnlineTables().is_real(TableName("d", table))


@pytest.mark.parametrize(
    "sql", ["alter table t add a int", "rename table t to u", "drop database d", "create table n like t"]
)
def test_statements_on_real_tables_stand_for_themselves(sql: str) -> None:
    assert meaning(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "create table _t_del (id int) comment 'ghost-cut-over-sentry'",
        "drop table if exists _t_old",
        "alter table _t_ghc add a int",
        "rename table t to _t_del",
        "rename table _t_old to t",
        "rename table _t_old to _u_old",
        "truncate table _t_gho",
        "create table _t_gho like t",
        "drop table _t_gho",
        "alter table _shut_gho add a int",
        "rename table _shut_gho to shut",
        "alter table shut exchange partition p0 with table _shut_old",
        "alter table _t_del exchange partition p0 with table _t_old",
    ],
)
def test_nothing_comes_of_trash_and_of_what_leaves_no_trace(sql: str) -> None:
    assert meaning(sql) == Meaning("")


@pytest.mark.parametrize(
    "sql", ["alter table _t_gho add b int", "create index i on _t_gho (a)", "drop index i on d._t_gho"]
)
def test_what_changes_the_ghost_is_kept(sql: str) -> None:
    found = meaning(sql, KEPT)
    assert found == Meaning("", records={GHOST: (KEPT, Kept(sql, Context(schema="d", where=WHERE)))})


@pytest.mark.parametrize("sql", ["create table _t_gho like t", "drop table _t_gho", "rename table _t_gho to _t_del"])
def test_a_new_ghost_and_a_gone_one_have_nothing_behind_them(sql: str) -> None:
    assert meaning(sql, KEPT) == Meaning("", records={GHOST: ()})


def test_what_was_kept_is_run_on_the_table_at_the_rename_in_its_own_session() -> None:
    found = meaning("rename table _t_gho to t", KEPT, Kept("create index i on d._t_gho (a)", Context("x")))
    assert found is not None
    assert [ddl.text for ddl in found.run] == ['alter table `d`.`t` add "a" int', "create index i on `d`.`t` (a)"]
    assert [ddl.context.modes for ddl in found.run] == [("ANSI_QUOTES",), ()]
    assert {(ddl.context.where, ddl.context.by_tool) for ddl in found.run} == {(WHERE, True)}
    assert found.records == {GHOST: ()}


def test_an_alter_that_renames_the_ghost_brings_its_other_parts() -> None:
    found = meaning("alter table _t_gho rename to t, add b int", KEPT)
    assert found is not None
    assert [ddl.text for ddl in found.run] == ['alter table `d`.`t` add "a" int', "alter table `d`.`t` add b int"]


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("rename table t to _t_gho", "DDL-023"),
        ("rename table _t_gho to _u_gho", "DDL-024"),
        ("rename table _t_old to _t_new", "DDL-024"),
        ("rename table _u_gho to u", "DDL-025"),
        ("alter table t exchange partition p0 with table _t_old", "DDL-041"),
        ("alter table _t_gho exchange partition p0 with table t", "DDL-041"),
        ("alter table t convert partition p0 to table _t_old", "DDL-041"),
        ("alter table t convert table _t_new to partition p0 values less than (5)", "DDL-041"),
    ],
)
def test_what_nobody_can_carry_out_is_refused_with_its_place(sql: str, code: str) -> None:
    with pytest.raises(DdlError) as caught:
        meaning(sql, KEPT)
    assert caught.value.code == code
    assert caught.value.where.position == WHERE.position


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("create table _t_del (id int)", "d._t_del is trash of d.t (trash-table-rules[0]): nothing is run"),
        ("alter table _t_gho add a int", "d._t_gho is ghost of d.t (shadow-table-rules[0]): kept until d._t_gho takes"),
        ("rename table _t_gho to t", "d._t_gho, a ghost, takes the place of d.t: what was kept of it is run on d.t"),
        ("rename table _t_gho to _t_del", "d._t_gho, a ghost, becomes trash: what was kept of it goes"),
        ("rename table t to _t_del", "d.t becomes d._t_del, and one of them is trash: nothing is run"),
        ("drop table _shut_gho", "it is on helper tables of one that block-allow-list keeps out"),
    ],
)
def test_a_meaning_says_why(sql: str, why: str) -> None:
    found = meaning(sql, KEPT)
    assert found is not None
    assert found.why.startswith(why)


@pytest.mark.parametrize("marks", ["__", "_" * 10])
def test_a_copy_with_further_underscores_is_one_of_the_table_that_the_list_lets_through(marks: str) -> None:
    """pt-online-schema-change takes more of them, up to ten, where a copy of an earlier run is left."""
    helper = online()
    for sql in (f"create table {marks}t_new (id int)", f"alter table {marks}t_new add a int"):
        helper.apply(helper.changes(classify_ddl(sql, Context("d")), lambda name: name.table == "t"))
    swap = classify_ddl(f"rename table t to _t_old, {marks}t_new to t", Context("d"))
    rules = StatementRules(
        lambda name: name.table == "t", lambda _: True, lambda name: name, lambda schema: schema, online=helper
    )
    assert [part.text for piece in pieces(swap, rules, lambda _: None) for part in piece.run] == [
        "alter table `d`.`t` add a int"
    ]


def test_both_pairs_of_the_cut_over_are_one_statement() -> None:
    found = online(KEPT)
    rules = StatementRules(
        lambda name: TABLES.is_real(name), lambda _: True, lambda name: name, lambda schema: schema, online=found
    )
    ddl = classify_ddl("rename table t to _t_del, _t_gho to t", Context("d"))
    left = pieces(ddl, rules, lambda _: None)
    assert [part.text for piece in left for part in piece.run] == ['alter table `d`.`t` add "a" int']
    changes = found.changes(ddl, rules.allows)
    assert changes == {GHOST: ()}
    found.apply(changes)
    assert found.records == {}


@pytest.mark.parametrize(("ghost", "tables"), [("_t_gho", {"t"}), ("__t_new", {"t", "_t"})])
def test_the_ghost_of_a_table_while_statements_are_recorded(ghost: str, tables: set[str]) -> None:
    name = TableName("d", ghost)
    records = OnlineDdl(TABLES, {name: (KEPT,)})
    names = ("t", "_t", "__t", "u")
    assert {one for one in names if records.ghost_of(TableName("d", one)) == name} == tables
    assert records.ghost_of(TableName("e", "t")) is None
    records.apply({name: ()})
    assert records.ghost_of(TableName("d", "t")) is None


def test_a_kept_statement_lives_through_json() -> None:
    assert Kept.from_dict(KEPT.to_dict()) == KEPT
