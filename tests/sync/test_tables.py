"""How a target table is written: its key, its order, and what doesn't fit."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from unshard.config.rules import ExtractTable, RouteRule
from unshard.errors import ConfigError, ShardError, SyncError, Where
from unshard.model.position import Position
from unshard.model.table import Column, Index, Table, TableName
from unshard.sync.batch.plan import TablePlan
from unshard.sync.batch.stored_plan import digest
from unshard.sync.changes.encode import keys_of
from unshard.sync.changes.map import mapped
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.planning.target_plan import plan_target
from unshard.sync.planning.target_tables import TargetTables
from unshard.transform.block_allow import BlockAllowList
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.extract import Constant, append_constants
from unshard.transform.route import Router

ID = Column("id", "bigint", "bigint(20)", nullable=False, has_default=False)
CODE = Column("code", "varchar", "varchar(9)", nullable=False, charset="utf8mb4", collation="utf8mb4_bin", length=9)
RAW = Column("raw", "varbinary", "varbinary(9)", nullable=False, length=9)
RATIO = Column("ratio", "double", "double", nullable=False)
KIND = Column("kind", "enum", "enum('a','b')", nullable=False, collation="utf8mb4_general_ci", members=("a", "b"))
COLUMNS = (ID, CODE, RAW, RATIO, KIND)


def table(*keys: tuple[str, ...], columns: tuple[Column, ...] = COLUMNS, prefix: int = 0) -> Table:
    names = ("PRIMARY", *(f"u{n}" for n in range(1, len(keys))))
    indexes = [Index(name, key, (prefix,) * len(key), unique=True) for name, key in zip(names, keys, strict=False)]
    return Table(TableName("d", "t"), columns, tuple(indexes))


@pytest.mark.parametrize(
    ("keys", "key", "forms"),
    [
        ([("id",)], ("id",), ()),
        ([("id", "raw")], ("id", "raw"), ()),
        ([("kind",)], ("kind",), ()),
        ([("code",)], ("code",), (("trimmed",),)),
        ([("ratio",)], ("ratio",), (("exact",),)),
        ([("id",), ("raw",)], ("id",), (("exact",), ("exact",))),
        ([], ("id", "code", "raw", "ratio", "kind"), ()),
    ],
)
def test_key_and_ties(keys: list[tuple[str, ...]], key: tuple[str, ...], forms: tuple[tuple[str, ...], ...]) -> None:
    plan = plan_target(table(), table(*keys), Where())
    assert (plan.key, plan.ordered, plan.keyless) == (key, not keys, not keys)
    assert tuple(tie.forms for tie in plan.ties) == forms


def test_spans_that_must_not_overlap_keep_their_order() -> None:
    """Rows of other key values may not be there at the same time, so the one key doesn't tell what may pass what."""
    spans = replace(table(("id",)), create_sql="PRIMARY KEY (`id`,`p` WITHOUT OVERLAPS)")
    plan = plan_target(table(), spans, Where())
    assert plan.ordered
    assert "WITHOUT OVERLAPS" in plan.why


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ([("id",)], "it has one unique key, whose values are equal just where their texts are"),
        ([("id",), ("raw",), ("code",)], "rows that may share a value of PRIMARY, u1 or u2 keep their order"),
        ([("ratio",)], "rows that may share a value of PRIMARY keep their order"),
        ([], "it has no PRIMARY KEY and no UNIQUE key of NOT NULL columns, so all of its changes keep their order"),
    ],
)
def test_a_plan_says_why(keys: list[tuple[str, ...]], why: str) -> None:
    assert plan_target(table(), table(*keys), Where()).why.startswith(why)


@pytest.mark.parametrize(
    "column",
    [
        replace(CODE, collation="utf8mb4_hungarian_ci"),
        replace(CODE, collation="utf8mb4_lt_0900_ai_ci"),
        replace(CODE, name="other", generated=True),
        replace(CODE, name="other", has_default=True),
    ],
    ids=["hungarian", "lithuanian", "generated", "of the target alone"],
)
def test_a_key_whose_values_cannot_be_compared_keeps_the_whole_table_in_order(column: Column) -> None:
    others = [column] if column.name == "other" else []
    plan = plan_target(
        table(("id",)),
        table(("id",), (column.name,), columns=(ID, *COLUMNS[2:], CODE if column.name == "other" else column, *others)),
        Where(),
    )
    assert plan.ordered
    assert not plan.ties


def test_a_prefix_names_no_row() -> None:
    assert plan_target(table(), table(("raw",), prefix=4), Where()).keyless


def test_a_key_that_the_target_made_up_is_its_own() -> None:
    made = Column("my_row_id", "bigint", "bigint unsigned", False, auto_increment=True, invisible=True)
    target = table(("my_row_id",), columns=(made, *COLUMNS))
    plan = plan_target(table(), target, Where())
    assert plan.keyless
    assert "my_row_id" not in plan.columns
    assert plan_target(target, target, Where()).key == ("my_row_id",)


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        (table(("id",), columns=COLUMNS[:-1]), "kind"),
        (table(("id",), columns=(*COLUMNS, replace(ID, name="extra"))), "extra"),
        (table(("id",), columns=(replace(ID, type="varchar"), *COLUMNS[1:])), "id"),
        (table(("more",), columns=(*COLUMNS, replace(ID, name="more", has_default=True))), "more"),
    ],
    ids=["missing", "without default", "other kind", "key not in the source"],
)
def test_what_does_not_fit_is_named(target: Table, fault: str) -> None:
    with pytest.raises(SyncError, match="SYNC-007") as caught:
        plan_target(table(("id",)), target, Where(source="s", table="d.t"))
    assert fault in caught.value.cause


def test_generated_columns_are_left_to_the_target() -> None:
    sums = Column("sums", "int", "int(11)", generated=True)
    upstream = table(("id",), columns=(*COLUMNS, sums))
    assert "sums" not in plan_target(upstream, upstream, Where()).columns


def test_a_statement_drops_what_is_known_of_its_tables_and_of_those_that_share_their_targets() -> None:
    read: list[TableName] = []

    def of_target(name: TableName) -> Table:
        read.append(name)
        return replace(table(("id",)), name=name)

    shards = [TableName("d", name) for name in ("shard_1", "shard_2", "alone")]
    route = RouteRule(schema_pattern="d", table_pattern="shard_*", target_schema="d", target_table="all")
    structure = table(("id",))
    rules = TableRules(
        "s1",
        BlockAllowList(),
        Router({"shards": route}),
        ColumnMapper({}),
        lambda name: replace(structure, name=name),
        TargetTables(of_target),
        {},
    )
    before = {plan.table.name: plan for plan in rules.plans(shards, Position("b.000001"))}
    rules.forget([shards[0]])
    after = {plan.table.name: plan for plan in rules.plans(shards, Position("b.000001"))}
    assert read == [TableName("d", "alone"), TableName("d", "all"), TableName("d", "all")]
    assert after == before


def test_extracted_columns_are_part_of_the_targets_keys_and_of_the_plan() -> None:
    source = replace(table(("id",), columns=(ID,)), name=TableName("d", "shard_1"))
    shard = Column("shard", "varchar", "varchar(9)", False, "utf8mb4", "utf8mb4_general_ci", length=9)
    keyed = Index("PRIMARY", ("id", "shard"), (0, 0), unique=True)
    target = replace(source, name=TableName("d", "all"), columns=(*source.columns, shard), indexes=(keyed,))
    extraction = ExtractTable(table_regexp="shard_(.*)", target_column="SHARD")
    route = RouteRule(
        schema_pattern="d",
        table_pattern="shard_*",
        target_schema="d",
        target_table="all",
        extract_table=extraction,
    )

    def plans(there: Table, second: str = "shard_2") -> tuple[TablePlan, ...]:
        structures = {name: replace(source, name=name) for name in (source.name, TableName("d", second))}
        rules = TableRules(
            "s1",
            BlockAllowList(),
            Router({"r": route}),
            ColumnMapper({}),
            structures.__getitem__,
            TargetTables(lambda name: there),
            {},
        )
        return rules.plans(structures, Position("b.000001"))

    one, other = plans(target)
    assert (one.target.key, one.target.columns[-1]) == (("id", "shard"), "shard")
    assert not one.target.ties  # digits are equal in no collation
    assert not one.target.ordered
    assert [plan.target.ordered for plan in plans(target, "shard_A")] == [True, True]
    assert [constant.value for constant in one.constants + other.constants] == ["1", "2"]
    assert digest(one) != digest(replace(one, constants=other.constants))
    wider = plans(replace(target, columns=(*source.columns, replace(shard, definition="varchar(20)", length=20))))[0]
    assert digest(one) == digest(wider)
    rest = pa.record_batch({"op": pa.array([1], pa.int8()), "seq": pa.array([0]), "id": pa.array([5])})
    images = append_constants(rest, one.constants)
    assert keys_of(mapped(one), images).to_pylist() == [b"(`id`=5 AND `shard`='1') OR "]
    with pytest.raises(ConfigError, match="CONFIG-017"):
        plans(replace(target, columns=source.columns, indexes=source.indexes))


def test_shards_that_write_the_values_of_a_key_with_different_digits_keep_their_order() -> None:
    fine = Column("id", "decimal", "decimal(9,3)", nullable=False, precision=9, scale=3)
    coarse = replace(fine, definition="decimal(9,1)", scale=1)
    target = replace(table(("id",), columns=(fine,)), name=TableName("d", "all"))

    def ordered(*columns: Column) -> list[bool]:
        names = [TableName("d", f"s{number}") for number in range(len(columns))]
        structures = {
            name: replace(target, name=name, columns=(column,)) for name, column in zip(names, columns, strict=True)
        }
        route = RouteRule(schema_pattern="d", table_pattern="s*", target_schema="d", target_table="all")
        rules = TableRules(
            "s1",
            BlockAllowList(),
            Router({"r": route}),
            ColumnMapper({}),
            structures.__getitem__,
            TargetTables(lambda name: target),
            {},
        )
        return [plan.target.ordered for plan in rules.plans(names, Position("b.000001"))]

    assert ordered(fine, fine) == [False, False]
    assert ordered(fine, coarse) == [True, True]


NOTE = Column("note", "varchar", "varchar(9)", charset="utf8mb4", collation="utf8mb4_bin", length=9)


def merged_plans(
    structures: dict[str, tuple[Column, ...]], *keys: tuple[str, ...], fills: bool = False
) -> tuple[TablePlan, ...]:
    """The plans of shards with these columns, whose target has all of `ID, RATIO, NOTE`."""
    shards = {TableName("d", name): table(columns=columns) for name, columns in structures.items()}
    route = RouteRule(schema_pattern="d", table_pattern="s*", target_schema="d", target_table="all")
    rules = TableRules(
        "s1",
        BlockAllowList(),
        Router({"r": route}),
        ColumnMapper({}),
        lambda name: replace(shards[name], name=name),
        TargetTables(lambda name: replace(table(*keys, columns=(ID, RATIO, NOTE)), name=name)),
        {},
    )
    if fills:
        rules.fills = lambda one: ((Constant(NOTE, "x"),) if "note" not in {c.name for c in one.columns} else (), one)
    return rules.plans(shards, Position("b.000001"))


def test_shards_with_columns_in_another_order_share_statements_in_one_order() -> None:
    plans = merged_plans({"s1": (ID, RATIO, NOTE), "s2": (NOTE, ID, RATIO)}, ("id",))
    assert [plan.target.columns for plan in plans] == [("id", "ratio", "note")] * 2


def test_shards_that_lack_a_column_write_its_rule_or_are_refused() -> None:
    structures = {"s1": (ID, NOTE, RATIO), "s2": (ID, RATIO)}
    with pytest.raises(ShardError, match=r"SHARD-049.*note"):
        merged_plans(structures, ("id",))
    plans = merged_plans(structures, ("id",), fills=True)
    assert [plan.target.columns for plan in plans] == [("id", "note", "ratio")] * 2
    assert plans[1].constants[0].value == "x"
    with pytest.raises(ShardError, match=r"SHARD-048.*note"):
        merged_plans(structures, fills=True)
