"""TLS to a database server, for both drivers.

Files are read anew for each connection; inline texts are never written to disk. A server's certificate is checked
against the authority and the allowed common names, not against the host's name. MariaDB's C driver can't check a common
name, and without its check of the host's name it continues unencrypted if the server (or an attacker in between) says
that it has no TLS. So a first handshake without a login checks the certificate, and connections are pinned to it: a
pinned connection is never unencrypted.
"""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import MySQLdb

from unshard.mysql.tls_fault import FILES, NO_TLS, OTHER_NAME, RESET

_CLIENT_SSL = 0x00000800
_SSL_REQUEST = _CLIENT_SSL | 0x00000200 | 0x00008000  # CLIENT_SSL, PROTOCOL_41, SECURE_CONNECTION
_UTF8MB4 = 45
_LARGEST_PACKET = 1 << 24
_SECONDS = 10
_VERDICT_SECONDS = 2
_NOT_REACHED, _TLS_FAULT = 2003, 2026  # the C driver's own numbers
_CERTIFICATES = 8
IS_MARIADB_CLIENT = MySQLdb.get_client_info().startswith("3.")


@dataclass(frozen=True, slots=True)
class Material:
    """A PEM text, or the path of a file with one. It is sent to executors; a path must exist on every machine."""

    path: str = ""
    text: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.path or self.text)

    @contextmanager
    def file(self) -> Iterator[str]:
        """Yield a path that this process can open until the block ends.

        For a text it is a file in memory, not on disk.
        """
        if not self.text:
            yield self.path
            return
        number = os.memfd_create("pem", os.MFD_CLOEXEC)
        try:
            os.write(number, self.text.encode())
            yield f"/proc/self/fd/{number}"
        finally:
            os.close(number)


@dataclass(frozen=True, slots=True)
class Tls:
    """The settings of an encrypted connection. Without `ca` it is encrypted, but any server is accepted."""

    ca: Material = Material()
    cert: Material = Material()
    key: Material = Material()
    allowed_names: tuple[str, ...] = ()

    @contextmanager
    def files(self) -> Iterator[dict[str, str]]:
        """Yield the paths by the C driver's names for them."""
        with ExitStack() as stack:
            named = (("ca", self.ca), ("cert", self.cert), ("key", self.key))
            yield {name: stack.enter_context(one.file()) for name, one in named if one}

    def context(self) -> ssl.SSLContext:
        """Return a context for sockets of this process. Raises SSLError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED if self.ca else ssl.CERT_NONE
        with self.files() as files:
            try:
                if "ca" in files:
                    context.load_verify_locations(files["ca"])
                if "cert" in files:
                    context.load_cert_chain(files["cert"], files["key"])
            except OSError as error:
                paths = ", ".join(one.path for one in (self.ca, self.cert, self.key) if one.path)
                raise ssl.SSLError(f"{FILES} ({paths or 'inline'}): {error}") from None
        if self.allowed_names:
            context.sslsocket_class = _held_to(frozenset(self.allowed_names))
        return context


_seen: dict[tuple[str, int, Tls], tuple[str, ...]] = {}
"""Certificates that passed the checks, by server. Several servers may answer at one address."""


def encrypted(tls: Tls, options: dict[str, Any]) -> Any:
    """Return a connection of the C driver that always uses TLS; `options` are the arguments for the driver.

    Raises MySQLdb.Error.
    """
    with tls.files() as files:
        options["ssl"] = files
        if IS_MARIADB_CLIENT:
            return _pinned(tls, options)
        if tls.allowed_names:
            raise MySQLdb.OperationalError(_TLS_FAULT, "cert-allowed-cn needs MariaDB's client library")
        return MySQLdb.connect(**options, ssl_mode="VERIFY_CA" if tls.ca else "REQUIRED")


def _pinned(tls: Tls, options: dict[str, Any]) -> Any:
    """Connect, accepting only the certificates seen before.

    If none fits, check the server's certificate again: it may be new.
    """
    host, port = options["host"], options["port"]
    while True:
        known = _seen.get((host, port, tls), ())
        if known:
            try:
                with pinned(known) as file:
                    return MySQLdb.connect(**options, read_default_file=file)
            except MySQLdb.OperationalError as error:
                if error.args[0] != _TLS_FAULT:
                    raise
                fault = error
        try:
            found = seen_certificate(host, port, tls)
        except OSError as error:
            number = _TLS_FAULT if isinstance(error, ssl.SSLError) else _NOT_REACHED
            raise MySQLdb.OperationalError(number, str(error)) from None
        if found in known:
            raise fault
        _seen[host, port, tls] = (*known, found)[-_CERTIFICATES:]


def seen_certificate(host: str, port: int, tls: Tls) -> str:
    """Return the SHA-1 of the server's certificate, in hex, after checking its authority and its common name.

    Sends no login. Raises OSError if the server can't be reached, has no TLS, or shows another certificate.
    """
    with _secured(host, port, tls) as secured:
        seen = secured.getpeercert(binary_form=True) or b""
    return hashlib.sha1(seen, usedforsecurity=False).hexdigest()


def refusal(host: str, port: int, tls: Tls) -> str:
    """Return why the server closes the connection after the handshake; empty if it doesn't.

    With TLS 1.3 a server refuses the client's certificate only then. A driver that is sending its login at that moment
    sees only a lost connection.
    """
    try:
        with _secured(host, port, tls) as secured:
            secured.settimeout(_VERDICT_SECONDS)
            secured.recv(1)
    except ssl.SSLError as error:
        return str(error)
    except ConnectionResetError:
        return RESET
    except OSError:  # or nothing came: the server waits for the login
        return ""
    return ""


@contextmanager
def _secured(host: str, port: int, tls: Tls) -> Iterator[ssl.SSLSocket]:
    """Open a connection and complete the TLS handshake, without a login. Raises OSError."""
    with socket.create_connection((host, port), _SECONDS) as plain:
        _refuse_without_tls(_packet(plain))
        request = struct.pack("<IIB23x", _SSL_REQUEST, _LARGEST_PACKET, _UTF8MB4)
        plain.sendall(struct.pack("<I", len(request) | 1 << 24) + request)
        with tls.context().wrap_socket(plain) as secured:
            yield secured


@contextmanager
def pinned(fingerprints: Sequence[str]) -> Iterator[str]:
    """Yield an options file that makes the C driver accept only these certificates.

    The driver reads it when it connects.
    """
    with ExitStack() as stack:
        known = stack.enter_context(Material(text="".join(f"{one}\n" for one in fingerprints)).file())
        yield stack.enter_context(Material(text=f"[client]\nssl-fplist={known}\n").file())


def _refuse_without_tls(greeting: bytes) -> None:
    """Raise an error if the server's first packet offers no TLS, or is an error.

    A server without TLS would take the handshake for a login.
    """
    if greeting[:1] == b"\xff":
        raise ConnectionError(greeting[3:].decode("utf-8", "replace"))
    after_version = greeting.index(0, 1) + 1
    capabilities = int.from_bytes(greeting[after_version + 13 : after_version + 15], "little")
    if not capabilities & _CLIENT_SSL:
        raise ssl.SSLError(NO_TLS)


def _packet(plain: socket.socket) -> bytes:
    length = int.from_bytes(_exactly(plain, 4)[:3], "little")
    return _exactly(plain, length)


def _exactly(plain: socket.socket, count: int) -> bytes:
    taken = b""
    while len(taken) < count:
        piece = plain.recv(count - len(taken))
        if not piece:
            raise ConnectionError("the server closed the connection")
        taken += piece
    return taken


def _held_to(allowed: frozenset[str]) -> type[ssl.SSLSocket]:
    class HeldSocket(ssl.SSLSocket):
        def do_handshake(self, block: bool = False) -> None:
            super().do_handshake(block)
            certificate: dict[str, Any] = self.getpeercert() or {}
            found = _common_names(certificate.get("subject", ()))
            if not allowed.intersection(found):
                shown = ", ".join(found) or "none"
                raise ssl.SSLCertVerificationError(f"{OTHER_NAME}: {shown}")

    return HeldSocket


def _common_names(subject: Sequence[Sequence[tuple[str, str]]]) -> list[str]:
    return [value for part in subject for name, value in part if name == "commonName"]
