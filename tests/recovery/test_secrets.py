"""A whole migration over TLS with client certificates; and no secret of it anywhere that it writes to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from support.certificates import Authority
from support.task_runs import Command, TaskFiles
from unshard.config.encryption import KEY_PATH, encrypt
from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]
AT_SOURCE, AT_TARGET = "s3cr3t-0f-s0urce", "s3cr3t-0f-t4rget"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


def secured(authority: Authority, password: str, domain: str) -> Iterator[MariadbServer]:
    pair = authority.issue("database")
    tls = {"ssl_ca": str(authority.ca), "ssl_cert": str(pair.cert), "ssl_key": str(pair.key)}
    with MariadbServer({**tls, "gtid_domain_id": domain}) as server:
        server.run(
            "SET sql_log_bin = 0",  # a relay log has what the source's binlog has
            f"CREATE USER mover@'127.0.0.1' IDENTIFIED BY '{password}' REQUIRE X509",
            "GRANT ALL ON *.* TO mover@'127.0.0.1'",
        )
        yield server


@pytest.fixture(scope="module")
def source(authority: Authority) -> Iterator[MariadbServer]:
    yield from secured(authority, AT_SOURCE, "1")


@pytest.fixture(scope="module")
def target(authority: Authority) -> Iterator[MariadbServer]:
    yield from secured(authority, AT_TARGET, "9")


def written_to(folder: Path, secrets: list[str]) -> list[str]:
    """Files of a folder in which a secret is found. A process may take one away meanwhile, or a whole folder."""
    found = []
    for path in (Path(inner) / name for inner, _, names in os.walk(folder) for name in names):
        try:
            content = path.read_bytes()
        except OSError:
            continue
        found += [f"{path.relative_to(folder)} ({secret[:12]}…)" for secret in secrets if secret.encode() in content]
    return found


def test_over_tls_and_without_a_trace(
    source: MariadbServer,
    target: MariadbServer,
    authority: Authority,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = authority.issue("mover")
    work, kept = tmp_path / "work", tmp_path / "kept"
    kept.mkdir()
    (kept / "key").write_text("ab" * 32)
    monkeypatch.setenv(KEY_PATH, str(kept / "key"))
    monkeypatch.setenv("TMPDIR", str(work / "tmp"))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(work / "tmp"))
    monkeypatch.setenv("TARGET_PASSWORD", AT_TARGET)
    (work / "tmp").mkdir(parents=True)
    files = {"ssl-ca": str(authority.ca), "ssl-cert": str(mine.cert), "ssl-key": str(mine.key)}
    inline = {f"{key}-bytes": Path(path).read_text() for key, path in files.items()}
    names = {"cert-allowed-cn": ["database"]}
    at_source = {"host": "127.0.0.1", "port": source.port, "user": "mover", "password": encrypt(AT_SOURCE)}
    at_target = {"host": "127.0.0.1", "port": target.port, "user": "mover", "password": "env:TARGET_PASSWORD"}
    task = TaskFiles(
        work, schema, {"s1": source}, target, (schema,),
        keys={"target-database": {**at_target, "security": {**inline, **names}}},
        source={"from": {**at_source, "security": {**files, **names}}},
    ).write()  # fmt: skip
    source.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20))",
        f"INSERT INTO {schema}.t SELECT seq, seq FROM {schema}.seq_1_to_100",
    )
    lines = mine.key.read_text().splitlines()
    secrets = [AT_SOURCE, AT_TARGET, lines[1], lines[2]]
    with Command(task) as command:
        command.shows("sync")
        source.run(f"UPDATE {schema}.t SET v = 'new' WHERE id < 50", f"ALTER TABLE {schema}.t ADD c INT DEFAULT 5")
        source.run(f"INSERT INTO {schema}.t VALUES (200, 'x', 6)")
        command.catch_up()
        assert written_to(work, secrets) == [f"task.yaml ({line[:12]}…)" for line in lines[1:3]]
        environment = Path(f"/proc/{command.pid}/cmdline").read_bytes()
        assert not [secret for secret in secrets if secret.encode() in environment]
        command.interrupt()
        assert command.wait() == 0
    assert target.query(f"SELECT count(*), sum(v = 'new'), sum(c) FROM {schema}.t") == [(101, 49, 506)]
    dumped = "".join(str(target.query(f"SELECT * FROM {files_}")) for files_ in meta_tables(target, task.meta))
    assert not [secret for secret in secrets if secret in dumped]

    at_source["password"] = encrypt(AT_SOURCE + "-wrong")
    (work / "s1.yaml").write_text(yaml.safe_dump({"source-id": "s1", "from": {**at_source, "security": files}}))
    with Command(task) as command:
        assert command.wait() == 1
        assert "refused" in command.text or "denied" in command.text
        assert AT_SOURCE not in command.text
    assert [place for place in written_to(work, secrets) if not place.startswith("task.yaml")] == []


def meta_tables(target: MariadbServer, meta: str) -> list[str]:
    found = target.query("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s", (meta,))
    return [f"`{meta}`.`{name}`" for (name,) in found]
