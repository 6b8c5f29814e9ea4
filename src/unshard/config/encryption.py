"""Encryption of passwords in files.

A password is encrypted with AES-256-GCM and a key file, so that a wrong key or a changed text is detected. The text
form is `aes:v1:` and the base64 of a nonce (12 bytes), the encrypted UTF-8 text and its tag (16 bytes). The key file
has 64 hex digits, as DM's `secret-key-path`. Its path is in the environment variable UNSHARD_SECRET_KEY_PATH, so that
child processes have it too. The file is read anew each time.

DM's own texts (base64 of a 16-byte IV, `@`, AES-CFB without a tag) are accepted if they decrypt to printable text. A
wrong key hardly ever produces that, except for very short passwords, which the server then refuses.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import secrets
from pathlib import Path

from unshard.errors import ConfigError

KEY_PATH = "UNSHARD_SECRET_KEY_PATH"
PREFIX = "aes:"
_FORM = "aes:v1:"
_BOUND = b"unshard secret v1"
_NONCE_BYTES, _TAG_BYTES, _IV_BYTES = 12, 16, 16
_KEY = re.compile(r"[0-9a-fA-F]{64}\Z")


def use_key(path: str) -> None:
    """Make this process and its children use that key file; "" leaves the environment as it is.

    Raises ConfigError CONFIG-023 if there is no key in the file.
    """
    if path:
        _read_key(path)
        os.environ[KEY_PATH] = path


def has_key() -> bool:
    """Return whether a key file is set."""
    return bool(os.environ.get(KEY_PATH))


def encrypt(text: str) -> str:
    """Return a password's encrypted form for a file; it differs each time.

    Raises ConfigError CONFIG-023 without a valid key.
    """
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = secrets.token_bytes(_NONCE_BYTES)
    sealed = AESGCM(_key()).encrypt(nonce, text.encode(), _BOUND)
    return _FORM + base64.b64encode(nonce + sealed).decode()


def decrypt(text: str) -> str:
    """Return the password that `encrypt` was given.

    Raises ConfigError CONFIG-023; 024 if the key is another one or the text was changed.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if not text.startswith(_FORM):
        raise ConfigError("CONFIG-024", cause=f"the text begins with {PREFIX}, but not with {_FORM}")
    try:
        data = base64.b64decode(text.removeprefix(_FORM), validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError("CONFIG-024", cause="the text is cut or changed: it is not base64") from None
    if len(data) < _NONCE_BYTES + _TAG_BYTES:
        raise ConfigError("CONFIG-024", cause="the text is cut")
    try:
        return AESGCM(_key()).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _BOUND).decode()
    except InvalidTag:
        raise ConfigError("CONFIG-024", cause="another key, or the text was changed") from None


def is_of_dm(text: str) -> bool:
    """Return whether a text has the form of DM's encrypted passwords. One in 256 long base64 texts has it by chance."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(data) > _IV_BYTES + 1 and data[_IV_BYTES : _IV_BYTES + 1] == b"@"


def decrypt_dm(text: str) -> str:
    """Return the password in DM's encrypted text.

    Raises ConfigError CONFIG-023 if the key file has no valid key, 028 if no key file is set or the text does not
    decrypt to printable text.
    """
    from cryptography.hazmat.decrepit.ciphers.modes import CFB
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES

    if not has_key():
        raise ConfigError("CONFIG-028", cause="no key file is named")
    data = base64.b64decode(text)
    worker = Cipher(AES(_key()), CFB(data[:_IV_BYTES])).decryptor()
    try:
        found = (worker.update(data[_IV_BYTES + 1 :]) + worker.finalize()).decode()
    except UnicodeDecodeError:
        found = ""
    if not found.isprintable() or not found:
        raise ConfigError("CONFIG-028", cause=f"the key in {os.environ[KEY_PATH]} does not")
    return found


def _key() -> bytes:
    path = os.environ.get(KEY_PATH)
    if not path:
        raise ConfigError("CONFIG-023", cause="none is named", values={"path": "secret-key-path"})
    return _read_key(path)


def _read_key(path: str) -> bytes:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigError("CONFIG-023", cause=error.strerror or "", values={"path": path}) from None
    except UnicodeDecodeError:
        raise ConfigError("CONFIG-023", cause="it is not text", values={"path": path}) from None
    if not _KEY.match(text):
        raise ConfigError("CONFIG-023", cause="it has to be 64 hex digits: 32 random bytes", values={"path": path})
    return bytes.fromhex(text)
