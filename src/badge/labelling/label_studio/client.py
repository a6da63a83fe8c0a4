"""The calls of Label Studio's REST interface that picks need. A request waits for a server that restarts.

Label Studio's SDK requires an old numpy, so we do without. A legacy token is sent as it is ("Token …"). A personal access
token is exchanged for a token that is valid for a few minutes.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any
from urllib.parse import urljoin, urlsplit

from badge.core.importing import needs
from badge.errors import InputError, ServerError, in_short
from badge.labelling.addresses import web_address

#: Tasks or predictions in one request.
PAGE = 500
#: Seconds to wait before each retry of a request that found no server, or a server that is starting or stopping.
WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
#: Status codes of a server or its proxy that are temporary.
PASSING = (429, 502, 503, 504)

Json = dict[str, Any]


class Client:
    """One project on one server. Without `patient`, an address that has never answered is an error at once."""

    def __init__(
        self,
        url: str,
        project: int,
        token: str,
        on_wait: Callable[[float, str], None] = lambda seconds, reason: None,  # called before each wait
        transport: Any = None,  # for tests
        patient: bool = True,
    ) -> None:
        with needs("Label Studio", "httpx", "label"):
            import httpx
        if web_address(url) is None:
            raise InputError(f"the address {url!r} is not of the form http://host:port")
        if not token.strip():
            raise InputError("the token is empty: copy it from Account & Settings in Label Studio")
        self.url, self.project, self.on_wait = url.rstrip("/") + "/", project, on_wait
        self._answered = patient
        self._token, self._renewable = token.strip(), token.count(".") == 2
        self._errors = httpx.TransportError
        self._http = httpx.Client(base_url=self.url, timeout=60.0, transport=transport, follow_redirects=False)
        self._header = "" if self._renewable else f"Token {self._token}"

    def close(self) -> None:
        self._http.close()

    def settings(self) -> Json:
        """The project: its labelling configuration, sampling and model version."""
        return dict(self._json("GET", f"api/projects/{self.project}/"))

    def tasks(self) -> Iterator[Json]:
        """All tasks with their annotations, in the order of their ids."""
        seen: set[int] = set()
        for page in count(1):
            query = {"project": self.project, "page": page, "page_size": PAGE, "fields": "all"}
            answer = self._json("GET", "api/tasks/", params=query)
            fresh = [task for task in answer["tasks"] if task["id"] not in seen]  # pages move when a task is deleted
            seen.update(task["id"] for task in fresh)
            yield from fresh
            if page * PAGE >= answer["total"]:
                return

    def people(self) -> dict[int, str]:
        users = self._json("GET", "api/users/")
        return {user["id"]: user["email"] or user["username"] or str(user["id"]) for user in users}

    def file(self, address: str) -> bytes:
        """A file that a task refers to. Only requests to this server carry the token."""
        whole = urljoin(self.url, address)
        if urlsplit(whole).scheme not in ("http", "https"):
            raise ServerError(f"{address!r} cannot be fetched: give the project's storage pre-signed addresses")
        ours = urlsplit(whole).netloc == urlsplit(self.url).netloc
        return bytes(self._request("GET", whole, signed=ours, follow_redirects=True).content)

    def predict(self, predictions: Iterable[Json]) -> None:
        """Write predictions `{task, score, result, model_version}`."""
        items = list(predictions)
        for start in range(0, len(items), PAGE):
            self._json("POST", f"api/projects/{self.project}/import/predictions", json=items[start : start + PAGE])

    def versions(self) -> dict[str, int]:
        """The number of predictions of each model version."""
        return dict(self._json("GET", f"api/projects/{self.project}/model-versions/"))

    def delete_version(self, version: str) -> None:
        self._json("DELETE", f"api/projects/{self.project}/model-versions/", json={"model_version": version})

    def change(self, **settings: Any) -> None:
        self._json("PATCH", f"api/projects/{self.project}/", json=settings)

    def _json(self, method: str, path: str, **arguments: Any) -> Any:
        answer = self._request(method, path, **arguments)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            what = "something other than JSON: is it the address of Label Studio?"
            raise ServerError(f"{self.url} answered {method} {path} with {what}") from None

    def _request(self, method: str, path: str, signed: bool = True, **arguments: Any) -> Any:
        renewed, waits = False, iter(WAITS)
        while True:
            try:
                if signed and not self._header:
                    self._renew()
                headers = {"Authorization": self._header} if signed else {}
                answer = self._http.request(method, path, headers=headers, **arguments)
            except self._errors as error:
                trouble = f"cannot reach {self.url} ({error or type(error).__name__})"
                if not self._answered:
                    raise ServerError(f"{trouble}: check --url, or wait for the server with --watch") from None
            else:
                self._answered = True
                if answer.is_success:
                    return answer
                if answer.status_code == 401 and signed and self._renewable and not renewed:
                    self._header, renewed = "", True
                    continue
                if answer.status_code not in PASSING:
                    raise ServerError(self._reason(answer.status_code, method, path, answer))
                trouble = f"{self.url} answers {answer.status_code}"
            if (seconds := next(waits, None)) is None:
                tried = f"{trouble}, tried {len(WAITS) + 1} times"
                raise ServerError(f"{tried}: start the server, then run the same command", passing=True)
            self.on_wait(seconds, trouble)
            time.sleep(seconds)

    def _renew(self) -> None:
        answer = self._http.post("api/token/refresh/", json={"refresh": self._token})
        if answer.status_code in PASSING:
            return
        if not answer.is_success:
            raise ServerError(self._reason(401, "POST", "api/token/refresh/", answer))
        self._header = f"Bearer {answer.json()['access']}"

    def _reason(self, status: int, method: str, path: str, answer: Any) -> str:
        if status == 401:
            new = "make a new one in Account & Settings (a legacy token has to be enabled there)"
            return f"{self.url} refuses the token: it has expired or is another server's; {new}"
        if status == 403:
            return f"the token's user may not change project {self.project} at {self.url}: ask its owner"
        if status == 404 and path.startswith("api/projects/"):
            return f"there is no project {self.project} at {self.url}: its number stands in the address of its page"
        return f"{self.url} answered {method} {path} with {status}: {in_short(answer.text)}"
