"""Who may speak to the server: a token, then a cookie; the right Host and Origin; nothing large; nothing that runs."""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

__all__ = ["FILE_POLICY", "Guard", "hosts_of", "key_of"]

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

#: bytes that a request may bring
MOST_BYTES = 64 * 1024
TOO_LARGE = f"A request may have {MOST_BYTES:,} bytes."
#: seconds that a browser keeps the cookie
COOKIE_SECONDS = 30 * 24 * 3600
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: of items that are files: whatever is in them, nothing of it runs
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}


def key_of(journal: Path) -> str:
    """The secret of a journal's server, in a file beside it that only its owner reads: the same after a restart."""
    path = journal.with_name(journal.name + ".key")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text(encoding="ascii").strip()
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key := secrets.token_urlsafe(24))
    return key


def hosts_of(host: str) -> frozenset[str]:
    """Names under which a server that binds to `host` may be addressed, besides numbers, which no DNS can turn round."""
    names = {"localhost", host.lower()}
    if host not in ("127.0.0.1", "::1", "localhost"):
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


class Guard:
    """ASGI middleware before everything else."""

    def __init__(self, app: Any, key: str, hosts: frozenset[str], port: int, local: bool) -> None:
        self.app, self.key, self.hosts, self.local = app, key, hosts, local
        self.cookie = f"badge_{port}"  # cookies do not know ports, and there may be two servers
        self.value = hmac.new(key.encode(), b"cookie", "sha256").hexdigest()  # not the token: that stands in an address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        by_token = hmac.compare_digest(token.encode(), self.key.encode())
        refusal = self._refusal(scope["method"], headers, by_token)
        if refusal is not None:
            await _say(send, *refusal)
            return
        body = await _body(receive)
        if body is None:
            await _say(send, 413, TOO_LARGE)
            return
        given = [{"type": "http.request", "body": body, "more_body": False}]

        async def replayed() -> dict[str, Any]:
            return given.pop() if given else await receive()

        async def guarded(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message["headers"]}
                taken = f"all;dur={1000 * (time.perf_counter() - started):.1f}"
                own_headers = {
                    "content-security-policy": PAGE_POLICY,
                    "cache-control": "no-store",
                    "server-timing": taken,
                }
                added = {**HEADERS, **own_headers}
                own = [(k.encode(), v.encode()) for k, v in added.items() if k.encode() not in names]
                if by_token:
                    cookie = f"{self.cookie}={self.value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={COOKIE_SECONDS}"
                    own.append((b"set-cookie", cookie.encode()))
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        await self.app(scope, replayed, guarded)

    def _refusal(self, method: str, headers: dict[str, str], by_token: bool) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 421, "This server does not answer to that name."
        length = headers.get("content-length") or "0"
        if not length.isdigit() or int(length) > MOST_BYTES:
            return 413, TOO_LARGE
        cookies: SimpleCookie = SimpleCookie()
        cookies.load(headers.get("cookie", ""))
        held = cookies[self.cookie].value if self.cookie in cookies else ""
        if not by_token and not hmac.compare_digest(held.encode(), self.value.encode()):
            return 401, "Open the address that the server printed, with its token, once in this browser."
        if method in ("GET", "HEAD"):
            return None
        if method != "POST":
            return 405, "Only GET and POST are understood."
        if headers.get("origin") not in (f"http://{host}", f"https://{host}"):
            return 403, "This request comes from another page."
        if headers.get("content-type", "").split(";")[0].strip() != "application/json":
            return 415, "JSON is needed."
        return None

    def _is_ours(self, host: str) -> bool:
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]").lower()
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return name in self.hosts
        return address.is_loopback or not self.local


async def _body(receive: Receive) -> bytes | None:
    """The whole of a small request; None where it is not small, whatever it said of its length."""
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return body


async def _say(send: Send, status: int, text: str) -> None:
    headers = {**HEADERS, "content-type": "text/plain; charset=utf-8", "content-security-policy": FILE_POLICY}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(k.encode(), v.encode()) for k, v in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": text.encode() + b"\n"})
