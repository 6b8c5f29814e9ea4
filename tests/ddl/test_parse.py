"""Names, kinds and places found in statements, and the same statements with routed names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from unshard.ddl.context import Context
from unshard.ddl.parse import classify
from unshard.ddl.rewrite import renames, rewrite, split, with_charset
from unshard.ddl.statement import Ddl, Skipped
from unshard.errors import DdlError, Where
from unshard.model.table import TableName

CASES = yaml.safe_load(Path(__file__).with_name("statements.yaml").read_text(encoding="utf-8"))
CONTEXT = Context(schema="d", where=Where(source="s1", position="bin.000001:4"))


def parsed(sql: str, **changes: Any) -> Ddl:
    ddl = classify(sql, replace(CONTEXT, **changes))
    assert isinstance(ddl, Ddl)
    return ddl


def to_new(name: TableName) -> TableName:
    return TableName("r", f"{name.table}_new")


@pytest.mark.parametrize(("sql", "kind", "tables", "routed"), [tuple(case.values()) for case in CASES["tables"]])
def test_table_statement(sql: str, kind: str, tables: str, routed: str) -> None:
    ddl = parsed(sql)
    assert ddl.kind == kind
    assert " ".join(str(name) for name in ddl.tables) == tables
    assert rewrite(ddl, to_new, lambda schema: "never asked") == routed


@pytest.mark.parametrize(("sql", "kind", "schema", "routed"), [tuple(case.values()) for case in CASES["schemas"]])
def test_schema_statement(sql: str, kind: str, schema: str, routed: str) -> None:
    ddl = parsed(sql)
    assert (ddl.kind, ddl.schema, ddl.tables) == (kind, schema, ())
    assert rewrite(ddl, to_new, lambda name: f"{name}_new") == routed


@pytest.mark.parametrize(("sql", "reason"), [tuple(case.values()) for case in CASES["skipped"]])
def test_skipped_statement(sql: str, reason: str) -> None:
    assert classify(sql, CONTEXT) == Skipped(reason)


@pytest.mark.parametrize(("sql", "why"), [tuple(case.values()) for case in CASES["refused"]])
def test_refused_statement_names_text_and_place(sql: str, why: str) -> None:
    with pytest.raises(DdlError) as caught:
        classify(sql, CONTEXT)
    assert caught.value.code == "DDL-002"
    assert why in caught.value.cause
    assert sql in str(caught.value)
    assert "bin.000001:4" in str(caught.value)


def test_a_rewritten_statement_is_read_back_with_the_new_names() -> None:
    for sql, kind, _, routed in (case.values() for case in CASES["tables"]):
        if "START TRANSACTION" not in sql:
            again = parsed(routed)
            assert again.kind == kind
            assert {name.schema for name in again.tables} == {"r"}
            assert rewrite(again, lambda name: name, str) == routed


@pytest.mark.parametrize("sql", ["drop table `t", "drop table t comment 'x", 'alter table t comment "x\\"'])
def test_an_open_quote_is_told(sql: str) -> None:
    with pytest.raises(DdlError) as caught:
        classify(sql, CONTEXT)
    assert caught.value.code == "DDL-001"


def test_double_quotes_hold_a_name_under_ansi_quotes() -> None:
    sql = 'create table "a""b" ("c" int default \'"\')'
    for mode in (4, "ANSI_QUOTES", "ansi", "ORACLE"):
        ddl = parsed(sql, sql_mode=mode)
        assert ddl.tables == (TableName("d", 'a"b'),)
        assert rewrite(ddl, to_new, str) == 'create table `r`.`a"b_new` ("c" int default \'"\')'
    with pytest.raises(DdlError):
        parsed(sql)


def test_backslash_is_a_letter_under_no_backslash_escapes() -> None:
    sql = "create table t (a char(9) default '\\', b int references u(i))"
    assert rewrite(parsed(sql, sql_mode=1 << 20), to_new, str).endswith("references `r`.`u_new`(i))")
    with pytest.raises(DdlError):
        parsed(sql)


def test_mariadb_comments_are_comments_for_mysql() -> None:
    assert parsed("drop table t /*M! , u */").tables == (TableName("d", "t"), TableName("d", "u"))
    assert parsed("drop table t /*M! , u */", mariadb=False).tables == (TableName("d", "t"),)


def test_names_are_folded_where_the_source_folds_them() -> None:
    ddl = parsed("rename table E.T to F.U", lower_case_names=True)
    assert ddl.tables == (TableName("e", "t"), TableName("f", "u"))


def test_a_name_without_any_schema_is_refused() -> None:
    with pytest.raises(DdlError, match="DDL-002"):
        classify("drop table t", Context())
    assert isinstance(classify("drop table e.t", Context()), Ddl)


def test_a_condition_is_seen_in_a_version_comment() -> None:
    assert parsed("CREATE TABLE /*!32312 IF NOT EXISTS*/ t (id int)").if_not_exists
    assert parsed("drop table if exists t").if_exists
    assert parsed("create or replace table t (a int)").or_replace
    assert parsed("drop index if exists i on t").table_may_be_missing is False


@pytest.mark.parametrize(
    ("sql", "pieces"),
    [
        ("drop table if exists a, e.b /* s */", ["drop table if exists a /* s */", "drop table if exists e.b /* s */"]),
        ("rename table a wait 5 to b, b to c", ["rename table a wait 5 to b", "rename table b to c"]),
        ("drop table a", ["drop table a"]),
        ("alter table a rename b, add c int", ["alter table a rename b, add c int"]),
    ],
)
def test_split_gives_one_statement_per_operation(sql: str, pieces: list[str]) -> None:
    assert [piece.text for piece in split(parsed(sql))] == pieces


def test_renamed_pairs() -> None:
    a, b, c = (TableName("d", name) for name in "abc")
    assert renames(parsed("rename table a to b, b to c")) == ((a, b), (b, c))
    assert renames(parsed("alter table a add x int, rename c")) == ((a, c),)
    assert renames(parsed("alter table a rename column b to c")) == ()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("create table t (a text)", "create table t (a text) CHARACTER SET latin1 COLLATE latin1_bin"),
        (
            "create table t (a text charset utf8) engine=innodb partition by hash (a)",
            "create table t (a text charset utf8) CHARACTER SET latin1 COLLATE latin1_bin"
            " engine=innodb partition by hash (a)",
        ),
        ("create table t (a text) default charset=utf8", None),
        ("create table t (a text) character set utf8", None),
        ("create table t (a text) engine=innodb collate utf8_bin", None),
        ("create table t like u", None),
        ("alter table t add a text", None),
    ],
)
def test_the_character_set_of_the_schema_is_written_out(sql: str, expected: str | None) -> None:
    assert with_charset(parsed(sql), "latin1", "latin1_bin").text == (expected or sql)


def test_unknown_mode_bit() -> None:
    with pytest.raises(ValueError, match="bit 50"):
        _ = Context(sql_mode=1 << 50).modes
    assert Context(sql_mode="STRICT_TRANS_TABLES,ANSI_QUOTES").target_modes == ("ANSI_QUOTES", "ALLOW_INVALID_DATES")
    assert Context.from_dict(CONTEXT.to_dict()) == CONTEXT
