"""The real MySQL servers of this folder's tests, a newer MariaDB, and older ones; `make test-mysql` fetches them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from unshard.testing.mysql_server import Mysql56Server, Mysql80Server, MysqlServer, OldMariadbServer, OtherMariadbServer


@pytest.fixture(scope="session")
def mysql_source() -> Iterator[MysqlServer]:
    """A MySQL upstream as it comes: GTIDs on, `binlog_row_metadata` MINIMAL. Use a schema of your own (`schema`)."""
    with MysqlServer() as server:
        yield server


@pytest.fixture(scope="session")
def packing_mysql() -> Iterator[MysqlServer]:
    """A MySQL upstream that compresses its transactions."""
    with MysqlServer({"binlog_transaction_compression": "ON"}) as server:
        yield server


@pytest.fixture(scope="session")
def mysql_target() -> Iterator[MysqlServer]:
    """A MySQL downstream, with a binlog of its own: the proof of what was applied, and how often."""
    with MysqlServer() as server:
        yield server


@pytest.fixture(scope="session")
def other_mariadb() -> Iterator[OtherMariadbServer]:
    """A MariaDB that is newer than the one installed here."""
    with OtherMariadbServer() as server:
        yield server


@pytest.fixture(scope="session")
def mysql_56() -> Iterator[Mysql56Server]:
    """A MySQL 5.6: no JSON, no generated columns, no row metadata beside the types."""
    with Mysql56Server() as server:
        yield server


@pytest.fixture(scope="session")
def mysql_80() -> Iterator[Mysql80Server]:
    """A MySQL 8.0."""
    with Mysql80Server() as server:
        yield server


@pytest.fixture(scope="session")
def old_mariadb() -> Iterator[OldMariadbServer]:
    """A MariaDB 10.2: no system versioning, no invisible columns, no row metadata beside the types."""
    with OldMariadbServer() as server:
        yield server
