"""A statement whose event does not record explicit_defaults_for_timestamp ran with the source's own setting."""

from __future__ import annotations

import pytest

from unshard.binlog.query import QueryEvent
from unshard.binlog.transaction_range import PlainStatement
from unshard.ddl.context import Context, logs_explicit_defaults
from unshard.ddl.evaluate import evaluate
from unshard.ddl.parse import classify_ddl
from unshard.errors import Where
from unshard.model.table import TableName
from unshard.sync.statements.reader import SourceTraits, logged_context
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.source_traits import read_traits

EXPLICIT_DEFAULTS = 1 << 24  # OPTION_EXPLICIT_DEF_TIMESTAMP in the flags of a query event


def context_of(event: QueryEvent, traits: SourceTraits) -> Context:
    return logged_context(PlainStatement(event, 4, 4, 5, 1, "", 0, whole=True), traits, Where())


def recorded(traits: SourceTraits, *, flags2: int = 0, explicit: bool | None = None) -> bool | None:
    event = QueryEvent("s", "CREATE TABLE t (ts TIMESTAMP)", flags2=flags2, explicit_defaults=explicit)
    return context_of(event, traits).explicit_defaults_for_timestamp


@pytest.mark.parametrize("own", [True, False])
def test_mysql_5_6_has_its_own_setting(own: bool) -> None:
    traits = SourceTraits(False, False, "+00:00", explicit_defaults=own)
    assert recorded(traits) is own
    assert recorded(traits, explicit=not own) is not own


@pytest.mark.parametrize("own", [True, False])
def test_an_old_mariadb_has_its_own_setting(own: bool) -> None:
    traits = SourceTraits(True, False, "+00:00", explicit_defaults=own, logs_defaults=False)
    assert recorded(traits) is own
    assert recorded(traits, flags2=EXPLICIT_DEFAULTS) is True


def test_a_mariadb_that_logs_the_setting_had_it_off_where_the_event_lacks_it() -> None:
    traits = SourceTraits(True, False, "+00:00", explicit_defaults=True, logs_defaults=True)
    assert recorded(traits) is False
    assert recorded(traits, flags2=EXPLICIT_DEFAULTS) is True


@pytest.mark.parametrize(
    ("version", "logs"),
    [
        ((10, 4, 34), False),
        ((10, 5, 16), False),
        ((10, 5, 17), True),
        ((10, 6, 8), False),
        ((10, 6, 9), True),
        ((10, 8, 3), False),
        ((10, 9, 2), True),
        ((10, 10, 1), True),
        ((11, 4, 2), True),
        ((5, 5, 68), False),
    ],
)
def test_the_versions_that_log_it(version: tuple[int, int, int], logs: bool) -> None:
    assert logs_explicit_defaults(version) is logs


def test_a_table_of_mysql_5_6_gets_the_implied_default() -> None:
    traits = SourceTraits(False, False, "+00:00", explicit_defaults=False)
    event = QueryEvent("s", "CREATE TABLE t (id INT PRIMARY KEY, ts TIMESTAMP)")
    context = context_of(event, traits)
    (table,) = evaluate(classify_ddl(event.sql, context), lambda name: None, lambda name: None).values()
    assert table is not None
    assert table.name == TableName("s", "t")
    assert "`ts` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP" in table.create_sql


@pytest.mark.server
def test_the_setting_of_a_server_is_asked(source_server: MariadbServer) -> None:
    traits = read_traits(source_server.endpoint)
    ((own,),) = source_server.query("SELECT @@GLOBAL.explicit_defaults_for_timestamp")
    assert traits.explicit_defaults is bool(own)
    assert traits.logs_defaults
