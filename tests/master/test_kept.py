"""Files as they are stored: passwords encrypted where there is a key, and nothing else changed."""

from __future__ import annotations

import base64
import json
import os
import stat
from pathlib import Path

import pytest
from cluster_rig import Rig, source_text, task_text

from support.certificates import Authority
from unshard.api.status import Stage
from unshard.api.verbs import PauseTask, ResumeTask, UpdateSource, UpdateTask
from unshard.cli.master import _store_url
from unshard.config.encryption import KEY_PATH
from unshard.config.files import parse_source
from unshard.config.master import MasterConfig
from unshard.errors import ConfigError
from unshard.master.orders import same_login, task_config
from unshard.master.passwords import kept
from unshard.master.store import Store
from unshard.mysql.endpoint import to_endpoint


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text("0123456789abcdef" * 4)
    monkeypatch.setenv(KEY_PATH, str(file))


def test_passwords_are_encrypted_and_comments_stay(key: None) -> None:
    text = "# of the shop\n" + source_text("a").replace("password: pass word", 'password: "pass word"  # old')
    stored = kept(text)
    assert "pass word" not in stored
    assert "# of the shop" in stored
    assert "# old" in stored
    assert parse_source(stored).database.secret() == "pass word"
    assert kept(stored) == stored


@pytest.mark.parametrize("form", ["|-\n    a b", ">-\n    a\n    b", "a\n    b", "!!str a b", "&p a b", "'a b'"])
@pytest.mark.parametrize("next_key", ["\n  security: {}\nenable: true\n", "\n\n# of the shop\nenable: true\n", "\n"])
def test_a_password_in_any_form_of_yaml(key: None, form: str, next_key: str) -> None:
    text = f"source-id: a\nfrom:\n  host: h\n  port: 3306\n  user: u\n  password: {form}{next_key}"
    stored = kept(text)
    assert "a b" not in stored
    assert ("# of the shop" in stored) == ("# of the shop" in text)
    database = parse_source(stored).database
    assert (database.secret(), database.port) == ("a b", 3306)


@pytest.mark.parametrize(
    ("user", "password", "read"),
    [
        ("*p", "&p a b", ("a b", "a b")),
        ("&u a b", "*u", ("a b", "a b")),
        ('&u "a\\n\'b"', "*u", ("a\n'b", "a\n'b")),
        ("*p", "&p 123", ("123", "123")),
        ("u", "&p a b", ("u", "a b")),
    ],
)
def test_a_password_that_an_anchor_shares(key: None, user: str, password: str, read: tuple[str, str]) -> None:
    pairs = [f"  user: {user}\n", f"  password: {password}  # the same\n"]
    text = f"source-id: a\nfrom:\n  host: h\n  port: 3306\n{''.join(pairs if '&' in user else reversed(pairs))}"
    stored = kept(text)
    assert kept(stored) == stored
    database = parse_source(stored).database
    assert (database.user, database.secret()) == read
    assert database.password not in text, "it is stored encrypted"
    assert "  # the same" in stored


@pytest.mark.parametrize("form", ["bytes", "base64", "list", "list below its key"])
def test_a_private_key_is_encrypted_in_any_form(key: None, tmp_path: Path, form: str) -> None:
    pair = Authority(tmp_path).issue("ann")
    cert, pem = pair.cert.read_text(), pair.key.read_text()
    block = "|\n" + "".join(f"      {line}\n" for line in pem.splitlines())
    numbers = [str(byte) for byte in pem.encode()]
    forms = {
        "bytes": f"ssl-key-bytes: {block}",
        "base64": f"ssl-key-base64: {base64.b64encode(pem.encode()).decode()}  # ours\n",
        "list": f"ssl-key-bytes: [{', '.join(numbers)}]  # ours\n",
        "list below its key": "ssl-key-bytes:\n" + "".join(f"    - {byte}\n" for byte in numbers),
    }
    text = f"{source_text('a')}  security:\n    ssl-cert-bytes: {json.dumps(cert)}\n    {forms[form]}enable: true\n"
    stored = kept(text)
    assert pem.splitlines()[1] not in stored
    assert forms["base64"][20:80] not in stored
    assert ", ".join(numbers[:20]) not in stored
    assert "\n    - " not in stored
    assert kept(stored) == stored
    read = parse_source(stored).database
    assert (read.security.pem("key"), read.security.pem("cert")) == (("", pem), ("", cert))
    assert pem not in json.dumps(read.model_dump(mode="json"))
    assert same_login(read, parse_source(text).database)
    assert to_endpoint(read).tls is not None


def test_a_private_key_that_no_key_opens(key: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Authority(tmp_path).issue("ann")
    parts = {f"ssl-{name}-bytes": path.read_text() for name, path in (("cert", pair.cert), ("key", pair.key))}
    text = f"{source_text('a')}  security: {json.dumps(parts)}\n"
    stored = kept(text)
    monkeypatch.delenv(KEY_PATH)
    read = parse_source(stored)
    assert not same_login(read.database, parse_source(text).database)
    with pytest.raises(ConfigError, match="CONFIG-023") as caught:
        read.database.security.pem("key")
    assert "it is ssl-key-bytes of a section security" in str(caught.value)


def test_without_a_key_nothing_changes() -> None:
    assert kept(source_text("a")) == source_text("a")


def test_references_stay(key: None) -> None:
    text = source_text("a").replace("pass word", "env:SHOP_PASSWORD")
    assert kept(text) == text


def test_the_same_file_is_known_again(key: None, rig: Rig) -> None:
    rig.worker("w1")
    rig.worker("w2")
    rig.sources("a", "b")
    assert "pass word" not in rig.master.cluster.state.sources["a"].text
    assert rig.start("t", "a", "b", on=("a",))["result"]
    assert rig.start("t", "a", "b", on=("b",))["result"]
    assert rig.master.update_task(UpdateTask(task=task_text("t", "a", "b")))["result"]


@pytest.mark.parametrize("keeps", [True, False])
def test_passwords_that_no_key_opens_any_more_are_replaced(
    key: None, rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeps: bool
) -> None:
    """As CONFIG-023 and CONFIG-024 advise: the key that they were encrypted with is gone, so they are given again."""
    worker = rig.worker("w1")
    rig.sources("a")
    assert rig.start("t", "a")["result"]
    assert rig.master.pause_task(PauseTask(name="t"))["result"]
    if keeps:
        other = tmp_path / "other"
        other.write_text("fedcba9876543210" * 4)
        monkeypatch.setenv(KEY_PATH, str(other))
    else:
        monkeypatch.delenv(KEY_PATH)
    stored = rig.master.cluster.state.sources["a"].text
    with pytest.raises(ConfigError, match="CONFIG-024" if keeps else "CONFIG-023"):
        parse_source(stored).database.secret()
    assert rig.master.update_source(UpdateSource(config=source_text("a")))["result"]
    assert rig.master.update_task(UpdateTask(task=task_text("t", "a")))["result"]
    state = rig.master.cluster.state
    assert parse_source(state.sources["a"].text).database.secret() == "pass word"
    assert task_config(state.tasks["t"]).target_database.secret() == "pass word"
    assert rig.master.resume_task(ResumeTask(name="t"))["result"]
    assert worker.briefs["t"].stage is Stage.RUNNING


def test_a_new_password_that_no_key_opens_is_refused(key: None, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.worker("w1")
    rig.sources("a")
    given = source_text("a").replace("pass word", f"aes:v1:{'A' * 60}")
    with pytest.raises(ConfigError, match="CONFIG-024"):
        rig.master.update_source(UpdateSource(config=given))
    monkeypatch.delenv(KEY_PATH)
    with pytest.raises(ConfigError, match="CONFIG-023"):
        rig.master.update_source(UpdateSource(config=given))


def test_a_master_s_store_is_readable_by_its_user_only(tmp_path: Path) -> None:
    """It has the passwords, in plain text where there is no key. A folder that was there keeps its mode."""
    before = os.umask(0o022)
    try:
        folder = tmp_path / "made" / "data"
        url = _store_url(MasterConfig.model_validate({"data-dir": str(folder), "master-addr": "127.0.0.1:0"}))
        for _ in range(2):
            store = Store(url)
            store.open()
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
            assert modes == dict.fromkeys(("master.db", "master.db-wal", "master.db-shm"), 0o600)
            store.close()
            (folder / "master.db").chmod(0o644)  # as an earlier version has left it
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o755
    finally:
        os.umask(before)
