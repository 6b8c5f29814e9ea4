"""One value of each kind that is stored in a target or a dump, with all of its fields set."""

from __future__ import annotations

from unshard.ddl.context import Context
from unshard.ddl.intent import Again, Intent, Step
from unshard.ddl.online import Kept
from unshard.ddl.statement import StatementKind
from unshard.dump.metadata import DumpedFile, Record
from unshard.errors import Where
from unshard.model.change import Op
from unshard.model.position import Location, Position
from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.shard.gone import Gone
from unshard.shard.group import TableState
from unshard.shard.lock_keeper import Lock, LockKeeper, LockMember
from unshard.shard.sequence import DdlItem, ShardingSequence
from unshard.sync.batch.excluded_changes import MOVED, ExclusionEpoch, LeftOutRows
from unshard.sync.batch.plan import BatchPlan, BatchShape, ConflictKey, Range, TablePlan, TargetPlan
from unshard.sync.statements.plan_record import StatementPlan
from unshard.sync.statements.uncoordinated import Passing
from unshard.target.meta import MetaTables
from unshard.target.receipts import OpenBatch
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.expressions.filter import ExpressionFilter
from unshard.transform.extract import Constant
from unshard.transform.row_filter import EventRowFilter

ORDERS, MERGED = TableName("shop_01", "orders_1"), TableName("shop", "orders")
AT, LATER = (Location(Position("bin.000003", at), f"0-1-{at}") for at in (400, 900))
TABLE = Table(
    ORDERS,
    (
        Column("id", "bigint", "bigint(20) unsigned", nullable=False, precision=20, auto_increment=True),
        Column("kind", "enum", "enum('a','b')", charset="latin1", collation="latin1_bin", length=1, members=("a", "b")),
        Column("paid", "decimal", "decimal(9,2)", precision=9, scale=2, generated=True, invisible=True),
        Column("until", "timestamp", "timestamp(6)", fsp=6, has_default=False, period="end"),
    ),
    (Index("PRIMARY", ("id",), (0,), True), Index("kind", ("kind", "paid"), (1, 0), False)),
    "CREATE TABLE `orders_1` (...)",
    True,
)
CONTEXT = Context(
    "shop_01",
    1436549152,
    1700000000.25,
    "+02:00",
    45,
    8,
    True,
    True,
    False,
    True,
    Where("one", "shop_01.orders_1", "bin.000003:400", "bin.000003"),
    (255,),
    True,
    (2, 1),
)
STEP = Step(
    "ALTER TABLE `shop`.`orders` ADD COLUMN c INT",
    StatementKind.ALTER_TABLE,
    Again.HARMLESS,
    {"`shop`.`orders`": "CREATE TABLE `orders` (id INT)"},
    {"`shop`.`orders`": "CREATE TABLE `orders` (id INT, c INT)", "`shop`.`gone`": None},
    CONTEXT,
    "w0rd",
)
INTENT = Intent("bin.000003:400", "bin.000003:900", CONTEXT, (STEP,), 1)
ITEM = DdlItem(AT, LATER, (STEP.statement,), {"why": "kept"}, "2026-01-02T03:04:05Z")
GHOST = TableName("shop_01", "_orders_1_gho")
STATEMENT = StatementPlan(
    INTENT,
    LATER,
    {ORDERS: TABLE, TableName("shop_01", "old"): None},
    {GHOST: (Kept("ALTER TABLE _orders_1_gho ADD c INT", CONTEXT),)},
    7,
    Passing(
        AT,
        LATER,
        {ORDERS: TABLE, TableName("shop_01", "old"): None},
        {TableName("shop_01", "a"): TableName("shop_01", "b")},
        frozenset({ORDERS}),
        None,
        {ORDERS: TableName("shop_01", "model")},
    ),
    MERGED,
    True,
)
STATE = TableState(ShardingSequence((ITEM,)), AT, LATER, {"columns": 3}, (ITEM,), AT, (ITEM,))
GONE = Gone(ORDERS, AT, TableName("shop_01", "orders_9"), {"columns": 3}, (ITEM,))
LOCK = Lock(
    4,
    ("ALTER a",),
    "one",
    "2026-01-02T03:04:05Z",
    {"one": ("ALTER a",)},
    True,
    True,
    frozenset({"two"}),
    "by me",
    {"x": 1},
)
KEEPER = LockKeeper(
    "task",
    MERGED,
    frozenset({"three"}),
    {"one": LockMember((ORDERS,), 3)},
    (LOCK,),
    3,
    2,
    frozenset({("two", ORDERS)}),
    {"four": 1},
)
RECORD = Record(TABLE, AT, (DumpedFile("a.parquet", "p/a", 3, 100, 7),), 12)
TARGET = TargetPlan(
    1,
    MERGED,
    ("id", "kind", "place"),
    ("id",),
    documents=frozenset({"doc"}),
    doubles=frozenset({"d"}),
    ties=(ConflictKey(("kind",), (1,), ("folded",)),),
    family=TableName("shop", "parents"),
)
TABLE_PLAN = TablePlan(
    TABLE,
    TARGET,
    ColumnMapping("m", ORDERS, "id", "id", 5),
    AT.position,
    (("kind", "'a'"),),
    (
        LeftOutRows(((3, 4),)),
        LeftOutRows(((9, 9),), MOVED),
        EventRowFilter("filters.no-delete", ("delete",)),
        ExpressionFilter("expression-filter.e", ((Op.INSERT, "id > 3"),), (("2026-01-01 00:00:00", None),)),
    ),
    (Constant(Column("place", "varchar", "varchar(9)", charset="utf8mb4"), "eu"),),
    LATER.position,
)
BATCH = BatchPlan(
    "one",
    5,
    9,
    AT.position,
    LATER.position,
    (Range("/relay/bin.000003", "bin.000003", 400, 900),),
    True,
    BatchShape(4, 1000, 2 << 20, False, True, 64 << 20, range_digits=3),
    (TABLE_PLAN,),
    MetaTables("dm_meta", "task"),
    Endpoint("127.0.0.1", 1, "u", "p"),
    safe=True,
    stages=(ExclusionEpoch(((3, 4),), (0, 2)),),
    operators=(7,),
)
"""A batch of rows that is open, with operators and rules of every kind."""


def open_batch(plan: dict[str, object]) -> OpenBatch:
    """What a start finds: the plan in the place of `BATCH` and `STATEMENT`."""
    return OpenBatch(9, AT.position, LATER.position, plan)
