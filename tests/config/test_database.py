"""Servers: passwords by reference, session variables, TLS files, and the endpoint made of it all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unshard.config.database import DatabaseConfig
from unshard.errors import ConfigError
from unshard.mysql.connection import Endpoint
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.tls import Material, Tls

SERVER = {"host": "h", "port": 3306, "user": "u"}


def database(**keys: Any) -> DatabaseConfig:
    return DatabaseConfig.model_validate({**SERVER, **keys})


def test_a_plain_password_is_itself() -> None:
    assert database(password="ge:heim").secret() == "ge:heim"
    assert database().secret() == ""
    assert database(password="env:").secret() == "env:"


def test_a_password_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSHARD_TEST_PASSWORD", "geheim ")
    config = database(password="env:UNSHARD_TEST_PASSWORD")
    assert config.secret() == "geheim "
    monkeypatch.delenv("UNSHARD_TEST_PASSWORD")
    with pytest.raises(ConfigError, match="`env:UNSHARD_TEST_PASSWORD` cannot be read") as caught:
        config.secret()
    assert caught.value.code == "CONFIG-004"


@pytest.mark.parametrize(("content", "password"), [(b"a b\n", "a b"), (b"a\r\n", "a"), (b"a\n\n", "a\n"), (b"", "")])
def test_a_password_from_a_file(tmp_path: Path, content: bytes, password: str) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    assert database(password=f"file:{path}").secret() == password


def test_a_password_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    with pytest.raises(ConfigError, match="No such file"):
        database(password=f"file:{path}").secret()
    path.write_bytes(b"geheim\xff")
    with pytest.raises(ConfigError, match="not UTF-8 text") as caught:
        database(password=f"file:{path}").secret()
    assert "geheim" not in str(caught.value)


def test_session_variables_are_folded_and_switches_are_numbers() -> None:
    session = database(session={"SQL_MODE": "ANSI", "tidb_x": "true", "y": "False", "Time_Zone": "+00:00"}).session
    assert session == {"sql_mode": "ANSI", "tidb_x": "1", "y": "0", "time_zone": "+00:00"}


@pytest.mark.parametrize(
    ("session", "why"),
    [
        ({"time_zone": "+08:00"}, "always UTC"),
        ({"autocommit": "0"}, "every batch is one transaction"),
        ({"sql_select_limit": "1000"}, "every row of a result is needed"),
        ({"completion_type": "CHAIN"}, "a COMMIT has to end its transaction"),
        ({"character_set_client": "latin1"}, "sessions talk utf8mb4"),
        ({"sql_mode": "ansi,no_backslash_escapes"}, "cannot have NO_BACKSLASH_ESCAPES"),
        ({"a = 1, b": "2"}, "is not the name of a session variable"),
        ({"a": "1", "A": "2"}, "there twice in different case"),
    ],
)
def test_session_variables_that_would_spoil_values_are_refused(files: Any, session: dict[str, str], why: str) -> None:
    (found,) = files.task_problems(target_database={**SERVER, "session": session})
    assert found.startswith("target-database.session: ")
    assert why in found


def test_certificate_and_key_go_together(files: Any) -> None:
    (found,) = files.source_problems(**{"from": {**SERVER, "security": {"ssl-cert": "c"}}})
    assert found == "from.security: ssl-cert and ssl-key go together; set both or neither"


def test_an_endpoint_has_it_all(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("geheim\n")
    config = database(
        password=f"file:{tmp_path}/secret",
        session={"a": "1"},
        security={"ssl-ca": "ca.pem", "ssl-cert": "", "ssl-key": ""},
    )
    assert to_endpoint(config) == Endpoint("h", 3306, "u", "geheim", (("a", "1"),), Tls(Material("ca.pem")))
    assert "geheim" not in repr(to_endpoint(config))
