"""Access control: refuses pages of other sites and, beyond this machine, requests without the token.

A page of another site can make a browser send requests here. It cannot read the answers (there are no CORS headers),
unless its name is made to resolve to this machine (DNS rebinding), which the Host header shows. Requests that a browser
marks as coming from another site are refused all the same.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_PRIVATE = ("/api", "/metrics")
MOST_HEAD_BYTES = 32_768
"""Of the headers of a request."""
_MOST_ADDRESS = 4096
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Host names the server answers to (``None``: any, as the token guards it), and the required token, if any."""

    hosts: frozenset[str] | None
    token: str | None
    cookie: str = "sluicegate"

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and text of the answer to a request that is refused; ``None`` if it is allowed."""
        headers = Headers(scope=scope)
        if self.hosts is not None and _name(headers.get("host", "")) not in self.hosts:
            return 403, "refused: ask by one of the names " + ", ".join(sorted(self.hosts))
        if str(scope["path"]).startswith(_PRIVATE) and _from_elsewhere(headers):
            return 403, "refused: the page of another site asked"
        if self.token is not None and not (self.named_in_query(scope) or self._shown(headers)):
            return 401, "refused: open the address with ?token= that the dashboard printed when it started"
        return None

    def named_in_query(self, scope: Scope) -> bool:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return self.token is not None and _same(given, self.token)

    def _shown(self, headers: Headers) -> bool:
        kept = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        return any(_same(given, self.token or "") for given in (kept, bearer))


class Guard:
    """ASGI middleware: refuses requests and adds the security headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        cookie = self._cookie_for(scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if cookie:
                    headers.append("Set-Cookie", cookie)
            await send(message)

        refused = _too_large(scope) or self._access.refusal(scope)
        answer = self._app if refused is None else PlainTextResponse(refused[1] + "\n", refused[0])
        return await answer(scope, receive, send_guarded)

    def _cookie_for(self, scope: Scope) -> str | None:
        access = self._access
        if not access.named_in_query(scope):
            return None
        return f"{access.cookie}={access.token}; HttpOnly; SameSite=Strict; Path=/"


def _too_large(scope: Scope) -> tuple[int, str] | None:
    """Refuse requests with a body, a long address or long headers: no route takes any of them."""
    headers = Headers(scope=scope)
    told = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not told.isdecimal() or int(told[:12]) > 0:
        return 413, "refused: nothing is taken here"
    if len(scope["query_string"]) + len(scope["path"]) > _MOST_ADDRESS:
        return 414, "refused: the address is too long"
    if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEAD_BYTES:
        return 431, "refused: the headers are too long"
    try:
        scope["query_string"].decode()
    except UnicodeDecodeError:
        return 400, "refused: the address is no text"
    return None


def _from_elsewhere(headers: Headers) -> bool:
    """Whether the browser marks the request as cross-site; other programs send no such headers."""
    origin = headers.get("origin")
    elsewhere = origin is not None and origin.partition("://")[2] != headers.get("host")
    return elsewhere or headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _name(host: str) -> str:
    """A Host header without its port.

    >>> _name("localhost:8642"), _name("[::1]:8642"), _name("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())
