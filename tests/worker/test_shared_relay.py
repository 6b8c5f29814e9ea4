"""One relay for all readers of a source: begun by the first, fetched backwards for a late one, purged behind all."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event

import pytest

from support.task_runs import newest
from support.waiting import wait_until
from unshard.api.status import Stage
from unshard.config.source import SourceConfig
from unshard.errors import RelayError
from unshard.model.position import Location, Position
from unshard.mysql.connection import session
from unshard.mysql.flavour import identify
from unshard.relay.purge import PurgeLimits
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.purging import Followers, Purger
from unshard.worker.shared_relay import RelayReader, SharedRelay

pytestmark = pytest.mark.server


@pytest.fixture
def relay(source_server: MariadbServer, tmp_path: Path) -> Iterator[SharedRelay]:
    database = {"host": "127.0.0.1", "port": source_server.port, "user": "root"}
    form = {"source-id": "s1", "from": database, "relay-dir": str(tmp_path)}
    made = SharedRelay.of(SourceConfig.model_validate(form))
    yield made
    made.close()


def uuid(server: MariadbServer) -> str:
    with session(server.endpoint, "source") as connection:
        return identify(connection).uuid


def begun(relay: SharedRelay, server: MariadbServer, at: Position) -> RelayReader:
    reader = relay.reader(Location(at), uuid(server))
    reader.start()
    return reader


def stage_of(relay: SharedRelay) -> Stage:
    """As it is now: a type checker takes an attribute that was just compared for settled."""
    return relay.stage


def holds(reader: RelayReader, position: Position) -> None:
    def there() -> bool:
        reader.check()
        return reader.wait_for(position, 0.2)

    wait_until(there, f"relay at {position}")


def test_a_later_reader_gets_older_files_and_the_others_read_on(
    relay: SharedRelay, source_server: MariadbServer, schema: str
) -> None:
    first = newest(source_server)
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (b LONGBLOB)")
    for letter in "abc":
        source_server.run(f"INSERT INTO {schema}.t VALUES (REPEAT('{letter}', 100000))", "FLUSH BINARY LOGS")
    early = begun(relay, source_server, newest(source_server))
    holds(early, newest(source_server))
    assert early.log.files()[0] == newest(source_server).file

    late = begun(relay, source_server, first)
    assert relay.unit is not None
    source_server.run(f"INSERT INTO {schema}.t VALUES ('d')")
    holds(early, newest(source_server))
    holds(late, newest(source_server))
    files = late.log.files()
    assert files[0] == first.file
    by_server = {path.name: path.read_bytes() for path in source_server.binlog_files()}
    for name in files[:-1]:
        assert late.log.path(name).read_bytes()[30:] == by_server[name][30:]


def test_files_that_the_source_has_purged_stop_only_the_reader_that_needs_them(
    relay: SharedRelay, source_server: MariadbServer
) -> None:
    early = begun(relay, source_server, newest(source_server))
    holds(early, newest(source_server))
    files = [path.name for path in source_server.binlog_files()]
    gone = Position(f"{files[0].rpartition('.')[0]}.000000")
    late = begun(relay, source_server, gone)
    with pytest.raises(RelayError, match="RELAY-010"):
        holds(late, newest(source_server))
    holds(early, newest(source_server))


def test_a_paused_relay_lets_its_readers_wait(relay: SharedRelay, source_server: MariadbServer, schema: str) -> None:
    reader = begun(relay, source_server, newest(source_server))
    holds(reader, newest(source_server))
    relay.keep(Stage.PAUSED)
    assert stage_of(relay) is Stage.PAUSED
    source_server.run(f"CREATE DATABASE {schema}")
    assert not reader.wait_for(newest(source_server), 0.3)
    reader.check()
    relay.keep(Stage.STOPPED)
    holds(reader, newest(source_server))


def test_a_relay_that_still_receives_is_not_paused_yet(
    relay: SharedRelay, source_server: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = begun(relay, source_server, newest(source_server))
    holds(reader, newest(source_server))
    assert relay.unit is not None
    stop, stopping, go_on = relay.unit.stop, Event(), Event()

    def slow() -> None:
        stopping.set()
        assert go_on.wait(60)
        stop()

    monkeypatch.setattr(relay.unit, "stop", slow)
    with ThreadPoolExecutor() as pool:
        pausing = pool.submit(relay.keep, Stage.PAUSED)
        assert stopping.wait(60)
        assert stage_of(relay) is Stage.PAUSING
        go_on.set()
        pausing.result()
    assert stage_of(relay) is Stage.PAUSED


def test_the_last_reader_ends_the_relay_unless_it_is_to_be_kept(
    relay: SharedRelay, source_server: MariadbServer
) -> None:
    readers = [begun(relay, source_server, newest(source_server)) for _ in range(2)]
    holds(readers[0], newest(source_server))
    readers[0].stop()
    assert stage_of(relay) is Stage.RUNNING
    readers[1].stop()
    assert stage_of(relay) is Stage.STOPPED
    relay.keep(Stage.RUNNING)
    assert stage_of(relay) is Stage.RUNNING
    begun(relay, source_server, newest(source_server)).stop()
    assert stage_of(relay) is Stage.RUNNING


def test_a_reader_of_a_server_that_is_no_longer_followed_is_told(
    relay: SharedRelay, source_server: MariadbServer
) -> None:
    end = newest(source_server)
    reader = begun(relay, source_server, end)
    holds(reader, end)
    other = relay.reader(Location(end), "another")
    other.start()
    with pytest.raises(RelayError, match="RELAY-008") as raised:
        reader.check()
    assert raised.value.values == {"expected": uuid(source_server), "found": "another"}
    assert reader.wait_for(end, 0.2)


@pytest.mark.parametrize(("enable_gtid", "ends"), [(True, []), (False, ["RELAY-008"])])
def test_another_server_is_an_end_by_an_error_where_no_reader_can_go_over_to_it(
    relay: SharedRelay, monkeypatch: pytest.MonkeyPatch, enable_gtid: bool, ends: list[str]
) -> None:
    counted: list[str] = []
    monkeypatch.setattr("unshard.relay.unit.count_relay_exit", lambda source, error: counted.append(error.code))
    relay.source = relay.source.model_copy(update={"enable_gtid": enable_gtid})
    reader = relay.reader(None, "another")
    reader.start()
    wait_until(lambda: stage_of(relay) is Stage.PAUSED, "the relay has met another server")
    assert counted == ends
    with pytest.raises(RelayError, match="RELAY-008"):
        reader.check()


def test_a_reader_that_changes_over_to_another_server_can_be_looked_at(
    relay: SharedRelay, source_server: MariadbServer
) -> None:
    assert relay.reader(None, "somebody").status() is None
    reader = begun(relay, source_server, newest(source_server))
    assert reader.status() is not None
    reader.begin_at(None, "another")
    assert reader.status() is None


def test_another_login_counts_while_readers_read_on(
    relay: SharedRelay, source_server: MariadbServer, schema: str
) -> None:
    reader = begun(relay, source_server, newest(source_server))
    holds(reader, newest(source_server))
    source_server.run(f"CREATE USER {schema}@'%' IDENTIFIED BY 'new'", f"GRANT ALL ON *.* TO {schema}@'%'")
    login = relay.source.database.model_copy(update={"user": schema, "password": "new"})
    relay.renew(relay.source.model_copy(update={"database": login}))

    def logged_in() -> bool:
        asked = (
            f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = '{schema}' AND COMMAND LIKE 'Binlog%'"
        )
        return bool(source_server.query(asked)[0][0])

    wait_until(logged_in, "the relay with its new login")
    source_server.run(f"CREATE DATABASE {schema}")
    holds(reader, newest(source_server))
    relay.close()
    source_server.run(f"DROP USER {schema}@'%'")


def moved(relay: SharedRelay, folder: Path) -> Path:
    """Give the relay a source file with another `relay-dir`. Returns the folder that it is to have."""
    relay.renew(relay.source.model_copy(update={"relay_dir": str(folder)}))
    return folder / relay.source.source_id


def test_another_folder_counts_at_once_for_a_relay_that_nobody_reads(
    relay: SharedRelay, source_server: MariadbServer, tmp_path: Path
) -> None:
    relay.keep(Stage.RUNNING)
    folder = moved(relay, tmp_path / "other")
    assert relay.folder == folder
    assert stage_of(relay) is Stage.RUNNING
    reader = begun(relay, source_server, newest(source_server))
    holds(reader, newest(source_server))
    assert reader.log.folder.parent == folder


@pytest.mark.parametrize("kept", [Stage.STOPPED, Stage.RUNNING])
def test_another_folder_counts_once_the_last_reader_has_left(
    relay: SharedRelay, source_server: MariadbServer, schema: str, tmp_path: Path, kept: Stage
) -> None:
    begin = newest(source_server)
    reader = begun(relay, source_server, begin)
    relay.keep(kept)
    before = relay.folder
    folder = moved(relay, tmp_path / "other")
    source_server.run(f"CREATE DATABASE {schema}")
    holds(reader, newest(source_server))
    assert relay.folder == before
    assert reader.log.folder.parent == before
    reader.stop()
    assert relay.folder == folder
    assert stage_of(relay) is kept
    source_server.run("FLUSH BINARY LOGS", f"CREATE TABLE {schema}.t (id INT)")
    reader.start()
    holds(reader, newest(source_server))
    assert reader.log.folder.parent == folder
    assert reader.log.files()[0] == begin.file, "what it read in the other folder is fetched again"


def test_a_folder_that_cannot_be_written_is_left_for_another_one(
    relay: SharedRelay, source_server: MariadbServer, tmp_path: Path
) -> None:
    """RELAY-014 has a user name another `relay-dir`."""
    relay.folder.write_text("a file is in the place of the folder")
    reader = relay.reader(Location(newest(source_server)), uuid(source_server))
    with pytest.raises(RelayError, match="RELAY-014"):
        reader.start()
    reader.stop()
    folder = moved(relay, tmp_path / "other")
    reader.start()
    holds(reader, newest(source_server))
    assert reader.log.folder.parent == folder


def test_who_joins_while_files_are_deleted_finds_what_is_left_and_fetches_the_rest(
    relay: SharedRelay, source_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = begun(relay, source_server, newest(source_server))
    source_server.run(f"CREATE DATABASE {schema}", "FLUSH BINARY LOGS", f"CREATE TABLE {schema}.t (id INT)")
    second = Position(newest(source_server).file)
    source_server.run("FLUSH BINARY LOGS", f"INSERT INTO {schema}.t VALUES (1)")
    holds(early, newest(source_server))
    early.stop()
    deleting, go_on = Event(), Event()

    def held(place: str) -> None:
        deleting.set()
        assert go_on.wait(60)

    monkeypatch.setattr("unshard.relay.purge.reach", held)
    limits = PurgeLimits(before=newest(source_server).file)
    late = relay.reader(Location(second), uuid(source_server))

    def join() -> str:
        late.start()
        holds(late, newest(source_server))
        return late.log.files()[0]

    with ThreadPoolExecutor() as pool:
        purging = pool.submit(Purger().purge, relay, Followers, limits)
        assert deleting.wait(60)
        joining = pool.submit(join)
        wait([joining], 0.5)  # where nothing holds it up it has seen by now a file that goes
        go_on.set()
        assert [file.name for file in purging.result().gone][-1] == second.file
        assert joining.result() == second.file
    assert late.log.path(second.file).exists()
