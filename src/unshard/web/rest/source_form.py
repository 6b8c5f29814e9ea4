"""Converts between DM's source object and our source file."""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from unshard.config.secret import HIDDEN
from unshard.config.source import SourceConfig
from unshard.master.passwords import check_kept_password


class _Object(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Security(_Object):
    """TLS certificates and the private key, as PEM text, and the common names that are allowed."""

    ssl_ca_content: str = Field(default="", repr=False)
    ssl_cert_content: str = Field(default="", repr=False)
    ssl_key_content: str = Field(default="", repr=False)
    cert_allowed_cn: list[str] = []


class Purge(_Object):
    """The settings by which relay files are deleted; they are applied every `interval` seconds.

    Files older than `expires` hours are deleted, and the oldest files while less than `remain_space` GB are free.
    """

    interval: int | None = None
    expires: int | None = None
    remain_space: int | None = None


class RelayConfig(_Object):
    """Settings of the source's relay log."""

    enable_relay: bool | None = None
    relay_binlog_name: str | None = None
    relay_binlog_gtid: str | None = None
    relay_dir: str | None = None


class Source(_Object):
    """A source: one upstream server. In a change, what is left out stays as it is."""

    source_name: str
    host: str
    port: int
    user: str
    password: str | None = Field(default=None, repr=False)
    enable: bool = True
    enable_gtid: bool = False
    flavor: str | None = None
    security: Security | None = None
    purge: Purge | None = None
    relay_config: RelayConfig | None = None


def security_section(security: Security | None) -> dict[str, Any]:
    """Return the section `security` of a file with the certificates in it; none for none."""
    if security is None:
        return {}
    parts = {f"ssl-{part}-bytes": getattr(security, f"ssl_{part}_content") for part in ("ca", "cert", "key")}
    found: dict[str, Any] = {name: text for name, text in parts.items() if text}
    if security.cert_allowed_cn:
        found["cert-allowed-cn"] = security.cert_allowed_cn
    return {"security": found} if found else {}


def to_text(source: Source, known: SourceConfig | None = None) -> str:
    """Return the source file. Without `known`, what the object omits has its default.

    Values that the object can't have, or omits, stay as in `known`: a password (also one shown as `******`),
    certificates, `server-id`, `checker`. Raises ClusterError CLUSTER-016 where the password would stay for another
    host, port or user.
    """
    form = known.model_dump(mode="json", by_alias=True, exclude_unset=True) if known is not None else {}
    login = {"host": source.host, "port": source.port, "user": source.user}
    if known is None or source.password not in (None, HIDDEN):
        login["password"] = source.password or ""
    else:
        check_kept_password("from", known.database, source.host, source.port, source.user)
    form["source-id"] = source.source_name
    for name in ("enable", "enable_gtid"):
        if known is None or name in source.model_fields_set:
            form[name.replace("_", "-")] = getattr(source, name)
    form["from"] = form.get("from", {}) | login | security_section(source.security)
    if source.flavor:
        form["flavor"] = source.flavor
    if source.purge is not None:
        form["purge"] = form.get("purge", {}) | _kebab(source.purge.model_dump(exclude_none=True))
    if source.relay_config is not None:
        form |= _kebab(source.relay_config.model_dump(exclude_none=True))
    return yaml.safe_dump(form, sort_keys=False, allow_unicode=True)


def from_config(config: SourceConfig) -> dict[str, Any]:
    """Return DM's object of a source, without its password."""
    database = config.database
    return {
        "source_name": config.source_id,
        "host": database.host,
        "port": database.port,
        "user": database.user,
        "password": HIDDEN if database.password else "",
        "enable": config.enable,
        "enable_gtid": config.enable_gtid,
        "flavor": config.flavor,
        "purge": config.purge.model_dump(),
        "relay_config": {
            "enable_relay": config.enable_relay,
            "relay_binlog_name": config.relay_binlog_name,
            "relay_binlog_gtid": config.relay_binlog_gtid,
            "relay_dir": config.relay_dir,
        },
    }


def _kebab(form: dict[str, Any]) -> dict[str, Any]:
    return {key.replace("_", "-"): value for key, value in form.items()}
