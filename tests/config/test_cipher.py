"""Encrypted passwords: read back under their key alone, any change noticed; DM's texts too, where they make sense."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

import pytest
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from hypothesis import given
from hypothesis import strategies as st

from unshard.config.database import DatabaseConfig
from unshard.config.encryption import KEY_PATH, decrypt, encrypt, use_key
from unshard.config.secret import read_secret, sealed
from unshard.errors import ConfigError

KEY = "0123456789abcdef" * 4


@pytest.fixture(autouse=True)
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY + "\n")
    monkeypatch.setenv(KEY_PATH, str(path))
    return path


def of_dm(text: str, key: str = KEY) -> str:
    iv = secrets.token_bytes(16)
    worker = Cipher(AES(bytes.fromhex(key)), CFB(iv)).encryptor()
    return base64.b64encode(iv + b"@" + worker.update(text.encode()) + worker.finalize()).decode()


def code(reference: str) -> str:
    with pytest.raises(ConfigError) as caught:
        read_secret(reference)
    return caught.value.code


@pytest.mark.parametrize("text", ["", "geheim", "a b\n", "ä密码🔑", "x" * 5000, "env:X"])
def test_a_password_comes_back(text: str) -> None:
    first, second = encrypt(text), encrypt(text)
    assert first != second
    assert first.startswith("aes:v1:")
    assert read_secret(first) == read_secret(second) == text


def test_another_key_a_changed_text_and_another_version_are_noticed(key_file: Path) -> None:
    text = encrypt("geheim")
    data = bytearray(base64.b64decode(text[7:]))
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        assert code("aes:v1:" + base64.b64encode(changed).decode()) == "CONFIG-024"
    wrong = ["aes:v2:" + text[7:], "aes:", "aes:v1:", "aes:v1:!", text[:-4], text[:20]]
    assert {code(one) for one in wrong} == {"CONFIG-024"}
    key_file.write_text("f" * 64)
    assert code(text) == "CONFIG-024"


@pytest.mark.parametrize("content", [b"", b"abc", b"g" * 64, b"0" * 63, b"0" * 65, b"\xff" * 64])
def test_a_file_without_a_key_is_refused(key_file: Path, content: bytes) -> None:
    text = encrypt("geheim")
    key_file.write_bytes(content)
    assert code(text) == "CONFIG-023"
    with pytest.raises(ConfigError):
        use_key(str(key_file))


def test_a_key_that_nobody_named(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = encrypt("geheim")
    monkeypatch.delenv(KEY_PATH)
    assert code(text) == "CONFIG-023"
    use_key("")
    assert code(text) == "CONFIG-023"
    use_key(str(key_file))
    assert read_secret(text) == "geheim"
    key_file.unlink()
    assert code(text) == "CONFIG-023"


def test_passwords_that_dm_has_encrypted_are_read_under_its_key(
    key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = of_dm("123456-abc")
    assert read_secret(text) == "123456-abc"
    assert sealed(text) == text
    key_file.write_text("f" * 64)
    assert code(of_dm("long enough a password")) == "CONFIG-028"
    key_file.unlink()
    assert code(text) == "CONFIG-023"
    monkeypatch.delenv(KEY_PATH)
    assert code(text) == "CONFIG-028"


@pytest.mark.parametrize("why", ["no key file is named", "no such variable"])
def test_whose_password_cannot_be_read_is_told(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_PATH)
    password = "env:NO_SUCH_VARIABLE" if "variable" in why else of_dm("123456-abc")
    database = DatabaseConfig(host="10.0.0.7", port=3307, user="app", password=password)
    with pytest.raises(ConfigError) as caught:
        database.secret()
    assert caught.value.cause == f"{why}; it is the password of app at 10.0.0.7:3307"


@given(st.text(max_size=40).filter(lambda text: not text.startswith(("env:", "file:", "aes:"))))
def test_a_plain_password_stays_what_it_is(text: str) -> None:
    assert read_secret(text) == text


def test_what_is_stored_is_encrypted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = sealed("geheim")
    assert decrypt(stored) == "geheim"
    assert sealed(stored) == stored
    assert [sealed(one) for one in ("", "env:X", "file:/x")] == ["", "env:X", "file:/x"]
    monkeypatch.delenv(KEY_PATH)
    assert sealed("geheim") == "geheim"
