"""Rules that leave out rows by their values: which images go, and what is refused before any row is seen."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from unshard.config.rules import ExpressionFilterRule
from unshard.errors import ConfigError, SyncError
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.table import Column, Table, TableName
from unshard.mysql.types import arrow_type
from unshard.transform.expressions.filter import ExpressionFilter, ExpressionFilters

TABLE = Table(
    TableName("s", "t"),
    (
        Column("id", "int", "int", nullable=False),
        Column("v", "varchar", "varchar(20)", charset="utf8mb4", collation="utf8mb4_general_ci", length=20),
        Column("at", "timestamp", "timestamp"),
        Column("twice", "int", "int", generated=True),
        Column("op", "int", "int"),
        Column("o", "varchar", "varchar(9)", charset="utf8mb4", collation="utf8mb4_0900_as_cs"),
    ),
)


def images(*rows: tuple[Op, int, str | None]) -> pa.RecordBatch:
    types = [field.type for field in IMAGE_FIELDS] + [arrow_type(column) for column in TABLE.columns]
    names = [field.name for field in IMAGE_FIELDS] + [column.name for column in TABLE.columns]
    full = [(op, seq, key, v, None, None, key, None) for seq, (op, key, v) in enumerate(rows)]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*full, strict=True), types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names)


def made(**expressions: str) -> ExpressionFilter:
    rule = ExpressionFilterRule(schema="s", table="t", **expressions)
    (found,) = ExpressionFilters({"r": rule}, False, lambda local: local).of_table(TABLE)
    assert pickle.loads(pickle.dumps(found)) == found
    return found


def dropped(rule: ExpressionFilter, *rows: tuple[Op, int, str | None]) -> list[bool]:
    answer: list[bool] = rule.dropped(TABLE, images(*rows), frozenset()).tolist()
    return answer


ROWS = [
    (Op.INSERT, 1, "draft"),
    (Op.INSERT, 2, None),
    (Op.UPDATE_BEFORE, 3, "draft"),
    (Op.UPDATE_AFTER, 3, "paid"),
    (Op.UPDATE_BEFORE, 4, "draft"),
    (Op.UPDATE_AFTER, 4, "DRAFT "),
    (Op.DELETE, 5, "draft"),
    (Op.DELETE, 6, None),
]


@pytest.mark.parametrize(
    ("expressions", "places"),
    [
        ({"insert_value_expr": "v = 'draft'"}, [0]),
        ({"insert_value_expr": "v <> 'draft'"}, []),
        ({"insert_value_expr": "v IS NULL"}, [1]),
        ({"insert_value_expr": "TRUE"}, [0, 1]),
        ({"delete_value_expr": "v = 'draft' OR id = 6"}, [6, 7]),
        ({"update_old_value_expr": "v = 'draft'"}, [2, 3, 4, 5]),
        ({"update_new_value_expr": "v = 'draft'"}, [4, 5]),
        ({"update_old_value_expr": "v = 'draft'", "update_new_value_expr": "v = 'paid'"}, [2, 3]),
        ({"insert_value_expr": "op = 2"}, [1]),
    ],
)
def test_the_rows_that_go(expressions: dict[str, str], places: list[int]) -> None:
    assert [place for place, gone in enumerate(dropped(made(**expressions), *ROWS)) if gone] == places


@pytest.mark.parametrize(
    ("expression", "part", "why"),
    [
        ("", None, None),
        ("id = ", "the end", "not expected here"),
        ("id = 1 || v = 'x'", "|| v = 'x'", "write OR"),
        ('v = "x"', '"x"', "write 'text'"),
        ("v = 'a\\'b'", "'a\\'b'", "backslash"),
        ("id = 1 = 1", "=", "parentheses"),
        ("NOT id = 1", "id = 1", "parentheses"),
        ("id / 2 = 1", "id / 2", "DIV"),
        ("id * 9999999999 > 1", "id * 9999999999", "range of BIGINT"),
        ("v = 5", "v = 5", "'5'"),
        ("v < 'b'", "v < 'b'", "COLLATE"),
        ("o = 'x'", "o = 'x'", "COLLATE utf8mb4_bin"),
        ("v = 'é'", "v = 'é'", "ASCII"),
        ("at > '2024-13-01'", "at > '2024-13-01'", "YYYY-MM-DD"),
        ("twice = 2", "twice", "generated"),
        ("LOWER(v) = 'x'", "LOWER(v)", "without case"),
        ("v REGEXP 'x'", "REGEXP 'x'", "operators and functions"),
        ("at > NOW()", "NOW()", "fixed date"),
        ("(SELECT 1)", "SELECT 1)", "not expected"),
        ("id = @x", "@x", "session"),
        ("v", "v", "no condition"),
        ("(" * 100 + "id" + ")" * 100, None, "nested"),
    ],
)
def test_what_is_refused_at_the_start(expression: str, part: str | None, why: str | None) -> None:
    if not expression:
        with pytest.raises(ValueError, match="one kind"):
            made(insert_value_expr=expression)
        return
    with pytest.raises(ConfigError) as caught:
        made(insert_value_expr=expression)
    assert caught.value.code == "CONFIG-020"
    assert why is not None
    assert why in caught.value.cause
    assert part is None or caught.value.values["part"] == part
    assert expression in caught.value.message


def test_the_page_shows_what_a_refused_rule_says() -> None:
    total = Column("total", "decimal", "decimal(10,2)", precision=10, scale=2)
    rule = ExpressionFilterRule(schema="shop", table="orders", delete_value_expr="total / 2 > 50")
    with pytest.raises(ConfigError) as caught:
        ExpressionFilters({"kept": rule}, False, str).of_table(Table(TableName("shop", "orders"), (total,)))
    page = Path(__file__).parents[2] / "docs" / "how-to" / "leave-out-rows.md"
    assert f"```text\n{caught.value.at(source='shop-01')}\n```" in page.read_text(encoding="utf-8")


def test_a_column_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="CONFIG-021") as caught:
        made(insert_value_expr="id = 1 OR nosuch = 2")
    assert "`nosuch`" not in caught.value.hint
    assert "nosuch" in str(caught.value)


def test_a_local_time_becomes_utc_by_the_source() -> None:
    rule = ExpressionFilterRule(schema="s", table="t", insert_value_expr="at > '2024-05-01 08:00:00'")
    (found,) = ExpressionFilters({"r": rule}, False, lambda local: "2024-05-01 00:00:00").of_table(TABLE)
    assert found.moments == (("2024-05-01 08:00:00", "2024-05-01 00:00:00"),)
    with pytest.raises(ConfigError, match="CONFIG-020") as caught:
        ExpressionFilters({"r": rule}, False, lambda local: None).of_table(TABLE)
    assert "no moment, or two" in caught.value.cause


def test_an_image_without_the_column_stops_the_batch() -> None:
    rule = made(delete_value_expr="v = 'draft'")
    with pytest.raises(SyncError, match="SYNC-019"):
        rule.dropped(TABLE, images((Op.DELETE, 1, None)), frozenset({"v"}))
    assert not rule.dropped(TABLE, images((Op.INSERT, 1, None)), frozenset({"v"})).any()


def test_a_rule_is_for_its_table_alone() -> None:
    rules = {"r": ExpressionFilterRule(schema="S", table="T", insert_value_expr="TRUE")}
    assert len(ExpressionFilters(rules, False, str).of_table(TABLE)) == 1
    assert ExpressionFilters(rules, True, str).of_table(TABLE) == ()
