"""What a TLS failure means and what mends it, by the words of OpenSSL, of the C driver and of our own checks. Pure."""

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


@dataclass(frozen=True, slots=True)
class TlsFault:
    """What is wrong, and what to do about it; both as parts of a sentence."""

    fault: str
    mend: str


FILES = "a file of `security:` can't be used"
NO_TLS = "the server has no TLS"
_RESET = "the connection was reset behind the handshake"
OTHER_NAME = "the certificate's common name is not in cert-allowed-cn"

_FAULTS: tuple[tuple[tuple[str, ...], TlsFault], ...] = (
    ((FILES,), TlsFault(FILES, "see the cause: each path has to be there on every machine, with the key of ssl-cert")),
    (
        ("cert-allowed-cn",),
        TlsFault(OTHER_NAME, "look whether that is your server; add its certificate's name if it is"),
    ),
    (
        (NO_TLS, "wrong version number", "does not support", "doesn't support"),
        TlsFault(
            NO_TLS, "give the server a certificate (ssl_cert, ssl_key), or take this section out to go in the clear"
        ),
    ),
    (
        ("insecure transport",),
        TlsFault("the server takes no connection without TLS", "give it the server's authority, `ssl-ca`"),
    ),
    (
        ("alert unknown ca", "alert bad certificate", "alert certificate", "certificate required", "alert unsupported"),
        TlsFault(
            "the server refuses the client certificate, or wants one",
            "give it `ssl-cert` and `ssl-key` that are not expired, of the authority that the server has as ssl_ca",
        ),
    ),
    (
        ("eof occurred in violation", _RESET),
        TlsFault(
            "the server broke it off without a word, as one does that refuses the client certificate",
            "see its error log; `ssl-cert` and `ssl-key` have to be of the authority that it has as ssl_ca",
        ),
    ),
    (
        ("protocol version", "unsupported protocol", "no protocols available", "handshake failure", "no shared cipher"),
        TlsFault("the two sides have no version or cipher in common", "let the server have TLS 1.2 or 1.3"),
    ),
    (
        ("expired", "not yet valid"),
        TlsFault(
            "the server's certificate has expired or is not valid yet",
            "renew it on the server and reload it there (FLUSH SSL, ALTER INSTANCE RELOAD TLS); look at the clocks",
        ),
    ),
    (
        ("verify failed", "self-signed", "self signed", "issuer certificate", "certificate chain"),
        TlsFault(
            "the server's certificate is not of the authority in `ssl-ca`",
            "give the file of the authority that signed it; if it should be that one, look who answers there",
        ),
    ),
)
_OTHER = TlsFault("the handshake failed", "see the cause, and the server's error log")


def tls_fault(cause: str) -> TlsFault:
    """The meaning of a failure whose text is `cause`."""
    text = cause.lower()
    return next((fault for words, fault in _FAULTS if any(word.lower() in text for word in words)), _OTHER)


# TLS towards a database server, for both drivers: files read anew for each connection, or texts that never touch
# disk.
#
# A server's certificate is held to the authority and to the common names that are allowed, not to the host's name.
# MariaDB's C driver can't look at a common name, and without its check of the host's name it goes on in the clear
# where a server (or who sits before it) says that it has no TLS. So a first handshake without a login looks at the
# certificate, and connections are pinned to it: a pinned one is never in the clear.


_CLIENT_SSL = 0x00000800
_SSL_REQUEST = _CLIENT_SSL | 0x00000200 | 0x00008000  # CLIENT_SSL, PROTOCOL_41, SECURE_CONNECTION
_UTF8MB4 = 45
_LARGEST_PACKET = 1 << 24
_SECONDS = 10
_VERDICT_SECONDS = 2
IS_MARIADB_CLIENT = MySQLdb.get_client_info().startswith("3.")


@dataclass(frozen=True, slots=True)
class Material:
    """One PEM: the path of a file, or the text itself. It travels; a path has to be there on every machine."""

    path: str = ""
    text: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.path or self.text)

    @contextmanager
    def file(self) -> Iterator[str]:
        """A path that this process can open as long as the block lasts. A text is in memory behind it, not on disk."""
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
    """What secures a connection. Without `ca` it is encrypted, but any server is believed."""

    ca: Material = Material()
    cert: Material = Material()
    key: Material = Material()
    allowed_names: tuple[str, ...] = ()

    @contextmanager
    def files(self) -> Iterator[dict[str, str]]:
        """Paths under the names that the C driver has for them."""
        with ExitStack() as stack:
            named = (("ca", self.ca), ("cert", self.cert), ("key", self.key))
            yield {name: stack.enter_context(one.file()) for name, one in named if one}

    def context(self) -> ssl.SSLContext:
        """For sockets of this process. Raises SSLError."""
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


def seen_certificate(host: str, port: int, tls: Tls) -> str:
    """SHA-1 of the server's certificate, in hex, after it has been held to the authority and to the allowed names.

    No login is sent. Raises OSError: not reachable, no TLS there, or another certificate.
    """
    with _secured(host, port, tls) as secured:
        seen = secured.getpeercert(binary_form=True) or b""
    return hashlib.sha1(seen, usedforsecurity=False).hexdigest()


def refusal(host: str, port: int, tls: Tls) -> str:
    """Why the server hangs up behind the handshake; empty where it doesn't.

    With TLS 1.3 a server says only then that it refuses the client's certificate, and a driver that is just sending
    its login sees no more than a lost connection.
    """
    try:
        with _secured(host, port, tls) as secured:
            secured.settimeout(_VERDICT_SECONDS)
            secured.recv(1)
    except ssl.SSLError as error:
        return str(error)
    except ConnectionResetError:
        return _RESET
    except OSError:  # also: nothing came, it waits for the login
        return ""
    return ""


@contextmanager
def _secured(host: str, port: int, tls: Tls) -> Iterator[ssl.SSLSocket]:
    """A connection behind its TLS handshake, before any login. Raises OSError."""
    with socket.create_connection((host, port), _SECONDS) as plain:
        _refuse_without_tls(_packet(plain))
        request = struct.pack("<IIB23x", _SSL_REQUEST, _LARGEST_PACKET, _UTF8MB4)
        plain.sendall(struct.pack("<I", len(request) | 1 << 24) + request)
        with tls.context().wrap_socket(plain) as secured:
            yield secured


@contextmanager
def pinned(fingerprints: Sequence[str]) -> Iterator[str]:
    """An options file that lets the C driver take no certificates but these; it reads it when it connects."""
    with ExitStack() as stack:
        known = stack.enter_context(Material(text="".join(f"{one}\n" for one in fingerprints)).file())
        yield stack.enter_context(Material(text=f"[client]\nssl-fplist={known}\n").file())


def _refuse_without_tls(greeting: bytes) -> None:
    """Of a server's first packet, which may be an error. A server without TLS would read the handshake as a login."""
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
