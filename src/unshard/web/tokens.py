"""The caller of a request: its token or client certificate, looked up in the file of tokens."""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from threading import Lock
from urllib.parse import quote, unquote, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from unshard.config.access import Role, TokenEntry, token_hash
from unshard.config.files import load_access
from unshard.errors import ClusterError, ConfigError
from unshard.log import logger
from unshard.web.answers import refusal

CALLER = "unshard.caller"
"""Key of the `Caller` in an ASGI scope."""

CERTIFICATE = "unshard.certificate"
"""Key of the common name of the caller's verified client certificate in an ASGI scope; "" without one."""

NOBODY = "local"
"""Name of a caller that nothing tells the name of."""

_AS = "unshard-as"
_READING = ("GET", "HEAD")


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    `role` None: there is no file of tokens, so the caller has every role. `via`: the master that forwarded the request.
    """

    name: str
    role: Role | None
    address: str
    via: str = ""

    def may(self, needed: Role) -> bool:
        """Return whether the caller has the rights of that role."""
        return self.role is None or self.role.covers(needed)

    def passed_on(self) -> dict[str, str]:
        """Return the headers that a master sends with a request of this caller that it forwards to the leader.

        The name is quoted as in a URL: a header takes no other alphabet and no line break.
        """
        return {_AS: f"{self.role or Role.ADMIN} {quote(self.name)}"}


class Access:
    """The callers in a file of tokens, which is read again when it has changed.

    If a changed file can't be read, the last good one stays in force. The constructor raises ConfigError 001 to 003.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._lock = Lock()
        self._seen = self._stamp()
        self._entries = load_access(file).tokens

    def find(self, token: str, certificate: str) -> tuple[str, Role] | None:
        """Name and role of the caller with that token, else of the one with that certificate; None where none has.

        Every hash is compared, each in constant time: how long it takes reveals nothing.
        """
        today = datetime.now(UTC).date()
        digest = token_hash(token)
        found = None
        for entry in self._current():
            if entry.sha256:
                same = bool(token) and hmac.compare_digest(entry.sha256, digest)
            else:
                same = not token and bool(certificate) and entry.certificate == certificate
            if same and (entry.expires is None or today <= entry.expires):
                found = entry.name, entry.role
        return found

    def _current(self) -> tuple[TokenEntry, ...]:
        with self._lock:
            stamp = self._stamp()
            if stamp != self._seen:
                self._seen = stamp
                try:
                    self._entries = load_access(self._file).tokens
                    logger("tokens").info("file of tokens read again", file=self._file, callers=len(self._entries))
                except ConfigError as error:
                    logger("tokens").error("file of tokens not read again", **error.to_dict())
            return self._entries

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            state = os.stat(self._file)
        except OSError:
            return None
        return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


class Authenticated:
    """An ASGI layer that lets known callers in and puts their `Caller` into the scope.

    All others get 401, whatever they ask for. Without a file of tokens every request is let in, except those that a web
    page of another site makes a browser send: they carry an `Origin`, or a `Host` that is not ours. A certificate
    lets in only those of them that read: a browser shows it with such a request too.
    """

    def __init__(self, app: ASGIApp, access: Access | None, *, loopback: bool) -> None:
        self._app = app
        self._access = access
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the caller to the request; refuse a request whose token or certificate is wrong."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            caller = self._caller(scope, headers)
        except ClusterError as error:
            await refusal(error)(scope, receive, send)
            return
        await self._app({**scope, CALLER: caller}, receive, send)

    def _caller(self, scope: Scope, headers: Mapping[str, str]) -> Caller:
        address = (scope.get("client") or ("", 0))[0]
        certificate = scope.get(CERTIFICATE, "")
        if self._access is None:
            if _from_elsewhere(headers, loopback=self._loopback):
                raise ClusterError("CLUSTER-060")
            return Caller(certificate or NOBODY, None, address)
        kind, _, token = headers.get("authorization", "").partition(" ")
        shown = token.strip() if kind.lower() == "bearer" else ""
        found = self._access.find(shown, certificate)
        if found is None:
            raise ClusterError("CLUSTER-053")
        if not shown and scope["method"] not in _READING and is_foreign(headers):
            raise ClusterError("CLUSTER-060")
        name, role = found
        if role is Role.MASTER and _AS in headers:
            return _passed_on(headers[_AS], name, address)
        return Caller(name, role, address)


def _passed_on(text: str, master: str, address: str) -> Caller:
    role, _, quoted = text.partition(" ")
    name = unquote(quoted)
    if role not in (Role.VIEWER, Role.OPERATOR, Role.ADMIN, Role.WORKER) or not name:
        raise ClusterError("CLUSTER-053", cause=f"the header {_AS} is not ROLE NAME")
    return Caller(name[:64], Role(role), address, via=master)


def is_foreign(headers: Mapping[str, str]) -> bool:
    """Return whether a page of another site makes a browser send the request.

    A request with an `Origin` comes from the page of that address. A proxy puts another `Host` into it, as nginx does
    unless it is told; but the browser itself says beside it how the two are related, to every address that a page can
    trust: https, and this machine. No page can change what it says.
    """
    origin = headers.get("origin")
    if origin is None:
        return False
    if related := headers.get("sec-fetch-site"):
        return related != "same-origin"
    return urlsplit(origin).netloc != headers.get("host", "")


def _from_elsewhere(headers: Mapping[str, str], *, loopback: bool) -> bool:
    if is_foreign(headers):
        return True
    host = headers.get("host", "")
    name = urlsplit(f"//{host}").hostname or ""
    return loopback and name != "localhost" and not _is_loopback(name)


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
