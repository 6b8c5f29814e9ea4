"""The settings of every process that listens: addresses, TLS, tokens, limits. Master and worker build on them.

The file of `unshard ctl`, which replaces its flags, is here too.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from unshard.config.quantities import Seconds
from unshard.config.section import Section


class LinkSecurity(Section):
    """TLS of a process towards others of the cluster, and the token that it shows to them. ctl has it too."""

    ssl_ca: str = Field(default="", description="File of the authority that the other side's certificate is held to.")
    ssl_cert: str = Field(default="", description="File of this process's certificate; goes with `ssl-key`.")
    ssl_key: str = Field(default="", description="File of that certificate's private key.")
    cert_allowed_cn: tuple[str, ...] = Field(
        default=(), description="Common names that the other side's certificate may carry; empty: any. Needs `ssl-ca`."
    )
    token: str = Field(
        default="",
        repr=False,
        description="Ours: the token that this process shows to others of the cluster: plain, `env:NAME` or "
        "`file:PATH`. It is read anew for each request.",
    )

    @model_validator(mode="after")
    def _fit(self) -> LinkSecurity:
        if bool(self.ssl_cert) != bool(self.ssl_key):
            raise ValueError("ssl-cert and ssl-key go together; set both or neither")
        if self.cert_allowed_cn and not self.ssl_ca:
            raise ValueError("cert-allowed-cn needs ssl-ca: without an authority no certificate's name can be trusted")
        return self


def check_advertised(advertised: str, listens: str, key: str) -> None:
    """Raise ValueError if the cluster's other processes would get an address that they can't call. As DM does.

    `key` is the name of the setting `listens`, which is used if `advertised` is empty.
    """
    host, colon, port = (advertised or listens).rpartition(":")
    if advertised and not (colon and host and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError(f"advertise-addr takes HOST:PORT, not {advertised}")
    if host.strip("[]") in ("", "0.0.0.0", "::"):
        told = "advertise-addr" if advertised else key
        raise ValueError(f"{told} {advertised or listens} is no address that others can call: set advertise-addr")


class ListenerConfig(LinkSecurity):
    """A process that listens. With `ssl-ca` it accepts only callers with a certificate of that authority."""

    token_file: str = Field(
        default="",
        description="Ours: file of the tokens that callers may show and of their roles. Without it every caller that "
        "gets through has every role, so an address beyond loopback then needs `ssl-ca`.",
    )
    audit_log: str = Field(
        default="", description="Ours: file that every request to change something is written to; empty: the log."
    )
    max_request_bytes: int = Field(
        default=8 << 20, ge=1 << 10, description="Ours: longest body of a request, in bytes."
    )
    max_connections: int = Field(default=256, ge=4, description="Ours: most connections at the same time.")
    request_timeout: Seconds = Field(default=660.0, gt=0, description="Ours: longest time that one request may take.")
    secret_key_path: str = Field(
        default="",
        description="File of the key that passwords in task and source files are encrypted with: 64 hex digits.",
    )

    @model_validator(mode="after")
    def _served(self) -> ListenerConfig:
        if self.ssl_ca and not self.ssl_cert:
            raise ValueError("ssl-ca of a process that listens needs ssl-cert and ssl-key too")
        return self


class CtlConfig(LinkSecurity):
    """The addresses of the masters, and how to connect to them. The keys are DM's; a flag overrides them."""

    master_addr: str = Field(default="", description="HOST:PORT of the masters, with commas.")
    rpc_timeout: Seconds = Field(default=600.0, gt=0, description="How long an answer may take.")
