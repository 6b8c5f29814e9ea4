"""TLS to a real server that asks for client certificates: files and inline texts, names, and what is refused."""

from __future__ import annotations

import base64
import os
import pickle
import ssl
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import MySQLdb
import pymysql
import pytest

from support.certificates import Authority
from support.waiting import wait_until
from unshard.config.database import DatabaseConfig, SecurityConfig
from unshard.errors import SourceError, UnshardError
from unshard.model.position import Position
from unshard.mysql.connection import Endpoint, connect, server_error, session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.flavour import Flavour, Server, identify
from unshard.source.replica import Begin, ReplicaStream
from unshard.source.replica_protocol import ReplicaRequest
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.auto_resume import makes_sense

SERVER = Server(Flavour.MARIADB, (10, 11, 0), "", 1, "no such server")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("tls"))
    made.issue("db-1")
    made.issue("unshard")
    return made


@pytest.fixture(scope="module")
def secured(authority: Authority) -> Iterator[MariadbServer]:
    pair = authority.issue("db-1")
    with MariadbServer({"ssl_ca": str(authority.ca), "ssl_cert": str(pair.cert), "ssl_key": str(pair.key)}) as server:
        server.run(
            "CREATE USER x@'127.0.0.1' IDENTIFIED BY 'geheim' REQUIRE X509",
            "GRANT ALL ON *.* TO x@'127.0.0.1'",
        )
        yield server


def endpoint(server: MariadbServer, **security: Any) -> Endpoint:
    form = {"host": "127.0.0.1", "port": server.port, "user": "x", "password": "geheim", "security": security}
    return to_endpoint(DatabaseConfig.model_validate(form))


def files(authority: Authority) -> dict[str, Any]:
    folder = authority.ca.parent
    return {
        "ssl-ca": str(authority.ca),
        "ssl-cert": str(folder / "unshard.pem"),
        "ssl-key": str(folder / "unshard.key"),
    }


def inline(authority: Authority) -> dict[str, Any]:
    texts = {key: Path(path).read_text() for key, path in files(authority).items()}
    return {f"{key}-bytes": text for key, text in texts.items()}


def coded(authority: Authority) -> dict[str, Any]:
    texts = {key: Path(path).read_bytes() for key, path in files(authority).items()}
    return {f"{key}-base64": base64.b64encode(text).decode() for key, text in texts.items()}


def cipher(one: Endpoint) -> str:
    with session(one, "source") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return str(cursor.fetchone()[1])


def refused(use: Callable[[Endpoint], object], one: Endpoint, fault: str) -> UnshardError:
    """The error of TLS that `use` meets, which tells `fault` and what to do; auto-resume tries again after it."""
    with pytest.raises(SourceError) as caught:
        use(one)
    error = caught.value
    assert error.code == "SOURCE-008", error
    assert fault in error.message, error
    assert "`from:` in the source file" in error.hint
    assert makes_sense(error)
    assert server_error(MySQLdb.OperationalError(2026, error.cause), one, "target").code == "TARGET-008"
    return error


def open_stream(one: Endpoint) -> None:
    """As far as its login."""
    ReplicaStream(one, SERVER, ReplicaRequest(Position("mysql-bin.000001", 4), 77, SERVER.uuid)).close()


def stream(one: Endpoint) -> None:
    with session(one, "source") as connection:
        server = identify(connection)
    opened = ReplicaStream(one, server, ReplicaRequest(Position("mysql-bin.000001", 4), 77, server.uuid))
    try:
        assert isinstance(next(opened.pieces(1.0)), Begin)
    finally:
        opened.close()


@pytest.mark.parametrize("form", [files, inline, coded])
def test_both_drivers_show_the_client_certificate(secured: MariadbServer, authority: Authority, form: Any) -> None:
    one = endpoint(secured, **form(authority))
    assert cipher(one)
    assert cipher(pickle.loads(pickle.dumps(one)))
    stream(one)
    assert "PRIVATE" not in repr(one)


def test_without_a_certificate_the_account_is_refused(secured: MariadbServer, authority: Authority) -> None:
    for security in ({}, {"ssl-ca": str(authority.ca)}):
        with pytest.raises(SourceError) as caught:
            connect(endpoint(secured, **security), "source")
        assert caught.value.code == "SOURCE-002"


def test_the_names_that_are_allowed(secured: MariadbServer, authority: Authority) -> None:
    right = endpoint(secured, **inline(authority), **{"cert-allowed-cn": ["other", "db-1"]})
    assert cipher(right)
    assert cipher(right)
    stream(right)
    wrong = endpoint(secured, **inline(authority), **{"cert-allowed-cn": ["db-2"]})
    for use in (cipher, open_stream):
        refused(use, wrong, "not in cert-allowed-cn")


def test_a_server_of_another_authority_is_refused(secured: MariadbServer, authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    for security in ({"ssl-ca": str(other.ca)}, {"ssl-ca-bytes": other.ca.read_text()}):
        whole = {**files(authority), "ssl-ca": "", **security}
        for more in ({}, {"cert-allowed-cn": ["db-1"]}):
            one = endpoint(secured, **whole, **more)
            for use in (cipher, open_stream):
                refused(use, one, "not of the authority in `ssl-ca`")


def test_a_server_without_tls_is_not_talked_to_in_the_clear(authority: Authority) -> None:
    with MariadbServer({"ssl": "OFF"}) as server:  # MariaDB 11.4 and newer makes a certificate by itself
        for more in ({}, {"cert-allowed-cn": ["db-1"]}):
            one = replace(endpoint(server, **{"ssl-ca": str(authority.ca)}, **more), user="root", password="")
            for use in (cipher, open_stream):
                refused(use, one, "the server has no TLS")


def test_a_certificate_that_has_expired_is_refused_and_a_new_one_is_taken(
    secured: MariadbServer, authority: Authority
) -> None:
    one = endpoint(secured, **inline(authority))
    authority.issue("db-1", expired=True)
    secured.run("FLUSH SSL")
    try:
        for use in (cipher, open_stream):
            refused(use, one, "has expired")
    finally:
        authority.issue("db-1")
        secured.run("FLUSH SSL")
    assert cipher(one)


def test_a_client_certificate_that_the_server_does_not_know(
    secured: MariadbServer, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path, "other").issue("unshard")
    security = {"ssl-ca": str(authority.ca), "ssl-cert": str(stranger.cert), "ssl-key": str(stranger.key)}
    for use in (cipher, open_stream):
        refused(use, endpoint(secured, **security), "refuses the client certificate")


def test_a_handshake_that_is_broken_off_without_a_word(
    secured: MariadbServer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a server's refusal of TLS 1.3 may come: with the login, which PyMySQL takes for a server that went away."""

    def gone(**options: Any) -> None:
        try:
            raise ssl.SSLEOFError(8, "EOF occurred in violation of protocol")
        except ssl.SSLError as error:
            raise pymysql.OperationalError(2006, f"MySQL server has gone away ({error!r})")  # noqa: B904 - as PyMySQL

    monkeypatch.setattr(pymysql, "connect", gone)
    refused(open_stream, endpoint(secured, **files(authority)), "without a word")


def test_files_that_are_not_there_are_named(secured: MariadbServer, authority: Authority) -> None:
    for security in ({"ssl-ca": "/no/such.pem"}, {**files(authority), "ssl-key": str(authority.ca)}):
        for use in (cipher, open_stream):
            error = refused(use, endpoint(secured, **security), "can't be used")
            assert str(security["ssl-ca"]) in error.cause


def test_replaced_files_count_for_new_connections(secured: MariadbServer, authority: Authority, tmp_path: Path) -> None:
    kept = {key: Path(path).read_bytes() for key, path in files(authority).items()}
    paths = {key: tmp_path / key for key in kept}
    for key, path in paths.items():
        path.write_bytes(kept[key])
    security = {key: str(path) for key, path in paths.items()}
    one = endpoint(secured, **security, **{"cert-allowed-cn": ["db-1"]})
    assert cipher(one)
    other = Authority(tmp_path, "other").issue("unshard", "stranger")
    paths["ssl-cert"].write_bytes(other.cert.read_bytes())
    paths["ssl-key"].write_bytes(other.key.read_bytes())
    with pytest.raises(UnshardError):
        cipher(one)
    fresh = authority.issue("unshard", "fresh")
    paths["ssl-cert"].write_bytes(fresh.cert.read_bytes())
    paths["ssl-key"].write_bytes(fresh.key.read_bytes())
    assert cipher(one)


def test_a_server_may_get_a_new_certificate(secured: MariadbServer, authority: Authority) -> None:
    one = endpoint(secured, **inline(authority), **{"cert-allowed-cn": ["db-1"]})
    assert cipher(one)
    authority.issue("db-1")
    secured.run("FLUSH SSL")
    assert cipher(one)


def test_inline_keys_leave_nothing_behind(secured: MariadbServer, authority: Authority) -> None:
    one = endpoint(secured, **inline(authority), **{"cert-allowed-cn": ["db-1"]})
    cipher(one)
    opened = set(os.listdir("/proc/self/fd"))
    for _ in range(5):
        cipher(one)
    # another thread may have a file open for a moment
    wait_until(lambda: len(set(os.listdir("/proc/self/fd")) - opened) <= 1, "the files are closed")
    assert not [name for number in opened if "memfd:pem" in (name := _target(number))]


def _target(number: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("security", "why"),
    [
        ({"ssl-ca-bytes": "/etc/ca.pem"}, "ssl-ca-bytes is no PEM text"),
        ({"ssl-ca-base64": "geheim!"}, "ssl-ca-base64 is no PEM text"),
        ({"ssl-cert-bytes": "-----BEGIN x"}, "go together"),
        ({"cert-allowed-cn": ["a"]}, "cert-allowed-cn needs ssl-ca"),
    ],
)
def test_what_does_not_fit_together_is_refused(security: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why) as caught:
        DatabaseConfig.model_validate({"host": "h", "port": 1, "user": "u", "security": security})
    assert "geheim" not in str(caught.value)


def test_of_several_forms_the_inline_one_counts_as_in_dm() -> None:
    keys = {"ssl-ca": "/a", "ssl-ca-bytes": "-----BEGIN x"}
    assert SecurityConfig.model_validate(keys).pem("ca") == ("", "-----BEGIN x")
    assert SecurityConfig.model_validate(keys | {"ssl-ca-base64": "LS0tLS1CRUdJTiB5"}).pem("ca") == ("", "-----BEGIN y")
    assert SecurityConfig.model_validate({"ssl-ca": "/a"}).pem("ca") == ("/a", "")
