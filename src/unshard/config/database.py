"""The settings for connecting to a database server: `target-database` of a task, `from` of a source."""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from unshard.config.encryption import PREFIX, decrypt
from unshard.config.secret import HIDDEN, read_secret
from unshard.config.section import NoEffect, Section
from unshard.errors import ConfigError

_VARIABLE = re.compile(r"[a-z_][a-z0-9_]*\Z")
_UTC = frozenset({"+00:00", "-00:00", "utc", "+0:00"})
_OWNED = {
    "autocommit": "every batch is one transaction of our own",
    "names": "sessions talk utf8mb4",
    "character_set_client": "sessions talk utf8mb4",
    "character_set_connection": "sessions talk utf8mb4",
    "character_set_results": "sessions talk utf8mb4",
    "sql_select_limit": "every row of a result is needed",
    "completion_type": "a COMMIT has to end its transaction and nothing else",
}
_PARTS = ("ca", "cert", "key")


def text_of_bytes(value: Any) -> Any:
    """Return the text for a list of its bytes, which is how dmctl writes it; any other value unchanged."""
    if not isinstance(value, list):
        return value
    numbers = [int(item) if str(item).isdecimal() else -1 for item in value]
    try:
        return bytes(numbers).decode()
    except ValueError:
        raise ValueError("write PEM text, or the list of its bytes") from None


PemText = Annotated[str, BeforeValidator(text_of_bytes)]


class SecurityConfig(Section):
    """TLS of one connection: files on the task's machine, or PEM text inline.

    Files are read again for each new connection.
    """

    ssl_ca: str = Field(
        default="", description="File of the certificate authority that the server's certificate is held to."
    )
    ssl_cert: str = Field(default="", description="File of the client certificate; goes with `ssl-key`.")
    ssl_key: str = Field(default="", description="File of the client certificate's private key.")
    ssl_ca_bytes: PemText = Field(
        default="", repr=False, description="The authority's PEM text inline; counts over `ssl-ca`."
    )
    ssl_cert_bytes: PemText = Field(default="", repr=False, description="The certificate's PEM text inline.")
    ssl_key_bytes: PemText = Field(
        default="",
        repr=False,
        description="The key's PEM text inline, plain or encrypted (`aes:v1:…`). A master that has `secret-key-path` "
        "stores it encrypted; the process that connects keeps it in memory.",
    )
    ssl_ca_base64: str = Field(default="", repr=False, description="The authority's PEM text in base64.")
    ssl_cert_base64: str = Field(default="", repr=False, description="The certificate's PEM text in base64.")
    ssl_key_base64: str = Field(default="", repr=False, description="The key's PEM text in base64, as `ssl-key-bytes`.")
    cert_allowed_cn: tuple[str, ...] = Field(
        default=(), description="Common names that the server's certificate may carry; empty: any. Needs an authority."
    )

    @model_validator(mode="after")
    def _fit(self) -> SecurityConfig:
        for part in _PARTS:
            given = [name for name in _forms(part) if self._text(name)]
            sealed = given and self._text(given[-1]).startswith(PREFIX)
            if given and given[-1] != f"ssl-{part}" and not sealed and "-----BEGIN " not in self.pem(part)[1]:
                raise ValueError(
                    f"{given[-1]} is no PEM text: it begins with -----BEGIN, in base64 with LS0tLS1CRUdJTi"
                )
        if self._has("cert") != self._has("key"):
            raise ValueError("ssl-cert and ssl-key go together; set both or neither")
        if self.cert_allowed_cn and not self._has("ca"):
            raise ValueError("cert-allowed-cn needs ssl-ca: without an authority no certificate's name can be trusted")
        return self

    def pem(self, part: str) -> tuple[str, str]:
        """Return the path and the text of `ca`, `cert` or `key`; at least one of them is "".

        Of several forms, base64 has precedence, then the text, then the file, as in DM. Raises ConfigError CONFIG-023
        or 024 where it is encrypted and no key opens it.
        """
        path, text, coded = (self._opened(name) for name in _forms(part))
        if coded:
            try:
                text = base64.b64decode("".join(coded.split()), validate=True).decode()
            except ValueError:
                text = "no base64"
        return ("", text) if text else (path, "")

    def _has(self, part: str) -> bool:
        return any(self._text(name) for name in _forms(part))

    def _text(self, name: str) -> str:
        return str(getattr(self, name.replace("-", "_")))

    def _opened(self, name: str) -> str:
        text = self._text(name)
        if not text.startswith(PREFIX):
            return text
        try:
            return decrypt(text)
        except ConfigError as error:
            raise replace(error, cause=f"{error.cause}; it is {name} of a section security") from None


def _forms(part: str) -> tuple[str, str, str]:
    return f"ssl-{part}", f"ssl-{part}-bytes", f"ssl-{part}-base64"


class DatabaseConfig(Section):
    """A server, the account to log in with, and the variables to set in each session."""

    host: str = Field(min_length=1, description="Name or address of the server.", examples=["10.0.0.7"])
    port: int = Field(ge=1, le=65535, description="TCP port of the server.", examples=[3306])
    user: str = Field(min_length=1, description="Account to log in with.")
    password: str = Field(
        default="",
        repr=False,
        description="Password of the account: plain, encrypted (`aes:v1:…`, what `unshard ctl encrypt` prints), "
        "`env:NAME` (environment variable NAME) or `file:PATH` (the file's text without the line end at its end). A "
        "plain password that begins with `env:`, `file:` or `aes:` has to be given through one of these. DM's "
        "encrypted passwords are read with DM's key file.",
    )
    session: dict[str, str] = Field(
        default_factory=dict,
        description="Session variables set on each connection, such as `tidb_skip_utf8_check: 1`. Refused: what the "
        "exact copy of values rests on (`time_zone` other than UTC, character sets, `autocommit`, `completion_type`, "
        "`sql_select_limit`, `NO_BACKSLASH_ESCAPES` in `sql_mode`). Rows are read and written with modes of our own, "
        "strict ones, whatever `sql_mode` says. On TiDB the kind of transactions and their isolation are ours, "
        "whatever is set here.",
    )
    security: SecurityConfig = Field(default_factory=SecurityConfig, description="TLS of the connection.")
    max_allowed_packet: Annotated[int | None, NoEffect("the server's own value is used")] = Field(
        default=None, description="Largest packet in bytes."
    )

    @field_validator("password")
    @classmethod
    def _password(cls, password: str) -> str:
        if password == HIDDEN:
            raise ValueError("`******` only stands for the password in a file that get-task has shown; write it there")
        return password

    @field_validator("session")
    @classmethod
    def _session(cls, session: dict[str, str]) -> dict[str, str]:
        folded = {name.lower(): _switch(value) for name, value in session.items()}
        for name, value in folded.items():
            if not _VARIABLE.match(name):
                raise ValueError(f"`{name}` is not the name of a session variable")
            if name in _OWNED:
                raise ValueError(f"`{name}` cannot be set: {_OWNED[name]}; take it out")
            if name == "time_zone" and value.lower() not in _UTC:
                raise ValueError("`time_zone` is always UTC, so that TIMESTAMP arrives unchanged; take it out")
            if name == "sql_mode" and "NO_BACKSLASH_ESCAPES" in value.upper():
                raise ValueError("`sql_mode` cannot have NO_BACKSLASH_ESCAPES: text is written with them; take it out")
        if len(folded) < len(session):
            raise ValueError("a variable is there twice in different case; keep one")
        return folded

    @property
    def checks_foreign_keys(self) -> bool:
        """True if foreign keys are checked while changes are applied. By default they are not."""
        return self.session.get("foreign_key_checks", "0").lower() in ("1", "on")

    def secret(self) -> str:
        """Return the password itself, as it is now. Raises ConfigError CONFIG-004, 023, 024 or 028 if it can't be read.

        Called on the driver when a connection is prepared. What is stored or sent to workers keeps the reference.
        """
        try:
            return read_secret(self.password)
        except ConfigError as error:
            whose = f"it is the password of {self.user} at {self.host}:{self.port}"
            raise replace(error, cause=f"{error.cause}; {whose}") from None


class TargetConfig(DatabaseConfig):
    """The target, and the limits on its load."""

    max_rows_per_second: int = Field(
        default=0,
        ge=0,
        description="Ours: most rows a second that are written, by the full load and the incremental part, over all "
        "sources together, and over all processes whose tasks have the same `meta-schema`; 0: no limit. Counted are "
        "rows after compaction.",
    )
    max_connections: int = Field(
        default=0,
        ge=0,
        description="Ours: most connections that write rows at the same time, over all sources and processes as "
        "above; 0: no limit, which is `worker-count` a source and Spark worker process, and `pool-size` a source for "
        "the full load. What is over it waits. Two more a source are kept for checkpoints and statements.",
    )


def _switch(value: str) -> str:
    """Convert YAML's true and false to the 1 and 0 that servers take for a switch."""
    return {"true": "1", "false": "0"}.get(value.lower(), value)
