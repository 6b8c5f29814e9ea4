"""The login of a browser: a form that exchanges an API token for a cookie, and a CSRF token for changes.

An ASGI layer before `Authenticated`, for the paths of the page alone. The rest of the API accepts no cookie.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import mimetypes
import secrets
import time
from dataclasses import dataclass, field
from functools import cache
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from threading import Lock
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unshard.web.page.reader import StateReader
from unshard.web.page.render import page_root, rendered
from unshard.web.tokens import CERTIFICATE, Access, is_foreign

PAGE = "/ui"
CSRF = "unshard.csrf"
"""Key of the CSRF token of a request in an ASGI scope."""
LOGGED_IN = "unshard.logged_in"
STILL_IN = "unshard.still_in"
"""Key of a function in an ASGI scope: whether the caller of a request that lasts may still be answered."""
COOKIE = "unshard_session"
SESSION_SECONDS = 12 * 3600.0
MOST_SESSIONS = 1000
LEADS = f"{PAGE}/leads"
"""204 where this master leads, else 503: what a page whose master is gone asks the other masters."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'{peers}; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(slots=True)
class BrowserSessions:
    """The sessions of the browsers that have logged in here, by their cookies. They end with the process.

    The tokens stay on the server and are looked up at each request, so a token that is removed from the file of tokens
    has no effect from then on.
    """

    _tokens: dict[str, tuple[str, float]] = field(default_factory=dict, repr=False)
    _latch: Lock = field(default_factory=Lock)

    def open(self, token: str) -> str:
        """Open a session for a token; return the value of its cookie.

        The oldest session ends where there are too many.
        """
        name = secrets.token_urlsafe(32)
        with self._latch:
            now = time.monotonic()
            self._tokens = {key: one for key, one in self._tokens.items() if one[1] > now}
            while len(self._tokens) >= MOST_SESSIONS:
                del self._tokens[next(iter(self._tokens))]
            self._tokens[name] = token, now + SESSION_SECONDS
        return name

    def token(self, name: str) -> str:
        """Return the token of a session; "" where the session has ended."""
        found, until = self._tokens.get(name, ("", 0.0))
        return found if until > time.monotonic() else ""

    def close(self, name: str) -> None:
        """End a session."""
        with self._latch:
            self._tokens.pop(name, None)


class PageDoor:
    """An ASGI layer that handles the page's login, cookies and CSRF tokens.

    `access` is None where there is no file of tokens: then nobody logs in, and only the CSRF token is checked.
    """

    def __init__(self, app: ASGIApp, access: Access | None, reader: StateReader) -> None:
        self._app, self._access, self._reader = app, access, reader
        self._sessions = BrowserSessions()
        self._key = secrets.token_bytes(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request for the page with its own headers and checks; pass all other requests on."""
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path == PAGE or path.startswith(PAGE + "/")):
            await self._app(scope, receive, send)
            return

        async def armoured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, text in _HEADERS.items():
                    headers[name] = text
                peers = "".join(f" {scope['scheme']}://{addr}" for addr in self._reader.peers())
                headers["Content-Security-Policy"] = _POLICY.format(peers=peers)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        answer = await self._own(scope, receive)
        if isinstance(answer, Response):
            await answer(scope, receive, armoured)
        else:
            await self._app(answer[0], answer[1], armoured)

    async def _own(self, scope: Scope, receive: Receive) -> Response | tuple[Scope, Receive]:
        """Return the door's own answer, or the request to pass on."""
        request = Request(scope, receive)
        path, method = scope["path"], scope["method"]
        if path == PAGE and method == "GET":
            return _see_other("ui/")
        if path == LEADS and method == "GET":
            anybody = {"Access-Control-Allow-Origin": "*"}
            return Response(status_code=204 if self._reader.leads() else 503, headers=anybody)
        if path.startswith(f"{PAGE}/static/") and method in ("GET", "HEAD"):
            return _static(path.removeprefix(f"{PAGE}/static/"), request.headers)
        if method == "POST" and is_foreign(request.headers):
            return self._refused(request, 403, "The request comes from a page of another site.")
        if path == f"{PAGE}/login":
            return await self._login(request)
        session = _cookie(request)
        token = self._sessions.token(session)
        by_header = "authorization" in request.headers
        certificate = scope.get(CERTIFICATE, "")
        csrf = self._csrf(f"session {session}" if token else f"certificate {certificate}")
        if token and not by_header:
            headers = [*scope["headers"], (b"authorization", f"Bearer {token}".encode("latin-1", "replace"))]
            scope = {**scope, "headers": headers}
        elif self._access is not None and not by_header and self._access.find("", certificate) is None:
            return self._form(request, 401)
        if self._access is not None and token and not by_header and self._access.find(token, certificate) is None:
            return self._form(request, 401, "The token is not valid any more.")
        if method == "POST" and not by_header:
            body = await request.body()
            given = dict(_fields(body)).get("csrf", "")
            if not hmac.compare_digest(given.encode(), csrf.encode()):
                why = "The form is not one of this page, or is from before a new start. Go back, load it again."
                return self._refused(request, 403, why)
            receive = _again(body, receive)
            if path == f"{PAGE}/logout":
                self._sessions.close(session)
                return _see_other("login", f"{COOKIE}=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict")

        def still_in() -> bool:
            if self._access is None or by_header:
                return True
            known = self._sessions.token(session) if token else ""
            return bool(known or not token) and self._access.find(known, certificate) is not None

        return {**scope, CSRF: csrf, LOGGED_IN: bool(token), STILL_IN: still_in}, receive

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return self._form(request, 200)
        token = dict(_fields(await request.body())).get("token", "").strip()
        if self._access is None or not token or self._access.find(token, "") is None:
            return self._form(request, 401, "This token is not known here, or has expired.")
        session = self._sessions.open(token)
        ended_before = request.headers.get("origin", "").startswith("https://")  # by a proxy
        secure = "; Secure" if request.url.scheme == "https" or ended_before else ""
        cookie = f"{COOKIE}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS:.0f}{secure}"
        return _see_other("./", cookie)

    def _form(self, request: Request, status: int, why: str = "") -> Response:
        root = page_root(request.url.path)
        return HTMLResponse(rendered("login.html", root=root, why=why), status)

    def _refused(self, request: Request, status: int, why: str) -> Response:
        root = page_root(request.url.path)
        return HTMLResponse(rendered("refused.html", root=root, title="Refused", why=why), status)

    def _csrf(self, of: str) -> str:
        return hmac.new(self._key, of.encode(), hashlib.sha256).hexdigest()


def _fields(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode("ascii", "strict"), keep_blank_values=True, max_num_fields=200)
    except ValueError:
        return []


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a way to receive a body that has been read, and then what the client sends further."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _cookie(request: Request) -> str:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _see_other(where: str, cookie: str = "") -> Response:
    """Return a redirection to a relative address, so that a proxy may put any prefix before the page."""
    return Response(status_code=303, headers={"Location": where, **({"Set-Cookie": cookie} if cookie else {})})


@cache
def _packed() -> dict[str, tuple[bytes, bytes, str]]:
    """Return each file of the page: its bytes, the same compressed, its type."""
    found = {}
    for file in files("unshard.web.page").joinpath("static").iterdir():
        if file.is_file():
            data = file.read_bytes()
            kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
            found[file.name] = data, gzip.compress(data, 9), kind
    return found


def _static(name: str, headers: Headers) -> Response:
    if name not in _packed():
        return Response(status_code=404)
    data, packed, kind = _packed()[name]
    tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
    told = {"ETag": tag, "Cache-Control": "private, max-age=3600", "Vary": "Accept-Encoding"}
    if headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=told)
    if "gzip" in headers.get("accept-encoding", ""):
        return Response(packed, headers={**told, "Content-Encoding": "gzip"}, media_type=kind)
    return Response(data, headers=told, media_type=kind)
