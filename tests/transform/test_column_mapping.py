"""Column mapping: the bits of `partition id`, texts added, the limits, and what doesn't fit."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.config.rules import ColumnMappingRule
from unshard.errors import ConfigError
from unshard.model.table import Column, Table, TableName
from unshard.transform.column_mapper import ColumnMapper, SourcePart
from unshard.transform.column_mapping import ID_LIMIT, ColumnMapping, apply_mapping

TABLE = TableName("schema_2", "table_3")


def rule(arguments: list[str], **keys: Any) -> ColumnMappingRule:
    given = {"schema-pattern": "*", "table-pattern": "*", "expression": "partition id"}
    columns = {"source-column": "id", "target-column": "id"}
    return ColumnMappingRule.model_validate({**given, **columns, "arguments": arguments, **keys})


def bits(arguments: list[str], table: TableName = TABLE, case_sensitive: bool = False) -> int:
    mapping = ColumnMapper({"m": rule(arguments)}, case_sensitive).mapping_for(table)
    assert mapping is not None
    return mapping.source_bits


def mapped(values: list[int | None], kind: pa.DataType, mapping: ColumnMapping) -> list[int | None]:
    batch = pa.record_batch({"id": pa.array(values, kind)})
    result = apply_mapping(batch, mapping)
    assert result.schema == batch.schema
    return list(result.column(0).to_pylist())


def to(source_bits: int, source: str = "id", target: str = "id") -> ColumnMapping:
    return ColumnMapping("m", TABLE, source, target, source_bits)


def test_worked_example_with_all_parts() -> None:
    value = bits(["1", "schema_", "table_"])
    assert value == 1 << (64 - 1 - 4) | 2 << (64 - 1 - 4 - 7) | 3 << (64 - 1 - 4 - 7 - 8)
    assert mapped([123], pa.int64(), to(value)) == [value | 123] == [585520728116297851]


def test_worked_example_with_an_empty_part_that_takes_no_bits() -> None:
    value = bits(["1", "", "table_"])
    assert value == 1 << (64 - 1 - 4) | 3 << (64 - 1 - 4 - 8)
    assert mapped([123], pa.int64(), to(value)) == [value | 123]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["", "schema_", "table_"], 2 << 56 | 3 << 48),
        (["", "", "table_"], 3 << 55),
        (["", "schema_", ""], 2 << 56),
        (["5", "", ""], 5 << 59),
        (["5", "schema_", ""], 5 << 59 | 2 << 52),
        (["0", "schema_", ""], 2 << 52),
        (["1", "schema", "table", "_"], 1 << 59 | 2 << 52 | 3 << 44),
        (["1", "", "table", "_"], 1 << 59 | 3 << 51),
        (["15", "", "", "_"], 15 << 59),
    ],
)
def test_each_part_and_the_separator(arguments: list[str], expected: int) -> None:
    assert bits(arguments) == expected


def test_the_largest_of_everything_fills_all_but_the_sign() -> None:
    value = bits(["15", "s", "t"], TableName("s127", "t255"))
    assert mapped([ID_LIMIT], pa.int64(), to(value)) == [(1 << 63) - 1]


@given(
    st.tuples(st.integers(0, 15), st.integers(0, 127), st.integers(0, 255), st.integers(0, ID_LIMIT)),
    st.tuples(st.integers(0, 15), st.integers(0, 127), st.integers(0, 255), st.integers(0, ID_LIMIT)),
)
def test_ids_of_different_rows_stay_different(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    def of(instance: int, schema: int, table: int, row: int) -> int | None:
        value = bits([str(instance), "s_", "t_"], TableName(f"s_{schema}", f"t_{table}"))
        return mapped([row], pa.int64(), to(value))[0]

    assert (of(*one) == of(*other)) == (one == other)


def test_a_name_that_is_the_prefix_itself_has_number_zero() -> None:
    assert bits(["", "schema_", "order"], TableName("Schema_", "order")) == 0
    assert bits(["1", "schema", "order", "_"], TableName("schema_3", "ORDER")) == 1 << 59 | 3 << 52
    with pytest.raises(ConfigError, match="CONFIG-007"):
        bits(["1", "schema", "order", "_"], TableName("schema_3", "ORDER"), case_sensitive=True)


def test_leading_zeros_and_case() -> None:
    assert bits(["", "schema_", ""], TableName("Schema_007", "t")) == 7 << 56
    with pytest.raises(ConfigError, match="is not `schema_` and a number"):
        bits(["", "schema_", ""], TableName("Schema_007", "t"), case_sensitive=True)


@pytest.mark.parametrize(
    ("arguments", "table", "part"),
    [
        (["1", "shop_", ""], TABLE, "schema name `schema_2` is not `shop_` and a number"),
        (["1", "", "table_"], TableName("a", "table_x"), "table name `table_x` is not `table_`"),
        (["1", "", "table"], TableName("a", "table_3"), "table name `table_3` is not `table`"),
        (["1", "", "table", "_"], TableName("a", "table3"), "table name `table3` is not `table_`"),
        (["1", "", "table_"], TableName("a", "table_+3"), "table name `table_+3`"),
        (["1", "", "table_"], TableName("a", "table_²"), "table name `table_²`"),
    ],
)
def test_a_name_that_is_not_prefix_and_number_is_refused(arguments: list[str], table: TableName, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bits(arguments, table)
    assert (caught.value.code, caught.value.where.table) == ("CONFIG-007", str(table))
    assert f"column mapping m: the {part}" in caught.value.message


@pytest.mark.parametrize(
    ("table", "text", "mended"),
    [
        (TableName("s128", "t0"), "the schema number 128 of `s128` is greater than 127", ["1", "", "t"]),
        (TableName("s0", "t256"), "the table number 256 of `t256` is greater than 255", ["1", "s", ""]),
    ],
)
def test_a_number_that_its_bits_do_not_hold_is_refused(table: TableName, text: str, mended: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        bits(["1", "s", "t"], table)
    assert "leave that part out with an empty argument" in caught.value.hint
    bits(mended, table)
    assert (caught.value.code, caught.value.where.table) == ("CONFIG-008", str(table))
    assert text in caught.value.message


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_null_stays_null_and_the_type_stays(kind: pa.DataType) -> None:
    assert mapped([None, 0, 7, None], kind, to(1 << 59)) == [None, 1 << 59, 1 << 59 | 7, None]
    assert mapped([None], kind, to(1 << 59)) == [None]
    assert mapped([], kind, to(1 << 59)) == []


@pytest.mark.parametrize(
    ("values", "kind", "bad"),
    [
        ([1, None, 1 << 44, -1], pa.int64(), 1 << 44),
        ([1, -1, 1 << 44], pa.int64(), -1),
        ([-(1 << 63)], pa.int64(), -(1 << 63)),
        ([ID_LIMIT, (1 << 64) - 1], pa.uint64(), (1 << 64) - 1),
    ],
)
@pytest.mark.parametrize("source_bits", [1 << 59, 3 << 55])
def test_an_id_out_of_range_is_refused_with_its_value(
    values: list[int | None], kind: pa.DataType, bad: int, source_bits: int
) -> None:
    with pytest.raises(ConfigError) as caught:
        mapped(values, kind, to(source_bits))
    assert (caught.value.code, caught.value.where.table) == ("CONFIG-009", "schema_2.table_3")
    assert f"column mapping m: id = {bad} is outside 0 … {ID_LIMIT}" in caught.value.message


def test_another_column_can_be_the_target() -> None:
    batch = pa.record_batch(
        {"op": pa.array([1], pa.int8()), "ID": pa.array([5], pa.int64()), "key": pa.array([0], pa.uint64())}
    )
    result = apply_mapping(batch, to(1 << 59, "id", "KEY"))
    assert result.to_pydict() == {"op": [1], "ID": [5], "key": [1 << 59 | 5]}
    assert result.schema == batch.schema


def test_a_column_of_the_table_is_found_behind_the_image_columns_of_its_name() -> None:
    columns = [pa.array([1], pa.int64()), pa.array([5], pa.int64())]
    batch = pa.RecordBatch.from_arrays(columns, names=["seq", "seq"])
    result = apply_mapping(batch, to(1 << 59, "seq", "seq"))
    assert [column.to_pylist() for column in result.columns] == [[1], [1 << 59 | 5]]


def test_slices_are_mapped_by_their_own_rows() -> None:
    batch = pa.record_batch({"id": pa.array([-1, 2, None, -1], pa.int64())}).slice(1, 2)
    assert apply_mapping(batch, to(1 << 59)).column(0).to_pylist() == [1 << 59 | 2, None]


@pytest.mark.parametrize(
    ("column", "fault"),
    [("nr", "is not in the table"), ("text", "is not of integers (it is string here)"), ("f", "(it is double here)")],
)
def test_a_column_that_is_missing_or_no_integer_is_refused(column: str, fault: str) -> None:
    batch = pa.record_batch({"id": pa.array([1]), "text": pa.array(["1"]), "f": pa.array([1.0])})
    for mapping in (to(1, column, "id"), to(1, "id", column)):
        with pytest.raises(ConfigError) as caught:
            apply_mapping(batch, mapping)
        assert caught.value.code == "CONFIG-010"
        assert f"column {column} " in caught.value.message
        assert fault in caught.value.message


def test_table_rules_come_before_schema_rules_and_two_of_a_level_are_refused() -> None:
    rules = {
        "t": rule(["1", "", ""], **{"schema-pattern": "s_1", "table-pattern": "a?"}),
        "u": rule(["2", "", ""], **{"schema-pattern": "s_1", "table-pattern": "?b"}),
        "s": rule(["3", "", ""], **{"schema-pattern": "s_*", "table-pattern": None}),
    }
    mapper = pickle.loads(pickle.dumps(ColumnMapper(rules)))

    def chosen(schema: str, table: str) -> str | None:
        mapping = mapper.mapping_for(TableName(schema, table))
        return mapping.rule if mapping else None

    assert (chosen("s_1", "ax"), chosen("s_1", "xb"), chosen("s_1", "x"), chosen("t", "x")) == ("t", "u", "s", None)
    with pytest.raises(ConfigError, match=r"s_1\.ab matches more than one rule of `column-mappings`: t, u"):
        chosen("s_1", "ab")


VARCHAR = Column("v", "varchar", "varchar(6)", charset="utf8mb4", collation="utf8mb4_bin", length=6)
TEXT = replace(VARCHAR, type="text", definition="text")
IDS = (Column("id", "bigint", "bigint(20)"), Column("n", "int", "int(11)"))
SOURCE = Table(TABLE, (*IDS, VARCHAR, replace(VARCHAR, name="w")))


def joining(expression: str, text: str, source: str = "v", target: str = "V") -> ColumnMapping:
    keys = {"expression": expression, "source-column": source, "target-column": target}
    found = ColumnMapper({"m": rule([text], **keys)}).mapping_for(TABLE)
    assert found is not None
    return found


def joined(values: list[str | None], mapping: ColumnMapping) -> Any:
    return apply_mapping(pa.record_batch({"v": pa.array(values, pa.string())}), mapping).column(0).to_pylist()


@given(st.lists(st.none() | st.text()), st.text(min_size=1))
def test_a_text_is_added_before_or_behind_and_null_stays(values: list[str | None], added: str) -> None:
    assert joined(values, joining("add prefix", added)) == [None if v is None else added + v for v in values]
    assert joined(values, joining("add suffix", added)) == [None if v is None else v + added for v in values]


def test_a_text_can_go_to_another_column() -> None:
    batch = pa.record_batch({"v": pa.array(["a", None]), "w": pa.array(["x", "y"])})
    mapping = joining("add prefix", "n-", "v", "w")
    assert apply_mapping(batch, mapping).to_pydict() == {"v": ["a", None], "w": ["n-a", None]}


def test_a_text_that_gets_too_long_for_the_targets_column_is_refused() -> None:
    mapping = joining("add prefix", "ä-").settled(SOURCE, Table(TABLE, (VARCHAR,)))
    assert joined(["äöüß", None], mapping) == ["ä-äöüß", None]
    with pytest.raises(ConfigError) as caught:
        joined([None, "äöüß", "äöüßx"], mapping)
    assert (caught.value.code, caught.value.where.table) == ("CONFIG-018", str(TABLE))
    assert "v = äöüßx becomes longer than the 6 characters of the target's column V" in caught.value.message
    in_bytes = joining("add suffix", "-").settled(SOURCE, Table(TABLE, (TEXT,)))
    assert joined(["äö1"], in_bytes) == ["äö1-"]
    with pytest.raises(ConfigError, match=r"CONFIG-018(.|\n)* 6 bytes"):
        joined(["äöü"], in_bytes)
    other = joining("add suffix", "-").settled(SOURCE, Table(TABLE, (replace(TEXT, charset="latin1"),)))
    assert joined(["äöü"], other) == ["äöü-"]


@pytest.mark.parametrize(
    ("mapping", "target", "fault"),
    [
        (joining("add prefix", "a", "id"), VARCHAR, "column id is not of text (it is bigint(20))"),
        (joining("add prefix", "a", "v", "zz"), VARCHAR, "column zz is not in the table"),
        (joining("add prefix", "a"), replace(VARCHAR, name="x"), "column V is not in the target's table"),
        (to(1 << 59, "v", "id"), IDS[0], "column v is not of integers (it is varchar(6))"),
        (to(1 << 59, "n", "n"), IDS[1], "column n is int(11) in the target; make it BIGINT there"),
    ],
)
def test_columns_are_held_against_both_tables(mapping: ColumnMapping, target: Column, fault: str) -> None:
    with pytest.raises(ConfigError) as caught:
        mapping.settled(SOURCE, Table(TABLE, (target,)))
    assert caught.value.code == "CONFIG-010"
    assert fault in caught.value.message
    assert ("a text column" if mapping.of_text else "an integer column") in caught.value.hint


def test_a_binary_column_takes_no_text() -> None:
    binary = replace(VARCHAR, charset="binary", collation="binary")
    with pytest.raises(ConfigError, match="CONFIG-010"):
        joining("add prefix", "a").settled(Table(TABLE, (binary,)), Table(TABLE, (VARCHAR,)))
    with pytest.raises(ConfigError, match="is not of text"):
        apply_mapping(pa.record_batch({"v": pa.array([b"a"])}), joining("add prefix", "a"))


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["1", "schema_", "table_"], (("instance", 4, 1, 59), ("schema", 7, 2, 52), ("table", 8, 3, 44))),
        (["", "", "table", "_"], (("table", 8, 3, 55),)),
        (["9", "", ""], (("instance", 4, 9, 59),)),
    ],
)
def test_the_bits_say_what_they_are_of(arguments: list[str], parts: tuple[tuple[Any, ...], ...]) -> None:
    found = ColumnMapper({"m": rule(arguments)}).source_parts("m", TABLE)
    assert found == tuple(SourcePart(*part) for part in parts)
    assert bits(arguments) == sum(part.number << part.shift for part in found)
