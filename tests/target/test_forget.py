"""`--remove-meta`: a task's tables go, all of them, and no other's."""

from __future__ import annotations

from support.schema_tables import names_in
from unshard.load.checkpoint import LoadTables
from unshard.load.deferred_keys import DEFERRED_BYTES, DeferredKeys
from unshard.model.table import TableName
from unshard.mysql.connection import rows, session
from unshard.target.forget import SUFFIXES, forget_task
from unshard.target.meta import MetaTables
from unshard.testing.mariadb_server import MariadbServer


def test_a_task_s_tables_go_and_no_other_s(target_server: MariadbServer, schema: str) -> None:
    with session(target_server.endpoint, "target") as connection:
        for task in ("t", "t_apply", "T2", "T"):
            MetaTables(schema, task).create(connection)
            LoadTables(schema, task, "s").create(connection)
        before = names_in(target_server, schema)
        gone = forget_task(connection, schema, "t")
        assert {name.removeprefix("t_") for name in gone} <= set(SUFFIXES)
        left = names_in(target_server, schema)
        assert left == {name for name in before if name.startswith(("t_apply_apply", "T2_", "T_"))} | {
            name for name in before if name.startswith("t_apply_") and name.removeprefix("t_") not in SUFFIXES
        }
        assert not forget_task(connection, schema, "t")


def test_tasks_whose_names_differ_by_case_have_tables_of_their_own(target_server: MariadbServer, schema: str) -> None:
    with session(target_server.endpoint, "target") as connection:
        for task in ("Shop", "shop"):
            MetaTables(schema, task).create(connection)
        every = names_in(target_server, schema)
        assert {name.lower() for name in every} == {name for name in every if name.startswith("shop_")}
        assert len(every) == 2 * len(forget_task(connection, schema, "shop"))


def test_every_table_of_a_task_is_known(target_server: MariadbServer, schema: str) -> None:
    with session(target_server.endpoint, "target") as connection:
        MetaTables(schema, "t").create(connection)
        LoadTables(schema, "t", "s").create(connection)
        forget_task(connection, schema, "t")
    assert names_in(target_server, schema) == set()


def test_keys_that_a_load_has_left_out_stay_on_record_as_long_as_their_table_is_there(
    target_server: MariadbServer, schema: str
) -> None:
    name, keys = TableName(schema, "orders"), DeferredKeys(schema, "t", "s")
    with session(target_server.endpoint, "target") as connection:
        MetaTables(schema, "other").create(connection)
        rows(connection, f"CREATE TABLE {name.quoted} (id INT PRIMARY KEY, v INT, KEY v (v))")
        keys.create(connection)
        assert forget_task(connection, schema, "t") == ("t_load_key",), "nothing is on record"
        keys.create(connection)
        keys.defer(connection, name, DEFERRED_BYTES)
        assert forget_task(connection, schema, "t") == ()
        assert keys.recorded(connection) == {name}
        rows(connection, f"DROP TABLE {name.quoted}")
        assert forget_task(connection, schema, "t") == ("t_load_key",)
