"""Who may ask, and what a browser may do with the answer.

Without a token the service listens on this machine alone, and then a page of another site is the danger: a
browser would carry its requests here. So the Host must be this machine (a foreign name that resolves to it is
refused), and a request that another site's page started is refused whatever it asks.
"""

import hmac
from urllib.parse import urlsplit

from fastapi import Depends
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenet.errors import InputError
from tenet.web.answers import send_error

BEARER = Depends(HTTPBearer(auto_error=False, description="the token, where the service demands one"))
"""For the description alone: `Guard` looks at the token before any route is found."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
OPEN = ("/", "/healthz", "/readyz", "/favicon.ico")
"""Paths that need no token: the page itself, which asks for it, and the probes of a supervisor."""
SHORTEST_TOKEN = 16
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; media-src 'self' blob:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
}


def check_token(host: str, token: str | None) -> str | None:
    """The token to demand; an address that others reach must have one."""
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise InputError(
            f"--token: expected at least {SHORTEST_TOKEN} printable ASCII characters, got {len(token)}; "
            "make one: python3 -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if token is None and host not in LOOPBACK:
        raise InputError(
            f"--host {host}: expected a token for an address that others reach, got none; "
            "give --token or set TENET_TOKEN"
        )
    return token


class Guard:
    """The outermost layer: headers on every answer; host, origin and token of every request."""

    def __init__(self, app: ASGIApp, token: str | None = None) -> None:
        self._app = app
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope["path"], Headers(scope=scope))
        if refusal is not None:
            await send_error(scope, receive, guarded, *refusal, unread=True)
            return
        await self._app(scope, receive, guarded)

    def _refusal(self, path: str, headers: Headers) -> tuple[int, str, str] | None:
        host = headers.get("host", "")
        if self._token is None and _name_of(host) not in LOOPBACK:
            return 403, "wrong_host", "this service answers to this machine's own names alone; use 127.0.0.1"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "other_site", "a page of another site may not use this service"
        if path.startswith("/v1") and headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            return 403, "other_site", "a page of another site may not use this service"
        free = path in OPEN or path.startswith("/static/")
        if self._token is not None and not free and not self._knows(headers.get("authorization", "")):
            return (
                401,
                "no_token",
                "expected the header `Authorization: Bearer TOKEN` with this service's token",
            )
        return None

    def _knows(self, header: str) -> bool:
        kind, _, given = header.partition(" ")
        right = hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), self._token or b"")
        return right and kind.lower() == "bearer"


def _name_of(host: str) -> str | None:
    """A Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
