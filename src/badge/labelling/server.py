"""The server behind the page: `app_of` makes it, `serve` runs it."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Any

from badge.errors import BadgeError, InputError, MissingExtraError
from badge.labelling.guard import FILE_POLICY, Guard, hosts_of
from badge.labelling.images import CONTENT_TYPES
from badge.labelling.session import Refused, Session

__all__ = ["app_of", "is_local", "serve"]

STATIC = {
    "label.css": "text/css",
    "api.js": "text/javascript",
    "draw.js": "text/javascript",
    "label.js": "text/javascript",
    "review.js": "text/javascript",
}
PAGES = {"/": "label.html", "/labels": "review.html"}
#: a training in the background gives way to a waiting answer after so long
SWITCH_SECONDS = 0.0005
#: longest name of a person, reason of a skip, and id of a client or request
LONGEST = 200


def app_of(session: Session, key: str, host: str = "127.0.0.1", port: int = 8600, person: str | None = None) -> Any:
    """The ASGI application. `person` is the name that answers bear where nobody gives one; None asks for it."""
    try:
        from starlette.applications import Starlette
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import Request
        from starlette.responses import FileResponse, JSONResponse, Response
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("the labelling page", "starlette", "label") from None

    def writes(call: Callable[..., dict[str, Any]], *fields: str) -> Any:
        async def endpoint(request: Request) -> Response:
            try:
                values = _fields(await request.body(), fields)
                return JSONResponse(await run_in_threadpool(partial(call, **values)))
            except Refused as refused:
                return JSONResponse({"refused": str(refused)}, status_code=409)
            except (BadgeError, ValueError) as error:
                return JSONResponse({"error": str(error)}, status_code=400)

        return endpoint

    def state(request: Request) -> Response:
        client = request.query_params.get("client", "")
        session.stay(client)
        return JSONResponse({**session.state(), "person": person, "of": session.of})

    def labels(request: Request) -> Response:
        asked = {k: request.query_params.get(k, "") for k in ("show", "label", "by", "text", "page")}
        if not asked["page"].isdigit():
            asked["page"] = "0"
        return JSONResponse(session.board.find(session.position, **asked))

    def file(request: Request) -> Response:
        try:
            position = session.position(request.query_params.get("id", ""))
        except InputError:
            return JSONResponse({"error": "there is no such item"}, status_code=404)
        if session.source.kind != "image":
            return JSONResponse({"error": "the items of this pool are no files"}, status_code=404)
        path = session.source.pool.paths[position]
        headers = {"content-security-policy": FILE_POLICY, "cache-control": "private, max-age=3600"}
        return FileResponse(path, media_type=CONTENT_TYPES[path.suffix.lower()], headers=headers)

    def export(request: Request) -> Response:
        kind = request.path_params["kind"]
        made = {"csv": session.board.as_csv, "jsonl": session.board.as_jsonl}.get(kind)
        if made is None:
            return JSONResponse({"error": "labels.csv and labels.jsonl are there"}, status_code=404)
        media = "text/csv" if kind == "csv" else "application/x-ndjson"
        headers = {"content-disposition": f'attachment; filename="labels.{kind}"'}
        return Response(made(session.position), media_type=media, headers=headers)

    def page(request: Request) -> Response:
        return Response(_static(PAGES[request.url.path]), media_type="text/html")

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return JSONResponse({"error": "there is no such file"}, status_code=404)
        return Response(_static(name), media_type=STATIC[name])

    who = ("request", "client", "name")
    app = Starlette(
        routes=[
            *(Route(path, page) for path in PAGES),
            Route("/static/{name}", static),
            Route("/file", file),
            Route("/export/labels.{kind}", export),
            Route("/api/state", state),
            Route("/api/labels", labels),
            Route("/api/next", writes(session.next, "client", "name"), methods=["POST"]),
            Route("/api/answer", writes(session.answer, *who, "id", "label"), methods=["POST"]),
            Route("/api/skip", writes(session.skip, *who, "id", "reason"), methods=["POST"]),
            Route("/api/undo", writes(session.undo, *who), methods=["POST"]),
            Route("/api/relabel", writes(session.relabel, "request", "name", "id", "label"), methods=["POST"]),
            Route("/api/unskip", writes(session.unskip, "request", "id"), methods=["POST"]),
        ]
    )
    return Guard(app, key, hosts_of(host), port, is_local(host))


def serve(
    session: Session, key: str, host: str, port: int, person: str | None, listen: socket.socket | None = None
) -> None:
    """Run until it is stopped; what was answered is on disk however that happens."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("the labelling page", "uvicorn", "label") from None
    app = app_of(session, key, host, port, person)
    sys.setswitchinterval(SWITCH_SECONDS)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", server_header=False, timeout_keep_alive=30)
    try:
        uvicorn.Server(config).run(sockets=None if listen is None else [listen])
    finally:
        session.close()


def is_local(host: str) -> bool:
    """Whether only this machine reaches a server on `host`."""
    return host in ("127.0.0.1", "localhost", "::1")


def _static(name: str) -> bytes:
    return (resources.files("badge.labelling") / "static" / name).read_bytes()


def _fields(body: bytes, names: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a JSON object, each present; texts that name something are short texts."""
    try:
        given = json.loads(body)
    except ValueError:
        raise InputError("the request is no JSON") from None
    missing = [name for name in names if not isinstance(given, dict) or name not in given]
    if missing:
        raise InputError(f"the request lacks {missing[0]!r}")
    for name in {"request", "client", "name", "reason"} & set(names):
        value = given[name]
        if value is None and name == "reason":
            continue
        if not isinstance(value, str) or len(value) > LONGEST or (not value.strip() and name != "reason"):
            raise InputError(f"{name!r} must be a text of 1 to {LONGEST} characters")
    return {name: given[name] for name in names}
