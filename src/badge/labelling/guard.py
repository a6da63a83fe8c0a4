"""Which requests reach the page: a token, then a cookie; the right Host and Origin; nothing large; nothing that runs."""

import ipaddress
import socket
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from badge.errors import InputError
from badge.labelling.addresses import web_address
from badge.labelling.people import People, Person, cookie_of

#: bytes that a request may bring
MOST_BYTES = 64 * 1024
TOO_LARGE = f"A request may have {MOST_BYTES:,} bytes."
#: seconds that a browser keeps the cookie
COOKIE_SECONDS = 30 * 24 * 3600
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: for files of the pool: nothing in them runs
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}


def public_origin(url: str) -> str:
    """The address of a proxy, as `https://name` or `https://name:port`.

    >>> public_origin("https://Label.example.org/")
    'https://label.example.org'
    """
    parts = web_address(url)
    if parts is None or parts.path.strip("/") or parts.query:
        raise InputError(f"--public-url is an address without a path, as https://label.example.org; got {url!r}")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def is_local(host: str) -> bool:
    """Whether only this machine reaches a server on `host`."""
    return host in ("127.0.0.1", "localhost", "::1")


class Guard:
    """ASGI middleware before everything else. It puts the `Person` behind a request into its scope, under "visitor"."""

    def __init__(self, app: ASGIApp, people: People, host: str, port: int, public: str | None) -> None:
        self.app, self.people, self.local, self.public = app, people, is_local(host), public
        self.hosts = {"localhost", host.lower()}  # numbers are checked apart: DNS cannot fake them
        if public is not None:
            self.hosts.add(str(urlsplit(public).hostname))
        if not self.local:
            self.hosts |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self.cookie = f"badge_{port}"  # browsers send a cookie to every port of a host, and there may be two servers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        started, request = time.perf_counter(), HTTPConnection(scope)
        token = request.query_params.get("token", "")
        by_token = self.people.find(token) if token else None
        visitor = by_token or self.people.find(request.cookies.get(self.cookie, ""), cookie_of)
        if refusal := self._refusal(scope["method"], request.headers, visitor):
            status, text = refusal
            said = PlainTextResponse(f"{text}\n", status, {**HEADERS, "content-security-policy": FILE_POLICY})
            await said(scope, receive, send)
            return
        scope["visitor"] = visitor

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                taken = f"all;dur={1000 * (time.perf_counter() - started):.1f}"
                page = {"content-security-policy": PAGE_POLICY, "cache-control": "no-store", "server-timing": taken}
                for name, value in {**HEADERS, **page}.items():
                    headers.setdefault(name, value)
                if by_token:
                    secure = "; Secure" if (self.public or "").startswith("https:") else ""
                    about = f"HttpOnly; SameSite=Strict; Path=/; Max-Age={COOKIE_SECONDS}{secure}"
                    headers.append("set-cookie", f"{self.cookie}={cookie_of(token)}; {about}")
            await send(message)

        await self.app(scope, receive, guarded)

    def _refusal(self, method: str, headers: Headers, visitor: Person | None) -> tuple[int, str] | None:
        host = headers.get("host", "")
        name = (host if host.endswith("]") else host.rsplit(":", 1)[0]).strip("[]").lower()
        try:
            ours = ipaddress.ip_address(name).is_loopback or not self.local
        except ValueError:
            ours = name in self.hosts
        if not ours:
            return 421, "This server does not answer to that name. Behind a proxy, start it with --public-url."
        length = headers.get("content-length") or "0"
        if not (length.isascii() and length.isdigit()) or int(length) > MOST_BYTES:
            return 413, TOO_LARGE
        if visitor is None:
            return 401, "Open the link that you were given. If it does not work any more, ask for a new one."
        if method in ("GET", "HEAD"):
            return None
        if method != "POST":
            return 405, "Only GET and POST are understood."
        if headers.get("origin", "null") not in (f"http://{host}", f"https://{host}", self.public):
            return 403, "This request comes from another page. Behind a proxy, start the server with --public-url."
        if headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return 415, "JSON is needed."
        return None
