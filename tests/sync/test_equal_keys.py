"""Keys of different texts that the target may take for one: they have one hash, and a row that moves is seen."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from unshard.model.change import IMAGE_FIELDS
from unshard.model.table import Column, Table, TableName
from unshard.mysql.collation_weights import weights
from unshard.mysql.tidb_collations import SAMPLE
from unshard.sync.batch.plan import TablePlan, TargetPlan
from unshard.sync.sharding.equal_keys import coarse_hashes, compared_otherwise
from unshard.sync.sharding.left_out_moves import SharedChange, unsure
from unshard.sync.sharding.move_outcomes import KeyChange, When
from unshard.testing.mariadb_server import MariadbServer
from unshard.transform.expressions.texts import coarse

A, B = TableName("up", "t_a"), TableName("up", "t_b")
AHEAD, NOW, LATER = When.AHEAD, When.NOW, When.LATER
COLLATIONS = (
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_unicode_520_ci",
    "utf8mb4_swedish_ci",
    "utf8mb4_bin",
    "utf8mb4_general_nopad_ci",
    "utf8mb4_uca1400_ai_ci",
    "utf8mb4_uca1400_as_cs",
    "latin1_swedish_ci",
    "latin1_german2_ci",
)


def key(kind: str, definition: str, **more: Any) -> Column:
    return Column("k", kind, definition, nullable=False, **more)


def text(collation: str, kind: str = "varchar") -> Column:
    return key(kind, f"{kind}(20)", charset=collation.partition("_")[0], collation=collation)


def hashes(here: Column, there: Column, values: pa.Array) -> list[int]:
    plan = TablePlan(Table(A, (here,)), TargetPlan(0, A, ("k",), ("k",)))
    numbers = [pa.array([0] * len(values), kind.type) for kind in IMAGE_FIELDS]
    images = pa.RecordBatch.from_arrays([*numbers, values], [*(kind.name for kind in IMAGE_FIELDS), "k"])
    found: list[int] = coarse_hashes(plan, images, [there]).tolist()
    return found


GENERAL, BINARY = text("utf8mb4_general_ci"), text("utf8mb4_bin")
DECIMAL = key("decimal", "decimal(9,2)")
DOUBLE = key("double", "double")
FIXED = key("binary", "binary(4)")


@pytest.mark.parametrize(
    ("there", "equal", "apart"),
    [
        (GENERAL, ["abc", "ABC ", "\u00c4bc"], ["abd", "a bc"]),
        (GENERAL, ["\u0436", "\u0451"], ["e"]),
        (text("utf8mb4_hungarian_ci"), ["ccs", "cscs", "\u0436"], []),
        (BINARY, ["abc", "abc  "], ["ABC", "\u00e4bc"]),
        (DECIMAL, ["1.00", "1.0", "1"], ["10", "1.01", "100.00"]),
        (
            key("datetime", "datetime(3)"),
            ["2026-01-01 10:00:00.120", "2026-01-01 10:00:00.12"],
            ["2026-01-01 10:00:00"],
        ),
    ],
)
def test_texts_that_may_be_equal_have_one_hash(there: Column, equal: list[str], apart: list[str]) -> None:
    assert compared_otherwise([there])
    found = hashes(there, there, pa.array([*equal, *apart], pa.string()))
    assert len(set(found[: len(equal)])) == 1
    assert not set(found[len(equal) :]) & {found[0]}


def test_numbers_and_bytes_that_may_be_equal_have_one_hash() -> None:
    narrow, wide = pa.array([0.0, -0.0, 0.1], pa.float32()), pa.array([0.0, -0.0, 0.1, 1e300], pa.float64())
    one, other = hashes(DOUBLE, DOUBLE, narrow), hashes(DOUBLE, DOUBLE, wide)
    assert one == other[:3]
    assert (one[0] == one[1], len({*other})) == (True, 3)
    first, second, third = hashes(FIXED, FIXED, pa.array([b"ab\0\0", b"ab", b"\xffb"], pa.binary()))
    assert (first == second, first == third) == (True, False)
    assert not compared_otherwise([key("bigint", "bigint(20)"), key("varbinary", "varbinary(9)")])


@pytest.mark.server
@pytest.mark.parametrize("collation", COLLATIONS)
def test_what_a_server_takes_for_equal_has_one_form(collation: str, target_server: MariadbServer) -> None:
    connection = target_server.connection()
    known = weights(connection, collation, collation.partition("_")[0])
    connection.close()
    forms = coarse(pa.array(SAMPLE, pa.string()), collation)
    if forms is None:  # all values are equal then
        return
    groups: dict[bytes, set[str]] = {}
    for sample, form in zip(SAMPLE, forms.to_pylist(), strict=True):
        if sample in known:
            groups.setdefault(known[sample], set()).add(form)
    assert {weight: found for weight, found in groups.items() if len(found) > 1} == {}


def test_an_unknown_collation_has_no_form() -> None:
    assert coarse(pa.array(["a"]), "utf8mb4_hungarian_ci") is None


def change(order: int, table: TableName, op: str, when: When = NOW) -> SharedChange:
    one = KeyChange(order, table, op == "INSERT", op != "DELETE", when)
    return SharedChange(one, (table, "bin.000001", 100 + order), 0, half=False)


@pytest.mark.parametrize(
    ("changes", "orders"),
    [
        ([(b"ABC", change(0, B, "INSERT", AHEAD)), (b"abc", change(1, A, "DELETE"))], [1]),
        ([(b"abc", change(0, A, "DELETE")), (b"ABC", change(1, B, "INSERT", AHEAD))], [0]),
        (
            [
                (b"ABC", change(0, B, "INSERT", AHEAD)),
                (b"abc", change(1, A, "UPDATE")),
                (b"abc", change(2, A, "DELETE", LATER)),
            ],
            [1],
        ),
        ([(b"ABC", change(0, B, "INSERT")), (b"abc", change(1, A, "DELETE"))], [1]),
        ([(b"abc", change(0, A, "DELETE")), (b"ABC", change(1, B, "INSERT"))], []),
        ([(b"ABC", change(0, B, "INSERT", LATER)), (b"abc", change(1, A, "DELETE"))], []),
        ([(b"ABC", change(0, B, "INSERT", AHEAD)), (b"abc", change(1, A, "UPDATE"))], []),
        ([(b"abc", change(0, B, "INSERT", AHEAD)), (b"abc", change(1, A, "DELETE"))], []),
        ([(b"ABC", change(0, A, "INSERT")), (b"abc", change(1, A, "DELETE"))], []),
        (
            [
                (b"ABC", change(0, B, "INSERT", AHEAD)),
                (b"abc", change(1, A, "DELETE")),
                (b"ABC", change(2, B, "DELETE", AHEAD)),
            ],
            [],
        ),
    ],
)
def test_a_change_that_may_remove_a_row_of_another_shard(
    changes: list[tuple[bytes, SharedChange]], orders: list[int]
) -> None:
    assert [one.change.change.order for one in unsure(changes)] == orders
