"""TLS between the processes of a cluster: SSL contexts that reload changed files, and HTTP clients that use them.

A changed certificate, key or authority applies from the next connection on. A set of files that can't be read (one half
of a pair is there, the other not yet) leaves the last good one in force.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import httpx

from unshard.config.listener import LinkSecurity
from unshard.config.secret import read_secret
from unshard.errors import ClusterError

_OLDEST = ssl.TLSVersion.TLSv1_2


class FollowingContext(ssl.SSLContext):
    """An SSL context that reloads its files: each new connection uses a context made of the files as they are now.

    `make` builds that context and may raise OSError (SSLError is one); the first time that ends in ClusterError
    CLUSTER-052.
    """

    def __new__(cls, *args: Any) -> FollowingContext:
        """Return a context of the client's side. It is not used itself: `current` is."""
        del args
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)  # never used itself: `current` has the side

    def __init__(self, files: Sequence[str], make: Callable[[], ssl.SSLContext]) -> None:
        self._files = tuple(file for file in files if file)
        self._make = make
        self._lock = Lock()
        self._stamp = _stamp(self._files)
        try:
            self._current = make()
        except (OSError, ValueError) as error:
            names = ", ".join(self._files)
            raise ClusterError("CLUSTER-052", cause=_reason(error), values={"files": names}) from None

    def current(self) -> ssl.SSLContext:
        """Return the context of the present files, or of the last ones that could be read."""
        with self._lock:
            stamp = _stamp(self._files)
            if stamp != self._stamp:
                from unshard.log import logger

                self._stamp = stamp
                try:
                    self._current = self._make()
                    logger("tls").info("certificates read again", files=list(self._files))
                except (OSError, ValueError) as error:
                    logger("tls").error("certificates not read again", files=list(self._files), why=_reason(error))
            return self._current

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        """As `ssl.SSLContext`, by the present files."""
        return self.current().wrap_socket(*args, **options)

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """As `ssl.SSLContext`, by the present files."""
        return self.current().wrap_bio(*args, **options)


def server_context(security: LinkSecurity) -> FollowingContext:
    """Return the server's context.

    Callers need a certificate where there is an authority. Raises ClusterError CLUSTER-052.
    """

    def make() -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = _OLDEST
        context.load_cert_chain(security.ssl_cert, security.ssl_key)
        if security.ssl_ca:
            context.load_verify_locations(security.ssl_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        _hold_to(context, security.cert_allowed_cn)
        return context

    return FollowingContext(_files(security), make)


def client_context(security: LinkSecurity) -> FollowingContext:
    """Return the caller's context.

    Without an authority the system's ones count. Raises ClusterError CLUSTER-052.
    """

    def make() -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=security.ssl_ca or None)
        # Python 3.13 asks for extensions that certificates made for DM, or by a plain `openssl x509`, do not have
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.minimum_version = _OLDEST
        if security.ssl_cert:
            context.load_cert_chain(security.ssl_cert, security.ssl_key)
        _hold_to(context, security.cert_allowed_cn)
        return context

    return FollowingContext(_files(security), make)


def http_client(security: LinkSecurity, base_url: str = "", *, seconds: float = 30.0) -> httpx.Client:
    """Return a client for links of the cluster; the caller closes it. Thread-safe; `seconds` bound each wait.

    It sends the token on, follows no redirect and no proxy of the environment. Raises ClusterError CLUSTER-052.
    """
    verify: ssl.SSLContext | bool = client_context(security) if security.ssl_ca or security.ssl_cert else True
    return httpx.Client(
        base_url=base_url,
        verify=verify,
        auth=_TokenAuth(security) if security.token else None,
        timeout=httpx.Timeout(seconds, connect=min(seconds, 5.0)),
        trust_env=False,
        follow_redirects=False,
    )


_ONE_WORD = re.compile(r"[!-~]+")


class _TokenAuth(httpx.Auth):
    """HTTP authentication with the token of the settings, which is read again for each request.

    Raises ConfigError CONFIG-004 and ClusterError CLUSTER-095.
    """

    def __init__(self, security: LinkSecurity) -> None:
        self._reference = security.token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token = read_secret(self._reference)
        if not _ONE_WORD.fullmatch(token):  # httpx would show it in its error
            place = self._reference if self._reference.startswith(("env:", "file:")) else "token"
            raise ClusterError("CLUSTER-095", values={"place": place})
        request.headers["Authorization"] = f"Bearer {token}"
        yield request


def common_name(certificate: Any) -> str:
    """Return the common name in a result of `getpeercert`; "" without one."""
    subject = (certificate or {}).get("subject", ())
    return next((str(value) for part in subject for name, value in part if name == "commonName"), "")


def _hold_to(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Let a handshake of the context fail when the peer's verified certificate has another common name."""
    if not names:
        return
    allowed = frozenset(names)

    class HeldObject(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            _check(self.getpeercert(), allowed)

    class HeldSocket(ssl.SSLSocket):
        def do_handshake(self, block: bool = False) -> None:
            super().do_handshake(block)
            _check(self.getpeercert(), allowed)

    context.sslobject_class = HeldObject
    context.sslsocket_class = HeldSocket


def _check(certificate: Any, allowed: frozenset[str]) -> None:
    found = common_name(certificate)
    if found not in allowed:
        raise ssl.SSLCertVerificationError(f"the certificate's common name {found!r} is not in cert-allowed-cn")


def _files(security: LinkSecurity) -> tuple[str, str, str]:
    return security.ssl_ca, security.ssl_cert, security.ssl_key


def _stamp(files: Sequence[str]) -> tuple[Any, ...]:
    """Return a value that differs once a file is replaced, written or becomes readable."""
    return tuple(_seen(file) for file in files)


def _seen(file: str) -> tuple[int, ...] | None:
    try:
        state = os.stat(Path(file))
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return (error.strerror if isinstance(error, OSError) else str(error)) or str(error)
