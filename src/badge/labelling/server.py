"""The server behind the page: `app_of` makes it, `serve` runs it."""

import json
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import resources
from inspect import Parameter, signature
from pathlib import Path
from string import Template
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from badge.errors import BadgeError, InputError
from badge.labelling.desk import Desk
from badge.labelling.guard import FILE_POLICY, MOST_BYTES, TOO_LARGE, Guard
from badge.labelling.people import People, plain_name
from badge.labelling.session import Refused, Session

FOLDER = resources.files("badge.labelling") / "static"
#: files that the pages load -> content type
STATIC = {file.name: "text/css" for file in FOLDER.iterdir() if file.name.endswith(".css")}
STATIC |= {file.name: "text/javascript" for file in FOLDER.iterdir() if file.name.endswith(".js")}
#: address -> name of its files, title, and the role that may open it
PAGES = {
    "/": ("label", "Label", "label"),
    "/labels": ("review", "Labels", "label"),
    "/disagreements": ("disagreements", "Disagreements", "adjudicate"),
    "/team": ("team", "Team", "admin"),
}
#: a training in the background gives way to a waiting answer after this time
SWITCH_SECONDS = 0.0005
#: fields that hold a text of one line; those in LOOSE may be empty
TEXTS, LOOSE = {"request", "client", "name", "reason", "text", "role", "person"}, {"reason", "text"}
NOT_YOURS = "Your link does not allow that: ask whoever started the server."


class Json(JSONResponse):
    """JSON in UTF-8, also of a pool that holds half of a surrogate pair."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _writes(call: Callable[..., dict[str, Any]], role: str = "label") -> Route:
    """A POST to /api/<name of the call>; the arguments of the call are the fields of the request."""

    async def endpoint(request: Request) -> Response:
        if role not in request.scope["visitor"].may:
            return Json({"refused": NOT_YOURS}, status_code=403)
        body = b""
        try:
            async for part in request.stream():  # it may come without a length
                body += part
                if len(body) > MOST_BYTES:
                    return PlainTextResponse(f"{TOO_LARGE}\n", 413)
            values = _fields(body, call, request.scope["visitor"].name)
            return Json(await run_in_threadpool(partial(call, **values)))
        except Refused as refused:
            return Json({"refused": str(refused)}, status_code=409)
        except (BadgeError, ValueError, ClientDisconnect) as error:
            return Json({"error": getattr(error, "plain", str(error))}, status_code=400)

    return Route(f"/api/{call.__name__}", endpoint, methods=["POST"])


def _reads(path: str, call: Callable[[Request], Any], role: str = "label") -> Route:
    """A GET of `path`: what the call returns, as JSON unless it is a response."""

    def endpoint(request: Request) -> Response:
        if role not in request.scope["visitor"].may:
            return Json({"error": NOT_YOURS}, status_code=403)
        try:
            found = call(request)
        except (BadgeError, ValueError, OSError) as error:
            return Json({"error": getattr(error, "plain", str(error))}, status_code=404)
        return found if isinstance(found, Response) else Json(found)

    return Route(path, endpoint)


@dataclass(frozen=True)
class Views:
    """What the pages read of a session."""

    session: Session
    suggested: str  #: the name that a new visitor is offered
    guidelines: str

    def state(self, request: Request) -> dict[str, Any]:
        self.session.stay(request.query_params.get("client", ""))
        who = request.scope["visitor"]
        about = {"name": who.name, "role": who.role, "may": who.may, "suggested": self.suggested}
        return {**self.session.state(), "visitor": about, "guidelines": self.guidelines}

    def labels(self, request: Request) -> dict[str, Any]:
        asked = {k: request.query_params.get(k, "") for k in ("show", "label", "by", "text", "page")}
        who = request.scope["visitor"]
        if who.name is not None and "adjudicate" not in who.may:
            asked["by"] = asked["own"] = who.name  # one's own labels, which one may correct
        return self.session.board.find(**asked)

    def file(self, request: Request) -> Response:
        position = self.session.items.position(request.query_params.get("id", ""))
        if self.session.source.kind != "image":
            raise InputError("the items of this pool are not files")
        media, body = self.session.source.pool.shown(position)
        headers = {"content-security-policy": FILE_POLICY, "cache-control": "private, max-age=3600"}
        return Response(body, media_type=media, headers=headers)

    def export(self, request: Request) -> Response:
        kind, board = request.path_params["kind"], self.session.board
        if kind not in ("csv", "jsonl"):
            raise InputError("there are labels.csv and labels.jsonl")
        text, media = (board.as_csv(), "text/csv") if kind == "csv" else (board.as_jsonl(), "application/x-ndjson")
        headers = {"content-disposition": f'attachment; filename="labels.{kind}"'}
        return Response(text.encode("utf-8", "replace"), media_type=media, headers=headers)


def _static_file(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise InputError("there is no such file")
    return Response((FOLDER / name).read_bytes(), media_type=STATIC[name])


def app_of(
    session: Session,
    people: People,
    host: str = "127.0.0.1",
    port: int = 8600,
    suggested: str = "",
    public: str | None = None,
    guidelines: str = "",
    model: Path = Path("model"),  # the folder to which the trained model is saved
) -> Guard:
    """The ASGI application. `suggested` is offered as the name of a new visitor, `public` is the address of a proxy."""
    views = Views(session, suggested, guidelines)
    desk = Desk(session, people, public or f"http://{shown_host(host)}:{port}", model)
    app = Starlette(
        routes=[
            *(_reads(path, partial(_page, path), role) for path, (_, _, role) in PAGES.items()),
            _reads("/static/{name}", _static_file),
            _reads("/file", views.file),
            _reads("/export/labels.{kind}", views.export, "adjudicate"),
            _reads("/api/state", views.state),
            _reads("/api/labels", views.labels),
            _reads("/api/disagreements", lambda _: desk.disagreements(), "adjudicate"),
            _reads("/api/team", lambda _: desk.dashboard(), "admin"),
            *(_writes(call) for call in (session.next, session.answer, session.skip, session.undo)),
            *(_writes(call) for call in (desk.remark, desk.correct)),
            *(_writes(call, "adjudicate") for call in (desk.change, desk.take_back, desk.unskip)),
            *(_writes(call, "admin") for call in (desk.link, desk.revoke, desk.save)),
        ]
    )
    return Guard(app, people, host, port, public)


def serve(app: Any, session: Session, host: str, port: int, listen: socket.socket | None = None) -> None:
    """Run until it is stopped; what was answered is on disk however that happens."""
    import uvicorn

    sys.setswitchinterval(SWITCH_SECONDS)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", server_header=False, timeout_keep_alive=30)
    try:
        uvicorn.Server(config).run(sockets=None if listen is None else [listen])
    finally:
        session.close()


def shown_host(host: str) -> str:
    """The name of the server in an address."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"[{name}]" if ":" in name else name


def _page(path: str, request: Request) -> Response:
    """A page in the frame that all share. What stands above the mark in its file goes into the header."""
    name, title, _ = PAGES[path]
    header, _, body = (FOLDER / f"{name}.html").read_text("utf-8").rpartition("<!-- below the header -->\n")
    frame = Template((FOLDER / "frame.html").read_text("utf-8"))
    text = frame.substitute(title=title, name=name, header=header, body=body)
    text = text.replace(f'<a href="{path}"', f'<a href="{path}" aria-current="page"', 1)
    return Response(text, media_type="text/html")


def _fields(body: bytes, call: Callable[..., Any], person: str | None) -> dict[str, Any]:
    """The arguments of a call from a JSON object. Texts are trimmed and valid Unicode.

    A link of a person says who it is: `person`.
    """
    try:
        given = json.loads(body)
        json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError("the request holds half of a character (a lone surrogate)") from None
    except (ValueError, RecursionError):
        raise InputError("the request is not JSON") from None
    if not isinstance(given, dict):
        raise InputError("the request is not a JSON object")
    if person is not None:
        given["name"] = person
    found: dict[str, Any] = {}
    for name, about in signature(call).parameters.items():
        value, needed = given.get(name), about.default is Parameter.empty
        if name not in given and needed:
            raise InputError(f"the request lacks {name!r}")
        if name in TEXTS and (value is not None or needed):
            if not isinstance(value, str):
                raise InputError(f"{name!r} must be a text")
            value = plain_name(value, name) if value.strip() or name not in LOOSE else ""
        found[name] = value
    return found
